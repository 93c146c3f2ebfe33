// The rows of tables that predicates read, by what is in their columns, so that a predicate read costs
// the rows that it may be about and not the table.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "readers/predicate.hpp"

namespace isolang::watch {

// What an index must be asked for so that no match is missed: numbers of a column, or one text.
struct Range {
  std::string_view column;
  double low, high;
  std::optional<std::string_view> text;  // in place of numbers
  bool texts;                            // whether texts may match, or cannot be judged
};
// False where no column bounds the matches, so that each row is to be looked at.
bool ranges(const predicates::Node& node, std::vector<Range>& found);

// What a row has in a column, as an index tells rows apart. None: nil, which matches no range.
struct Indexed {
  enum class Kind : std::uint8_t { none, number, text, other } kind = Kind::none;  // other: always asked for
  double number = 0;
  std::string_view text;  // of the row's
};
Indexed indexed(std::string_view column, std::string_view key, std::string_view value);

// Entries in their order. What is new waits until it is asked for, and is merged with the others once
// there is much of it: a number and a row take 16 bytes so, in a tree 48.
template <typename Entry>
class Sorted {
 public:
  void add(Entry entry) {
    fresh_.push_back(std::move(entry));
    in_order_ = false;
  }
  // Calls visit(entry) from the first that is not before `low` on, until it returns false; what is new
  // comes behind the others.
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

// Rows have numbers. What is found may be too much: a row that was changed since stays where it was,
// too, until the table is dropped. Who asks judges each.
class RowIndex {
 public:
  bool asked() const { return !tables_.empty(); }
  // Whether this table is known here; if it is not, all rows are to be told of.
  bool has(std::string_view table) const { return tables_.contains(table); }
  void begin(const std::string& table) { tables_[table]; }
  // A row of one table, or of all that it is in, has this value now.
  void tell(std::string_view table, std::int32_t row, std::string_view key, std::string_view value);
  void tell(std::int32_t row, std::string_view key, std::string_view value);
  // The rows of which a predicate may be true, ascending; `text_of(row)` is the texts of its key and
  // its value, or nothing where it has none any more.
  template <typename TextsOf>
  std::vector<std::int32_t> candidates(const predicates::Predicate& predicate, const TextsOf& texts_of);
  // Forget what was changed too often.
  void drop_stale();
  void clear() { tables_.clear(); }
  std::int64_t memory() const;  // bytes, about

 private:
  struct Column {
    Sorted<std::pair<double, std::int32_t>> numbers;
    Sorted<std::pair<std::string, std::int32_t>> texts;
    std::vector<std::int32_t> others;
  };
  struct Table {
    std::vector<bool> rows;  // by their numbers
    std::int64_t count = 0;  // of them
    std::map<std::string, Column, std::less<>> columns;  // that predicates use
    std::int64_t told = 0;
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
          enter(column, range.column, row, *predicates::key_in_table(texts->first, predicate.table), texts->second);
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
