#include "engine/cdcl.hpp"

#include <algorithm>
#include <utility>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int64_t kRestart = 64;      // conflicts
constexpr std::int64_t kRestartCost = 64;  // variables that are decided again, for each of them

// 1 1 2 1 1 2 4 …: Luby, Sinclair, Zuckerman 1993.
std::int64_t luby(std::int64_t i) {
  std::int64_t size = 1, power = 1;
  while (size < i + 1) {
    size = 2 * size + 1;
    power *= 2;
  }
  while (size - 1 != i) {
    size /= 2;
    power /= 2;
    i %= size;
  }
  return power;
}

}  // namespace

std::int32_t Cdcl::new_variable(std::int32_t group) {
  const auto v = static_cast<std::int32_t>(value_.size());
  value_.push_back(0);
  level_of_.push_back(0);
  reason_.push_back(kNoClause);
  seen_.push_back(0);
  group_.push_back(group);
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  activity_.push_back(static_cast<double>(random_ >> 11) * 1e-22);  // ties are broken by the seed
  heap_place_.push_back(-1);
  watches_.emplace_back();
  watches_.emplace_back();
  heap_insert(v);
  return v;
}

ClauseId Cdcl::store(const std::vector<Lit>& literals, bool learned, std::int32_t glue) {
  const auto id = static_cast<ClauseId>(clauses_.size());
  clauses_.push_back(
      {pool_.size(), static_cast<std::int32_t>(literals.size()), glue, learned, false, antecedents_.size()});
  pool_.insert(pool_.end(), literals.begin(), literals.end());
  return id;
}

std::vector<Lit> Cdcl::literals(ClauseId id) const {
  const Clause& c = clauses_[idx(id)];
  const auto first = pool_.begin() + static_cast<std::ptrdiff_t>(c.start);
  return {first, first + c.size};
}

void Cdcl::watch(ClauseId id) {
  const Lit* const l = lits(id);
  watches_[idx((~l[0]).code)].push_back({id, l[1]});
  watches_[idx((~l[1]).code)].push_back({id, l[0]});
}

ClauseId Cdcl::add_clause(std::vector<Lit> literals) {
  // Open and true literals first, so that the two watched ones are not false, or else become open first.
  std::ranges::stable_sort(literals, std::greater<>(), [&](Lit l) {
    return value(l) >= 0 ? level() + 1 : level_of_[idx(l.variable())];
  });
  const ClauseId id = store(literals, false, 0);
  if (literals.size() > 1) watch(id);
  if (literals.empty() || value(literals[0]) < 0) {
    if (final_conflict_ == kNoClause) final_conflict_ = id;
  } else if ((literals.size() == 1 || value(literals[1]) < 0) && value(literals[0]) == 0) {
    const std::int32_t implied_at = highest_level(id, 1);
    enqueue(literals[0], id, implied_at);
    in_order_ = in_order_ && implied_at == level();
  }
  return id;
}

std::int32_t Cdcl::highest_level(ClauseId id, std::size_t from) const {
  const Clause& c = clauses_[idx(id)];
  std::int32_t highest = 0;
  for (std::size_t k = from; k < idx(c.size); ++k)
    highest = std::max(highest, level_of_[idx(pool_[c.start + k].variable())]);
  return highest;
}

void Cdcl::enqueue(Lit l, ClauseId reason, std::int32_t at_level) {
  value_[idx(l.variable())] = l.negated() ? -1 : 1;
  level_of_[idx(l.variable())] = at_level;
  reason_[idx(l.variable())] = reason;
  trail_.push_back(l);
}

ClauseId Cdcl::propagate_clauses() {
  while (clause_head_ < trail_.size()) {
    const Lit p = trail_[clause_head_++];
    auto& watching = watches_[idx(p.code)];
    std::size_t keep = 0;
    for (std::size_t i = 0; i < watching.size(); ++i) {
      const Watch w = watching[i];
      if (value(w.blocker) > 0) {
        watching[keep++] = w;
        continue;
      }
      const Clause& c = clauses_[idx(w.clause)];
      if (c.deleted) continue;
      Lit* const l = pool_.data() + c.start;
      if (l[0] == ~p) std::swap(l[0], l[1]);
      if (value(l[0]) > 0) {
        watching[keep++] = {w.clause, l[0]};
        continue;
      }
      bool moved = false;
      for (std::int32_t k = 2; k < c.size; ++k)
        if (value(l[k]) >= 0) {
          std::swap(l[1], l[k]);
          watches_[idx((~l[1]).code)].push_back({w.clause, l[0]});
          moved = true;
          break;
        }
      if (moved) continue;
      watching[keep++] = {w.clause, l[0]};
      if (value(l[0]) < 0) {
        for (++i; i < watching.size(); ++i) watching[keep++] = watching[i];
        watching.resize(keep);
        return w.clause;
      }
      enqueue(l[0], w.clause, in_order_ ? level() : highest_level(w.clause, 1));
    }
    watching.resize(keep);
  }
  return kNoClause;
}

