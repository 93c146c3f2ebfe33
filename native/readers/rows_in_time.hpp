// The rows of a table at one moment of a replay, with an index for each column used by predicates.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "readers/predicate.hpp"

namespace isolang::predicates {

class RowsInTime {
 public:
  RowsInTime(Rows& rows, std::unordered_map<std::int32_t, Cell> keys)
      : rows_(rows), keys_(std::move(keys)) {}

  bool holds_key(std::int32_t key) const { return keys_.contains(key); }
  // Call this for each predicate before there are rows.
  void prepare(const Predicate& p) {
    if (const auto b = bounds(p.where))
      columns_.try_emplace(std::string(b->column));
    else if (views_.size() < kViews)
      views_.try_emplace(&p);
  }
  // Sets the row of a key. `value` is an atom, or kNoAtom for no row.
  void put(std::int32_t key, std::int32_t value) {
    const auto [at, fresh] = now_.try_emplace(key, kNoAtom);
    if (at->second != kNoAtom) each_place(key, at->second, [](auto& of, const auto& entry) { of.erase(entry); });
    at->second = value;
    if (value != kNoAtom) each_place(key, value, [](auto& of, const auto& entry) { of.insert(entry); });
    for (auto& [p, matching] : views_)
      if (value != kNoAtom && matches(p->where, rows_.of(value), keys_.at(key)))
        matching.insert(key);
      else
        matching.erase(key);
  }
  // Visits each key whose row matches.
  template <typename Visit>
  void each_match(const Predicate& p, const Visit& visit) const {
    const auto judge = [&](std::int32_t key) {
      const std::int32_t value = now_.at(key);
      if (value != kNoAtom && matches(p.where, rows_.of(value), keys_.at(key))) visit(key);
    };
    if (const auto b = bounds(p.where)) {
      const Column& column = columns_.find(b->column)->second;
      for (auto i = column.numbers.lower_bound({b->low, std::numeric_limits<std::int32_t>::min()});
           i != column.numbers.end() && i->first <= b->high; ++i)
        judge(i->second);
      for (const std::int32_t key : column.others) judge(key);
    } else if (const auto view = views_.find(&p); view != views_.end()) {
      for (const std::int32_t key : view->second) visit(key);
    } else {
      for (const auto& [key, value] : now_) judge(key);
    }
  }

 private:
  static constexpr std::size_t kViews = 64;
  struct Column {
    std::set<std::pair<double, std::int32_t>> numbers;
    std::set<std::int32_t> others;  // keys whose rows have neither a number nor NULL in the column
  };

  template <typename Change>
  void each_place(std::int32_t key, std::int32_t value, const Change& change) {
    for (auto& [name, of] : columns_) {
      const Cell* const cell = column(rows_.of(value), keys_.at(key), name);
      if (cell != nullptr && cell->kind == Cell::Kind::number)
        change(of.numbers, std::pair(cell->number, key));
      else if (cell == nullptr || cell->kind != Cell::Kind::null)
        change(of.others, key);
    }
  }

  Rows& rows_;
  std::unordered_map<std::int32_t, Cell> keys_;
  std::unordered_map<std::int32_t, std::int32_t> now_;
  std::map<std::string, Column, std::less<>> columns_;
  std::map<const Predicate*, std::set<std::int32_t>> views_;  // the matching keys of predicates that no column bounds
};

}  // namespace isolang::predicates
