// The main loop is `Cdcl::solve`: propagate clauses and then the theory, analyze a conflict and go
// back, or else decide. Invariants: the first two literals of a clause are its watched literals,
// the reason of a literal comes before it on the trail, and the level of a literal is the highest
// level of the literals that imply it.
#include "engine/cdcl/cdcl.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kRestart = 64;      // number of conflicts
// A restart is delayed by one conflict for every group of this many variables that it would decide again.
constexpr std::int64_t kRestartCost = 64;

// Returns the i-th term of 1 1 2 1 1 2 4 … (Luby, Sinclair, Zuckerman 1993).
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
// If a backjump would undo more levels than this, go_back undoes only one level, or takes out the level of the
// conflict.
constexpr std::int32_t kLongBackjump = 10;
// take_out also removes later levels whose groups are at most this far away.
constexpr std::int32_t kGroupDistance = 16;

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
  activity_.push_back(static_cast<double>(random_ >> 11) * 1e-22);  // the seed breaks ties
  heap_place_.push_back(-1);
  watches_.emplace_back();
  watches_.emplace_back();
  heap_insert(v);
  return v;
}

ClauseId Cdcl::store(const std::vector<Lit>& literals, bool learned, std::int32_t glue) {
  const auto id = static_cast<ClauseId>(clauses_.size());
  clauses_.push_back({pool_.size(), static_cast<std::int32_t>(literals.size()), glue, learned,
                      false, antecedents_.size()});
  pool_.insert(pool_.end(), literals.begin(), literals.end());
  return id;
}

std::vector<Lit> Cdcl::literals(ClauseId id) const {
  const Clause& c = clauses_[id];
  const auto first = pool_.begin() + static_cast<std::ptrdiff_t>(c.start);
  return {first, first + c.size};
}

void Cdcl::watch(ClauseId id) {
  const Lit* const l = lits(id);
  watches_[(~l[0]).code].push_back({id, l[1]});
  watches_[(~l[1]).code].push_back({id, l[0]});
}

