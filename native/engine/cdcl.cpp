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

// Learns the clause of the first unique implication point of the conflict level, which becomes its first literal.
// Returns the highest level of the others.
std::int32_t Cdcl::analyze(ClauseId conflict, std::int32_t conflict_level) {
  learnt_.assign(1, Lit{});
  std::vector<std::int32_t> used;
  std::vector<std::int32_t> clear;
  std::int32_t open = 0;
  std::size_t at = trail_.size();
  ClauseId reason = conflict;
  Lit uip{};
  const auto visit = [&](Lit l) {
    const std::int32_t v = l.variable();
    if (seen_[idx(v)]) return;
    seen_[idx(v)] = 1;
    clear.push_back(v);
    if (level_of_[idx(v)] == 0) {
      used.push_back(~v);
      return;
    }
    bump(v);
    if (level_of_[idx(v)] == conflict_level)
      ++open;
    else
      learnt_.push_back(l);
  };
  for (;;) {
    used.push_back(reason);
    const Clause& c = clauses_[idx(reason)];
    for (std::int32_t k = 0; k < c.size; ++k)
      if (const Lit l = pool_[c.start + idx(k)]; !(l == uip)) visit(l);
    do {
      uip = trail_[--at];
    } while (!seen_[idx(uip.variable())] || level_of_[idx(uip.variable())] != conflict_level);
    if (--open == 0) break;
    reason = reason_[idx(uip.variable())];
  }
  learnt_[0] = ~uip;
  // Drop literals that the others imply in one step.
  std::size_t keep = 1;
  for (std::size_t i = 1; i < learnt_.size(); ++i) {
    const ClauseId why = reason_[idx(learnt_[i].variable())];
    bool implied = why != kNoClause;
    if (implied) {
      const Clause& c = clauses_[idx(why)];
      for (std::int32_t k = 0; k < c.size && implied; ++k) {
        const Lit l = pool_[c.start + idx(k)];
        if (l.variable() != learnt_[i].variable() && !seen_[idx(l.variable())] && level_of_[idx(l.variable())] > 0)
          implied = false;
      }
      if (implied) {
        used.push_back(why);
        for (std::int32_t k = 0; k < c.size; ++k) {
          const std::int32_t v = pool_[c.start + idx(k)].variable();
          if (level_of_[idx(v)] == 0) used.push_back(~v);
        }
      }
    }
    if (!implied) learnt_[keep++] = learnt_[i];
  }
  learnt_.resize(keep);
  for (const std::int32_t v : clear) seen_[idx(v)] = 0;

  std::int32_t back = 0;
  std::vector<std::int32_t> levels;
  for (std::size_t i = 1; i < learnt_.size(); ++i) {
    const std::int32_t l = level_of_[idx(learnt_[i].variable())];
    levels.push_back(l);
    if (l > back) {
      back = l;
      std::swap(learnt_[1], learnt_[i]);
    }
  }
  std::ranges::sort(levels);
  const auto glue = static_cast<std::int32_t>(std::ranges::unique(levels).begin() - levels.begin()) + 1;
  const ClauseId id = store(learnt_, true, glue);
  antecedents_.insert(antecedents_.end(), used.begin(), used.end());
  if (learnt_.size() > 1) watch(id);
  increment_ /= 0.95;
  return back;
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

// The assumptions among what made this one false: every decision so far is an assumption.
void Cdcl::explain_failure(Lit assumption) {
  failed_assumptions.assign(1, assumption);
  std::vector<std::int32_t> clear{assumption.variable()};
  seen_[idx(assumption.variable())] = 1;
  for (std::size_t i = trail_.size(); i-- > 0;) {
    const Lit l = trail_[i];
    const std::int32_t v = l.variable();
    if (!seen_[idx(v)] || level_of_[idx(v)] == 0) continue;
    if (reason_[idx(v)] == kNoClause) {
      failed_assumptions.push_back(l);
      continue;
    }
    for (const Lit other : literals(reason_[idx(v)])) {
      if (seen_[idx(other.variable())]) continue;
      seen_[idx(other.variable())] = 1;
      clear.push_back(other.variable());
    }
  }
  for (const std::int32_t v : clear) seen_[idx(v)] = 0;
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

// At level 0: forgets the worse half of the learned clauses. Their literals stay, for the proof.
void Cdcl::reduce() {
  next_reduce_ = conflicts + conflicts / 2 + 4000;
  std::vector<ClauseId> candidates;
  for (std::size_t i = 0; i < clauses_.size(); ++i)
    if (clauses_[i].learned && !clauses_[i].deleted && clauses_[i].glue > 2 && clauses_[i].size > 2)
      candidates.push_back(static_cast<ClauseId>(i));
  std::ranges::stable_sort(candidates, std::greater<>(), [&](ClauseId id) { return clauses_[idx(id)].glue; });
  candidates.resize(candidates.size() / 2);
  for (const ClauseId id : candidates) {
    const Lit first = pool_[clauses_[idx(id)].start];
    if (value(first) > 0 && reason_[idx(first.variable())] == id) continue;
    clauses_[idx(id)].deleted = true;
  }
}

std::vector<ClauseId> Cdcl::core() const {
  // A clause that is empty or unit at level 0 leans on the variables fixed there; a learned clause names those that its
  // own derivation used.
  std::vector<std::uint8_t> needed(clauses_.size(), 0), leans(clauses_.size(), 0), fixed(value_.size(), 0);
  std::vector<ClauseId> work;
  const auto need = [&](ClauseId id, bool at_level_zero) {
    if (needed[idx(id)] && (!at_level_zero || leans[idx(id)])) return;
    needed[idx(id)] = 1;
    if (at_level_zero) leans[idx(id)] = 1;
    work.push_back(id);
  };
  const auto need_variable = [&](std::int32_t v) {
    if (fixed[idx(v)]) return;
    fixed[idx(v)] = 1;
    if (const ClauseId why = reason_[idx(v)]; why != kNoClause) need(why, true);
  };
  need(final_conflict_, true);
  while (!work.empty()) {
    const ClauseId id = work.back();
    work.pop_back();
    const Clause& c = clauses_[idx(id)];
    if (leans[idx(id)])
      for (std::int32_t k = 0; k < c.size; ++k) {
        const std::int32_t v = pool_[c.start + idx(k)].variable();
        if (value_[idx(v)] != 0 && level_of_[idx(v)] == 0) need_variable(v);
      }
    if (!c.learned) continue;
    const std::size_t end = next_antecedents(id);
    for (std::size_t i = c.antecedents; i < end; ++i) {
      if (antecedents_[i] >= 0)
        need(antecedents_[i], false);
      else
        need_variable(~antecedents_[i]);
    }
  }
  std::vector<ClauseId> ids;
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) ids.push_back(static_cast<ClauseId>(i));
  return ids;
}

std::size_t Cdcl::next_antecedents(ClauseId id) const {
  return idx(id) + 1 < clauses_.size() ? clauses_[idx(id) + 1].antecedents : antecedents_.size();
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
