// What follows from a conflict: the clause that is learned, what it rests on, and which of those learned are kept.
#include <algorithm>

#include "engine/cdcl.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

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

}  // namespace isolang
