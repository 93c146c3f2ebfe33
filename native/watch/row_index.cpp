#include "watch/row_index.hpp"

#include <algorithm>
#include <limits>

namespace isolang::watch {

using predicates::Cell;
using predicates::Test;

bool RowIndex::ranges(const predicates::Node& node, std::vector<Range>& found) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  switch (node.test) {
    case Test::all: {  // one part that is bounded is enough; one by an equal value is the best
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
      // A lower and an upper bound of one column.
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
  const Cell& cell = node.cells[0];
  const bool equal = node.test == Test::equal;
  if (cell.kind == Cell::Kind::text && equal) {
    found.push_back({node.column, 0, 0, cell.text, true});
    return true;
  }
  if (cell.kind != Cell::Kind::number) return false;
  const bool above = node.test == Test::greater || node.test == Test::greater_equal;
  found.push_back({node.column, equal || above ? cell.number : -kAll, equal || !above ? cell.number : kAll, std::nullopt,
                   !equal});
  return true;
}

void RowIndex::enter(Column& column, std::string_view name, std::int32_t row, std::string_view key,
                     std::string_view value) {
  predicates::Row read;
  predicates::read_row(value, read);
  const Cell own = predicates::cell_of(key);
  const Cell* const cell = predicates::column(read, own, name);
  if (cell == nullptr || cell->kind == Cell::Kind::odd)
    column.others.insert(row);
  else if (cell->kind == Cell::Kind::number)
    column.numbers.emplace(cell->number, row);
  else if (cell->kind == Cell::Kind::text)
    column.texts.emplace(cell->text, row);
}

void RowIndex::tell(std::string_view name, std::int32_t row, std::string_view key, std::string_view value) {
  const auto at = tables_.find(name);
  const auto own = predicates::key_in_table(key, name);
  if (at == tables_.end() || !own) return;
  Table& table = at->second;
  const auto place = static_cast<std::size_t>(row);
  if (table.rows.size() <= place) table.rows.resize(std::max(place + 1, 2 * table.rows.size()));
  table.count += table.rows[place] ? 0 : 1;
  table.rows[place] = true;
  ++table.told;
  for (auto& [column, index] : table.columns) enter(index, column, row, *own, value);
}

void RowIndex::tell(std::int32_t row, std::string_view key, std::string_view value) {
  for (const auto& [name, table] : tables_) tell(name, row, key, value);
}

void RowIndex::drop_stale() {
  std::erase_if(tables_, [](const auto& one) {
    return one.second.told > 4 * one.second.count + 65536;
  });
}

std::int64_t RowIndex::memory() const {
  constexpr std::size_t kNode = 48;  // of a tree, about
  std::size_t nodes = 0, texts = 0;
  for (const auto& [name, table] : tables_) {
    texts += table.rows.size() / 8;
    for (const auto& [column, index] : table.columns) {
      nodes += index.numbers.size() + index.texts.size() + index.others.size();
      texts += index.texts.size() * 32;
    }
  }
  return static_cast<std::int64_t>(nodes * kNode + texts);
}

}  // namespace isolang::watch
