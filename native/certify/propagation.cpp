// `add` stores a clause and assigns the literals that follow. `implies` tests a clause: it assumes that all of its
// literals are false, propagates, and undoes the assumptions.
#include "certify/propagation.hpp"

#include <algorithm>

namespace isolang::certify {

Lit Propagation::variable(std::int32_t group) {
  const Lit literal = static_cast<Lit>(holds_.size());
  holds_.insert(holds_.end(), {0, 0});
  watches_.resize(holds_.size());
  group_.push_back(group);
  if (group != kNoGroup) {
    auto& members = groups_[group];
    // No clause watches the new variable yet, so nothing follows from this assignment.
    if (std::any_of(members.begin(), members.end(), [&](Lit other) { return holds(other); }))
      assign(literal + 1);
    members.push_back(literal);
  }
  return literal;
}

void Propagation::add(std::vector<Lit> clause) {
  std::sort(clause.begin(), clause.end());
  clause.erase(std::unique(clause.begin(), clause.end()), clause.end());
  for (std::size_t i = 0; i + 1 < clause.size(); ++i)
    if ((clause[i] ^ 1) == clause[i + 1]) return;
  // SOUND BECAUSE a literal that holds without assumptions always holds.
  if (std::any_of(clause.begin(), clause.end(), [&](Lit l) { return holds(l); })) return;
  clause.erase(std::remove_if(clause.begin(), clause.end(), [&](Lit l) { return holds(l ^ 1); }),
               clause.end());
  if (clause.empty()) {
    contradictory_ = true;
  } else if (clause.size() == 1) {
    assign(clause[0]);
    contradictory_ |= conflict();
  } else {
    const auto number = static_cast<std::uint32_t>(clause_start_.size() - 1);
    arena_.insert(arena_.end(), clause.begin(), clause.end());
    clause_start_.push_back(arena_.size());
    watches_[clause[0]].push_back({number, clause[1]});
    watches_[clause[1]].push_back({number, clause[0]});
  }
}

bool Propagation::implies(const std::vector<Lit>& clause) {
  if (contradictory_) return true;
  const std::size_t mark = trail_.size();
  bool found = false;
  for (const Lit l : clause) {
    if (holds(l)) {
      found = true;
      break;
    }
    if (!holds(l ^ 1)) assign(l ^ 1);
  }
  found = found || conflict();
  for (std::size_t i = mark; i < trail_.size(); ++i) holds_[trail_[i]] = 0;
  trail_.resize(mark);
  done_ = mark;
  return found;
}

bool Propagation::conflict() {
  while (done_ < trail_.size()) {
    budget_.poll();
    const Lit literal = trail_[done_++];
    const std::int32_t group = group_[literal >> 1];
    if (group != kNoGroup && (literal & 1) == 0) {
      for (const Lit other : groups_[group]) {
        if (other == literal) continue;
        if (holds(other)) return true;
        if (!holds(other + 1)) assign(other + 1);
      }
    }
    const Lit gone = literal ^ 1;
    auto& watching = watches_[gone];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < watching.size(); ++i) {
      const Watch w = watching[i];
      if (holds(w.other)) {
        watching[kept++] = w;
        continue;
      }
      Lit* const begin = arena_.data() + clause_start_[w.clause];
      Lit* const end = arena_.data() + clause_start_[w.clause + 1];
      if (begin[0] == gone) std::swap(begin[0], begin[1]);
      if (holds(begin[0])) {
        watching[kept++] = {w.clause, begin[0]};
        continue;
      }
      Lit* const free = std::find_if(begin + 2, end, [&](Lit l) { return !holds(l ^ 1); });
      if (free != end) {
        std::swap(begin[1], *free);
        watches_[begin[1]].push_back({w.clause, begin[0]});
        continue;
      }
      watching[kept++] = {w.clause, begin[0]};
      if (holds(begin[0] ^ 1)) {
        for (++i; i < watching.size(); ++i) watching[kept++] = watching[i];
        watching.resize(kept);
        return true;
      }
      assign(begin[0]);
    }
    watching.resize(kept);
  }
  return false;
}

}  // namespace isolang::certify