ClauseId Cdcl::add_clause(std::vector<Lit> literals) {
  // Open and true literals come first, because the two watched literals must not be false, or must
  // become open first.
  std::ranges::stable_sort(literals, std::greater<>(), [&](Lit l) {
    return value(l) >= 0 ? level() + 1 : level_of_[l.variable()];
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
  const Clause& c = clauses_[id];
  std::int32_t highest = 0;
  for (std::size_t k = from; k < idx(c.size); ++k)
    highest = std::max(highest, level_of_[pool_[c.start + k].variable()]);
  return highest;
}

void Cdcl::enqueue(Lit l, ClauseId reason, std::int32_t at_level) {
  value_[l.variable()] = l.negated() ? -1 : 1;
  level_of_[l.variable()] = at_level;
  reason_[l.variable()] = reason;
  trail_.push_back(l);
}

ClauseId Cdcl::propagate_clauses() {
  while (clause_head_ < trail_.size()) {
    const Lit p = trail_[clause_head_++];
    auto& watching = watches_[p.code];
    std::size_t keep = 0;
    for (std::size_t i = 0; i < watching.size(); ++i) {
      const Watch w = watching[i];
      if (value(w.blocker) > 0) {
        watching[keep++] = w;
        continue;
      }
      const Clause& c = clauses_[w.clause];
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
          watches_[(~l[1]).code].push_back({w.clause, l[0]});
          moved = true;
          break;
        }
      if (moved) continue;
      watching[keep++] = {w.clause, l[0]};
      // mutant: false-clause-missed
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
    // mutant: refused-counts
    theory_.unassign(l);  // it stays on the trail and must be assigned again
    --theory_head_;
    const ClauseId id = store(theory_conflict_, false, 0);
    theory_.lemma(id);
    // Watches the two literals that backtracking opens first: those of the highest levels.
    Lit* const c = lits(id);
    const auto size = idx(theory_conflict_.size());
    for (std::size_t slot = 0; slot < std::min<std::size_t>(2, size); ++slot)
      for (std::size_t k = slot + 1; k < size; ++k)
        if (level_of_[c[k].variable()] > level_of_[c[slot].variable()]) std::swap(c[slot], c[k]);
    if (size > 1) watch(id);
    return id;
  }
}

bool Cdcl::decide() {
  while (!heap_.empty()) {
    const std::int32_t v = heap_pop();
    if (value_[v] != 0) continue;
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

// Assigns the assumptions, each at a separate level. Returns false if one of them contradicts those
// before it.
bool Cdcl::assume(const std::vector<Lit>& assumptions) {
  while (idx(level()) < assumptions.size()) {
    const Lit l = assumptions[level()];
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

Cdcl::Result Cdcl::solve(std::int64_t max_conflicts, std::int64_t max_decisions,
                         const std::vector<Lit>& assumptions) {
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
      if (conflicts >= max_conflicts || decisions >= max_decisions || full() || theory_.out_of_effort()) {
        restart();  // so that another call can continue
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
  activity_[v] += increment_;
  if (activity_[v] > 1e100) {
    for (double& a : activity_) a *= 1e-100;
    increment_ *= 1e-100;
  }
  if (heap_place_[v] >= 0) heap_up(idx(heap_place_[v]));
}

void Cdcl::heap_insert(std::int32_t v) {
  heap_place_[v] = static_cast<std::int32_t>(heap_.size());
  heap_.push_back(v);
  heap_up(heap_.size() - 1);
}

std::int32_t Cdcl::heap_pop() {
  const std::int32_t v = heap_[0];
  heap_place_[v] = -1;
  heap_[0] = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) {
    heap_place_[heap_[0]] = 0;
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
    heap_place_[heap_[i]] = static_cast<std::int32_t>(i);
    i = parent;
  }
  heap_[i] = v;
  heap_place_[v] = static_cast<std::int32_t>(i);
}

void Cdcl::heap_down(std::size_t i) {
  const std::int32_t v = heap_[i];
  for (;;) {
    std::size_t child = 2 * i + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && precedes(heap_[child + 1], heap_[child])) ++child;
    if (!precedes(heap_[child], v)) break;
    heap_[i] = heap_[child];
    heap_place_[heap_[i]] = static_cast<std::int32_t>(i);
    i = child;
  }
  heap_[i] = v;
  heap_place_[v] = static_cast<std::int32_t>(i);
}

// Backtracking: the parts of the trail that are undone, and those that stay.

// Undoes levels until the first literal of the learned clause is open, and asserts this literal.
void Cdcl::go_back(std::int32_t conflict_level, std::int32_t back, bool chronological) {
  // ablation: nothing-distant
  // ablation: not-chronological
  if (chronological && level() - conflict_level > kLongBackjump)
    take_out(conflict_level);
  else
    backtrack(chronological && conflict_level - back > kLongBackjump ? conflict_level - 1 : back);
  in_order_ = in_order_ && level() == back;
  enqueue(learnt_[0], static_cast<ClauseId>(clauses_.size()) - 1, back);
}

void Cdcl::backtrack(std::int32_t target) {
  if (level() <= target) return;
  const std::size_t keep = level_start_[target];
  kept_.clear();
  for (std::size_t i = trail_.size(); i > keep; --i) {
    const Lit l = trail_[i - 1];
    // mutant: undo-untold
    if (i - 1 < theory_head_) theory_.unassign(l);
    if (level_of_[l.variable()] <= target) {
      kept_.push_back(l);
      continue;
    }
    open(l);
  }
  theory_.undo(theory_mark_[target]);
  trail_.resize(keep);
  trail_.insert(trail_.end(), kept_.rbegin(), kept_.rend());
  level_start_.resize(idx(target));
  theory_mark_.resize(idx(target));
  clause_head_ = theory_head_ = keep;
  if (target == 0) in_order_ = true;
}

// Takes out a level, the later levels of nearby groups, and all literals that these levels imply. The comment at the
// top of the header describes this step.
void Cdcl::take_out(std::int32_t target) {
  const auto group = [&](std::int32_t l) { return group_[trail_[level_start_[l - 1]].variable()]; };
  const std::int32_t here = group(target);
  const std::size_t first = level_start_[target - 1], mark = theory_mark_[target - 1];
  renumbered_.assign(idx(level()) + 1, 0);  // 0 for levels that are taken out
  std::int32_t levels = target - 1;
  for (std::int32_t l = target; l <= level(); ++l)
    if (l > target && std::abs(group(l) - here) > kGroupDistance) {
      renumbered_[l] = ++levels;
      theory_mark_[levels - 1] = theory_mark_[l - 1];
    }
  const auto leans_on_open = [&](Lit l) {
    const ClauseId why = reason_[l.variable()];
    if (why == kNoClause) return false;
    const Lit* const begin = lits(why);
    return std::any_of(begin, begin + clauses_[why].size,
                       [&](Lit other) { return value(other) == 0; });
  };
  std::size_t keep = first, assigned = theory_head_;
  for (std::size_t i = first; i < trail_.size(); ++i) {
    const Lit l = trail_[i];
    std::int32_t& at = level_of_[l.variable()];
    // mutant: leaning-stays
    if ((at >= target && renumbered_[at] == 0) || leans_on_open(l)) {
      if (i < theory_head_) {
        // mutant: taken-out-untold
        theory_.unassign(l);
        --assigned;
      }
      open(l);
      continue;
    }
    // mutant: level-not-renumbered
    if (at >= target) at = renumbered_[at];
    if (reason_[l.variable()] == kNoClause) level_start_[at - 1] = keep;
    trail_[keep++] = l;
  }
  trail_.resize(keep);
  decisions_kept += levels - (target - 1);
  level_start_.resize(idx(levels));
  theory_mark_.resize(idx(levels));
  theory_.forget_open(mark);
  // mutant: not-propagated-again
  clause_head_ = first;
  theory_head_ = assigned;
}

void Cdcl::open(Lit l) {
  value_[l.variable()] = 0;
  if (heap_place_[l.variable()] < 0) heap_insert(l.variable());
}

// Returns the number of levels to keep at a restart. Their decisions rank before the next decision,
// so the search would make them again.
std::int32_t Cdcl::reusable_level() {
  while (!heap_.empty() && value_[heap_[0]] != 0) heap_pop();
  if (heap_.empty()) return level();
  std::int32_t keep = 0;
  while (keep < level() && precedes(trail_[level_start_[keep]].variable(), heap_[0])) ++keep;
  return keep;
}

// Conflict analysis: the learned clause, its antecedents, and the choice of learned clauses to
// keep.

// Learns the clause of the first unique implication point of the conflict level, which becomes its
// first literal. Returns the highest level of the other literals.
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
    if (seen_[v]) return;
    seen_[v] = 1;
    clear.push_back(v);
    if (level_of_[v] == 0) {
      used.push_back(~v);
      return;
    }
    bump(v);
    if (level_of_[v] == conflict_level)
      ++open;
    else
      learnt_.push_back(l);
  };
  for (;;) {
    used.push_back(reason);
    const Clause& c = clauses_[reason];
    for (std::int32_t k = 0; k < c.size; ++k)
      if (const Lit l = pool_[c.start + idx(k)]; !(l == uip)) visit(l);
    do {
      uip = trail_[--at];
    } while (!seen_[uip.variable()] || level_of_[uip.variable()] != conflict_level);
    if (--open == 0) break;
    reason = reason_[uip.variable()];
  }
  learnt_[0] = ~uip;
  // Drops literals that the other literals imply in one step.
  std::size_t keep = 1;
  for (std::size_t i = 1; i < learnt_.size(); ++i) {
    const ClauseId why = reason_[learnt_[i].variable()];
    bool implied = why != kNoClause;
    if (implied) {
      const Clause& c = clauses_[why];
      for (std::int32_t k = 0; k < c.size && implied; ++k) {
        const Lit l = pool_[c.start + idx(k)];
        if (l.variable() != learnt_[i].variable() && !seen_[l.variable()] &&
            level_of_[l.variable()] > 0)
          implied = false;
      }
      if (implied) {
        used.push_back(why);
        for (std::int32_t k = 0; k < c.size; ++k) {
          const std::int32_t v = pool_[c.start + idx(k)].variable();
          if (level_of_[v] == 0) used.push_back(~v);
        }
      }
    }
    // mutant: learnt-loses-literal
    if (!implied) learnt_[keep++] = learnt_[i];
  }
  learnt_.resize(keep);
  for (const std::int32_t v : clear) seen_[v] = 0;

  std::int32_t back = 0;
  std::vector<std::int32_t> levels;
  for (std::size_t i = 1; i < learnt_.size(); ++i) {
    const std::int32_t l = level_of_[learnt_[i].variable()];
    levels.push_back(l);
    if (l > back) {
      back = l;
      std::swap(learnt_[1], learnt_[i]);
    }
  }
  std::ranges::sort(levels);
  const auto glue =
      static_cast<std::int32_t>(std::ranges::unique(levels).begin() - levels.begin()) + 1;
  const ClauseId id = store(learnt_, true, glue);
  antecedents_.insert(antecedents_.end(), used.begin(), used.end());
  if (learnt_.size() > 1) watch(id);
  increment_ /= 0.95;
  return back;
}

// Finds the assumptions that made this assumption false. Every decision so far is an assumption.
void Cdcl::explain_failure(Lit assumption) {
  failed_assumptions.assign(1, assumption);
  std::vector<std::int32_t> clear{assumption.variable()};
  seen_[assumption.variable()] = 1;
  for (std::size_t i = trail_.size(); i-- > 0;) {
    const Lit l = trail_[i];
    const std::int32_t v = l.variable();
    if (!seen_[v] || level_of_[v] == 0) continue;
    if (reason_[v] == kNoClause) {
      failed_assumptions.push_back(l);
      continue;
    }
    for (const Lit other : literals(reason_[v])) {
      if (seen_[other.variable()]) continue;
      seen_[other.variable()] = 1;
      clear.push_back(other.variable());
    }
  }
  for (const std::int32_t v : clear) seen_[v] = 0;
}

// Deletes the worse half of the learned clauses. Their literals are kept for the proof. Call this
// at level 0.
void Cdcl::reduce() {
  next_reduce_ = conflicts + conflicts / 2 + 4000;
  std::vector<ClauseId> candidates;
  for (std::size_t i = 0; i < clauses_.size(); ++i)
    if (clauses_[i].learned && !clauses_[i].deleted && clauses_[i].glue > 2 && clauses_[i].size > 2)
      candidates.push_back(static_cast<ClauseId>(i));
  std::ranges::stable_sort(candidates, std::greater<>(),
                           [&](ClauseId id) { return clauses_[id].glue; });
  candidates.resize(candidates.size() / 2);
  for (const ClauseId id : candidates) {
    const Lit first = pool_[clauses_[id].start];
    if (value(first) > 0 && reason_[first.variable()] == id) continue;
    clauses_[id].deleted = true;
  }
}

std::vector<ClauseId> Cdcl::core() const {
  // A clause that is empty or unit at level 0 depends on the variables fixed there. A learned
  // clause lists those that its own derivation used.
  std::vector<std::uint8_t> needed(clauses_.size(), 0), leans(clauses_.size(), 0),
      fixed(value_.size(), 0);
  std::vector<ClauseId> work;
  const auto need = [&](ClauseId id, bool at_level_zero) {
    if (needed[id] && (!at_level_zero || leans[id])) return;
    needed[id] = 1;
    if (at_level_zero) leans[id] = 1;
    work.push_back(id);
  };
  const auto need_variable = [&](std::int32_t v) {
    if (fixed[v]) return;
    fixed[v] = 1;
    if (const ClauseId why = reason_[v]; why != kNoClause) need(why, true);
  };
  need(final_conflict_, true);
  while (!work.empty()) {
    const ClauseId id = work.back();
    work.pop_back();
    const Clause& c = clauses_[id];
    if (leans[id])
      for (std::int32_t k = 0; k < c.size; ++k) {
        const std::int32_t v = pool_[c.start + idx(k)].variable();
        if (value_[v] != 0 && level_of_[v] == 0) need_variable(v);
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
  return idx(id) + 1 < clauses_.size() ? clauses_[id + 1].antecedents : antecedents_.size();
}

}  // namespace isolang
