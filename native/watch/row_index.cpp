// Each column compared by a predicate has sorted indexes of its numbers and its texts; rows with other values are
// always candidates. A changed row is entered again, and `drop_stale` drops the index of a table with too many outdated
// entries.
#include "watch/row_index.hpp"

#include <algorithm>
#include <limits>

namespace isolang::watch {

using predicates::Test;

bool ranges(const predicates::Node& node, std::vector<Range>& found) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  switch (node.test) {
    case Test::all: {  // one bounded part is enough; a part that requires equality is best
      std::vector<Range> best;
      bool any = false;
      for (const auto& part : node.parts) {
        std::vector<Range> one;
        if (!ranges(part, one)) continue;
        const auto wide = [](const std::vector<Range>& some) {
          return std::ranges::any_of(some, [](const Range& r) { return !r.text && r.low != r.high; });
        };
        if (!any || (wide(best) && !wide(one))) best = std::move(one);
        any = true;
      }
      // Combine a lower and an upper bound of the same column.
      if (any && best.size() == 1 && best[0].texts)
        for (const auto& part : node.parts) {
          std::vector<Range> one;
          if (!ranges(part, one) || one.size() != 1 || one[0].text || one[0].column != best[0].column) continue;
          best[0].low = std::max(best[0].low, one[0].low);
          best[0].high = std::min(best[0].high, one[0].high);
        }
      found.insert(found.end(), best.begin(), best.end());
      return any;
    }
    case Test::any:
      return std::ranges::all_of(node.parts, [&](const auto& part) { return ranges(part, found); });
    case Test::equal:
    case Test::less:
    case Test::less_equal:
    case Test::greater:
    case Test::greater_equal: break;
    default: return false;
  }
  const predicates::Cell& cell = node.cells[0];
  const bool equal = node.test == Test::equal;
  if (cell.kind == predicates::Cell::Kind::text && equal) {
    found.push_back({node.column, 0, 0, cell.text, true});
    return true;
  }
  if (cell.kind != predicates::Cell::Kind::number) return false;
  const bool above = node.test == Test::greater || node.test == Test::greater_equal;
  found.push_back({node.column, equal || above ? cell.number : -kAll, equal || !above ? cell.number : kAll, std::nullopt,
                   !equal});
  return true;
}

Indexed indexed(std::string_view column, std::string_view key, std::string_view value) {
  predicates::Row read;
  predicates::read_row(value, read);
  const predicates::Cell own = predicates::cell_of(key);
  const predicates::Cell* const cell = predicates::column(read, own, column);
  if (cell == nullptr || cell->kind == predicates::Cell::Kind::odd) return {Indexed::Kind::other, 0, {}};
  if (cell->kind == predicates::Cell::Kind::number) return {Indexed::Kind::number, cell->number, {}};
  if (cell->kind == predicates::Cell::Kind::text) return {Indexed::Kind::text, 0, cell->text};
  return {};
}

void RowIndex::enter(Column& column, std::string_view name, std::int32_t row, std::string_view key,
                     std::string_view value) {
  const Indexed cell = indexed(name, key, value);
  if (cell.kind == Indexed::Kind::other)
    column.others.push_back(row);
  else if (cell.kind == Indexed::Kind::number)
    column.numbers.add({cell.number, row});
  else if (cell.kind == Indexed::Kind::text)
    column.texts.add({std::string(cell.text), row});
}

void RowIndex::add_row(std::string_view name, std::int32_t row, std::string_view key, std::string_view value) {
  const auto at = tables_.find(name);
  const auto own = predicates::key_in_table(key, name);
  if (at == tables_.end() || !own) return;
  Table& table = at->second;
  const auto place = static_cast<std::size_t>(row);
  if (table.rows.size() <= place) table.rows.resize(std::max(place + 1, 2 * table.rows.size()));
  table.count += table.rows[place] ? 0 : 1;
  table.rows[place] = true;
  ++table.entered;
  for (auto& [column, index] : table.columns) enter(index, column, row, *own, value);
}

void RowIndex::add_row(std::int32_t row, std::string_view key, std::string_view value) {
  for (const auto& [name, table] : tables_) add_row(name, row, key, value);
}

void RowIndex::drop_stale() {
  std::erase_if(tables_, [](const auto& one) {
    return one.second.entered > 4 * one.second.count + 65536;
  });
}

std::int64_t RowIndex::memory() const {
  std::size_t bytes = 0;
  for (const auto& [name, table] : tables_) {
    bytes += table.rows.size() / 8;
    for (const auto& [column, index] : table.columns)
      bytes += index.numbers.room() * 16 + index.texts.room() * 40 + index.others.capacity() * 4;
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace isolang::watch
