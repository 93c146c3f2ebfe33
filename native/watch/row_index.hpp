// The rows of tables that predicates read, by what is in their columns, so that a predicate read costs
// the rows that it may be about and not the table.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "readers/predicate.hpp"

namespace isolang::watch {

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
    std::set<std::pair<double, std::int32_t>> numbers;
    std::set<std::pair<std::string, std::int32_t>> texts;
    std::set<std::int32_t> others;  // that has no such column, or what cannot be compared
  };
  struct Table {
    std::vector<bool> rows;  // by their numbers
    std::int64_t count = 0;  // of them
    std::map<std::string, Column, std::less<>> columns;  // that were asked
    std::int64_t told = 0;
  };
  // What an index must be asked for so that no match is missed.
  struct Range {
    std::string_view column;
    double low, high;
    std::optional<std::string_view> text;  // in place of numbers
    bool texts;                            // whether texts may match, or cannot be judged
  };
  static bool ranges(const predicates::Node& node, std::vector<Range>& found);
  static void enter(Column& column, std::string_view name, std::int32_t row, std::string_view key,
                    std::string_view value);
  std::map<std::string, Table, std::less<>> tables_;
};

template <typename TextsOf>
std::vector<std::int32_t> RowIndex::candidates(const predicates::Predicate& predicate, const TextsOf& texts_of) {
  Table& table = tables_.find(predicate.table)->second;
  std::vector<Range> asked;
  const auto each_row = [&](const auto& visit) {
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      if (table.rows[row]) visit(static_cast<std::int32_t>(row));
  };
  if (!ranges(predicate.where, asked)) {
    std::vector<std::int32_t> all;
    each_row([&](std::int32_t row) { all.push_back(row); });
    return all;
  }
  std::set<std::int32_t> found;
  for (const Range& range : asked) {
    const auto [at, fresh] = table.columns.try_emplace(std::string(range.column));
    Column& column = at->second;
    if (fresh)
      each_row([&](std::int32_t row) {
        if (const auto texts = texts_of(row))
          enter(column, range.column, row, *predicates::key_in_table(texts->first, predicate.table), texts->second);
      });
    found.insert(column.others.begin(), column.others.end());
    if (range.text) {
      for (auto i = column.texts.lower_bound({std::string(*range.text), 0});
           i != column.texts.end() && i->first == *range.text; ++i)
        found.insert(i->second);
      continue;
    }
    for (auto i = column.numbers.lower_bound({range.low, 0}); i != column.numbers.end() && i->first <= range.high; ++i)
      found.insert(i->second);
    if (range.texts)
      for (const auto& [text, row] : column.texts) found.insert(row);
  }
  return {found.begin(), found.end()};
}

}  // namespace isolang::watch