ClauseId Cdcl::propagate() {
  for (;;) {
    if (const ClauseId conflict = propagate_clauses(); conflict != kNoClause) return conflict;
    if (theory_head_ == trail_.size()) return kNoClause;
    budget_.poll();
    const Lit l = trail_[theory_head_++];
    if (theory_.assign(l, theory_conflict_)) continue;
    theory_.unassign(l);  // where it stays, it is to be told again
    --theory_head_;
    const ClauseId id = store(theory_conflict_, false, 0);
    theory_.lemma(id);
    // Watch the two literals that will be open first when we go back: those of the highest levels.
    Lit* const c = lits(id);
    const auto size = static_cast<std::size_t>(theory_conflict_.size());
    for (std::size_t slot = 0; slot < std::min<std::size_t>(2, size); ++slot)
      for (std::size_t k = slot + 1; k < size; ++k)
        if (level_of_[idx(c[k].variable())] > level_of_[idx(c[slot].variable())]) std::swap(c[slot], c[k]);
    if (size > 1) watch(id);
    return id;
  }
}

bool Cdcl::decide() {
  while (!heap_.empty()) {
    const std::int32_t v = heap_pop();
    if (value_[idx(v)] != 0) continue;
    ++decisions;
    level_start_.push_back(trail_.size());
    theory_mark_.push_back(theory_.mark());
    const Lit l = theory_.choice(v);
    if (l.variable() != v) heap_insert(v);
    enqueue(l, kNoClause);
    return true;
  }
  return false;
}

// Each assumption has a level of its own. False: one of them cannot hold together with those before it.
bool Cdcl::assume(const std::vector<Lit>& assumptions) {
  while (idx(level()) < assumptions.size()) {
    const Lit l = assumptions[idx(level())];
    if (value(l) < 0) {
      explain_failure(l);
      return false;
    }
    level_start_.push_back(trail_.size());
    theory_mark_.push_back(theory_.mark());
    if (value(l) > 0) continue;
    enqueue(l, kNoClause);
    return true;
  }
  return true;
}

Cdcl::Result Cdcl::solve(std::int64_t max_conflicts, std::int64_t max_decisions, const std::vector<Lit>& assumptions) {
  std::int64_t run = 0, left = kRestart * luby(0);
  failed_assumptions.clear();
  for (;;) {
    if (final_conflict_ != kNoClause) return Result::unsatisfiable;
    if (const ClauseId conflict = propagate(); conflict != kNoClause) {
      ++conflicts;
      const std::int32_t conflict_level = highest_level(conflict, 0);
      if (conflict_level == 0) {
        backtrack(0);
        final_conflict_ = conflict;
        return Result::unsatisfiable;
      }
      go_back(conflict_level, analyze(conflict, conflict_level), assumptions.empty());
      if (conflicts >= max_conflicts || decisions >= max_decisions || full() || theory_.tired()) {
        restart();  // so that another call can go on
        return Result::gave_up;
      }
      --left;
      continue;
    }
    if (left <= 0) {
      ++restarts;
      left = std::max<std::int64_t>(kRestart, variables() / kRestartCost) * luby(++run);
      if (conflicts > next_reduce_) {
        restart();
        reduce();
      } else {
        backtrack(assumptions.empty() ? reusable_level() : 0);
      }
      continue;
    }
    if (idx(level()) < assumptions.size()) {
      if (!assume(assumptions)) return Result::unsatisfiable;
      continue;
    }
    if (decide()) continue;
    switch (theory_.complete()) {
      case Theory::Answer::consistent:
        return Result::satisfiable;
      case Theory::Answer::extended:
        break;
      case Theory::Answer::gives_up:
        return Result::gave_up;
    }
  }
}

void Cdcl::bump(std::int32_t v) {
  activity_[idx(v)] += increment_;
  if (activity_[idx(v)] > 1e100) {
    for (double& a : activity_) a *= 1e-100;
    increment_ *= 1e-100;
  }
  if (heap_place_[idx(v)] >= 0) heap_up(idx(heap_place_[idx(v)]));
}

void Cdcl::heap_insert(std::int32_t v) {
  heap_place_[idx(v)] = static_cast<std::int32_t>(heap_.size());
  heap_.push_back(v);
  heap_up(heap_.size() - 1);
}

std::int32_t Cdcl::heap_pop() {
  const std::int32_t v = heap_[0];
  heap_place_[idx(v)] = -1;
  heap_[0] = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) {
    heap_place_[idx(heap_[0])] = 0;
    heap_down(0);
  }
  return v;
}

void Cdcl::heap_up(std::size_t i) {
  const std::int32_t v = heap_[i];
  while (i > 0) {
    const std::size_t parent = (i - 1) / 2;
    if (!precedes(v, heap_[parent])) break;
    heap_[i] = heap_[parent];
    heap_place_[idx(heap_[i])] = static_cast<std::int32_t>(i);
    i = parent;
  }
  heap_[i] = v;
  heap_place_[idx(v)] = static_cast<std::int32_t>(i);
}

void Cdcl::heap_down(std::size_t i) {
  const std::int32_t v = heap_[i];
  for (;;) {
    std::size_t child = 2 * i + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && precedes(heap_[child + 1], heap_[child])) ++child;
    if (!precedes(heap_[child], v)) break;
    heap_[i] = heap_[child];
    heap_place_[idx(heap_[i])] = static_cast<std::int32_t>(i);
    i = child;
  }
  heap_[i] = v;
  heap_place_[idx(v)] = static_cast<std::int32_t>(i);
}

}  // namespace isolang
