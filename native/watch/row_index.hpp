// An index of the rows of tables that predicates read, by column values. With this index, a predicate read visits only
// the rows that may concern it, instead of the whole table.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/required.hpp"
#include "readers/predicate.hpp"

namespace isolang::watch {

// The range of an index that contains every match: numbers of a column, or one text.
struct Range {
  std::string_view column;
  double low, high;
  std::optional<std::string_view> text;  // if set, this text in place of numbers
  bool texts;                            // whether texts may match, or cannot be judged
};
// Returns false if no column bounds the matches, so that each row has to be examined.
bool ranges(const predicates::Node& node, std::vector<Range>& found);

// The value of a row in a column, as the index sorts it. `none` means nil, which matches no range.
struct Indexed {
  // rows with `other` are always candidates
  enum class Kind : std::uint8_t { none, number, text, other } kind = Kind::none;
  double number = 0;
  std::string_view text;  // view into the text of the row
};
Indexed indexed(std::string_view column, std::string_view key, std::string_view value);

// Entries in sorted order. New entries are sorted when first needed, and merged with the others when there are many. A
// number and a row take 16 bytes here, and 48 bytes in a tree.
template <typename Entry>
class Sorted {
 public:
  void add(Entry entry) {
    fresh_.push_back(std::move(entry));
    in_order_ = false;
  }
  // Calls visit(entry) for the entries from `low` on until visit returns false: first for the old entries, then for the
  // new ones.
  template <typename Visit>
  void from(const Entry& low, const Visit& visit) {
    settle();
    for (const auto* some : {&sorted_, &fresh_})
      for (auto i = std::ranges::lower_bound(*some, low); i != some->end() && visit(*i); ++i) {
      }
  }
  std::size_t size() const { return sorted_.size() + fresh_.size(); }
  std::size_t room() const { return sorted_.capacity() + fresh_.capacity(); }

 private:
  void settle() {
    if (in_order_) return;
    std::ranges::sort(fresh_);
    in_order_ = true;
    if (fresh_.size() <= sorted_.size() / 8 + 1024) return;
    const auto middle = static_cast<std::ptrdiff_t>(sorted_.size());
    sorted_.reserve(size());
    std::ranges::move(fresh_, std::back_inserter(sorted_));
    std::inplace_merge(sorted_.begin(), sorted_.begin() + middle, sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
    std::vector<Entry>().swap(fresh_);
  }
  std::vector<Entry> sorted_, fresh_;
  bool in_order_ = true;
};

// The rows of some tables, by number. A search may find too many rows, because a changed row also stays at its old
// position until the table is dropped. The caller must test each row.
class RowIndex {
 public:
  bool asked() const { return !tables_.empty(); }
  // Returns whether the index contains this table. If not, the caller must add all rows.
  bool has(std::string_view table) const { return tables_.contains(table); }
  void begin(const std::string& table) { tables_[table]; }
  // Adds the current value of a row to the index of one table, or of all tables that contain the row.
  void add_row(std::string_view table, std::int32_t row, std::string_view key, std::string_view value);
  void add_row(std::int32_t row, std::string_view key, std::string_view value);
  // Returns the rows for which a predicate may be true, ascending. `texts_of(row)` returns the texts of its key and its
  // value, or nothing if it no longer has a value.
  template <typename TextsOf>
  std::vector<std::int32_t> candidates(const predicates::Predicate& predicate, const TextsOf& texts_of);
  // Drops tables in which too many rows have changed.
  void drop_stale();
  void clear() { tables_.clear(); }
  std::int64_t memory() const;  // approximate, in bytes

 private:
  struct Column {
    Sorted<std::pair<double, std::int32_t>> numbers;
    Sorted<std::pair<std::string, std::int32_t>> texts;
    std::vector<std::int32_t> others;
  };
  struct Table {
    std::vector<bool> rows;  // indexed by row number
    std::int64_t count = 0;  // number of rows
    std::map<std::string, Column, std::less<>> columns;  // the columns that predicates use
    std::int64_t entered = 0;
  };
  static void enter(Column& column, std::string_view name, std::int32_t row, std::string_view key,
                    std::string_view value);
  std::map<std::string, Table, std::less<>> tables_;
};

template <typename TextsOf>
std::vector<std::int32_t> RowIndex::candidates(const predicates::Predicate& predicate, const TextsOf& texts_of) {
  Table& table = tables_.find(predicate.table)->second;
  std::vector<Range> asked;
  std::vector<std::int32_t> found;
  const auto each_row = [&](const auto& visit) {
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      if (table.rows[row]) visit(static_cast<std::int32_t>(row));
  };
  if (!ranges(predicate.where, asked)) {
    each_row([&](std::int32_t row) { found.push_back(row); });
    return found;
  }
  for (const Range& range : asked) {
    const auto [at, fresh] = table.columns.try_emplace(std::string(range.column));
    Column& column = at->second;
    if (fresh)
      each_row([&](std::int32_t row) {
        if (const auto texts = texts_of(row))
          enter(column, range.column, row, required(predicates::key_in_table(texts->first, predicate.table), "the key of a row of the table"), texts->second);
      });
    found.insert(found.end(), column.others.begin(), column.others.end());
    const auto take = [&](const auto& last) {
      return [&found, last](const auto& entry) {
        if (!last(entry.first)) return false;
        found.push_back(entry.second);
        return true;
      };
    };
    if (range.text) {
      column.texts.from({std::string(*range.text), 0}, take([&](const std::string& text) { return text == *range.text; }));
      continue;
    }
    column.numbers.from({range.low, 0}, take([&](double number) { return number <= range.high; }));
    if (range.texts) column.texts.from({}, take([](const std::string&) { return true; }));
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace isolang::watch
