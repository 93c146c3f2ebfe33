// Going back: what of the trail is taken back, and what stays.
#include <algorithm>
#include <cstdlib>

#include "engine/cdcl.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int32_t kFar = 10;   // levels: a longer backjump takes back only the last, and a conflict farther down
constexpr std::int32_t kNear = 16;  // only its own and later ones of groups so near

}  // namespace

// Opens the first literal of the clause just learned, and asserts it.
void Cdcl::go_back(std::int32_t conflict_level, std::int32_t back, bool chronological) {
  if (chronological && level() - conflict_level > kFar)
    take_out(conflict_level);
  else
    backtrack(chronological && conflict_level - back > kFar ? conflict_level - 1 : back);
  in_order_ = in_order_ && level() == back;
  enqueue(learnt_[0], static_cast<ClauseId>(clauses_.size()) - 1, back);
}

void Cdcl::backtrack(std::int32_t target) {
  if (level() <= target) return;
  const std::size_t keep = level_start_[idx(target)];
  kept_.clear();
  for (std::size_t i = trail_.size(); i > keep; --i) {
    const Lit l = trail_[i - 1];
    if (i - 1 < theory_head_) theory_.unassign(l);
    if (level_of_[idx(l.variable())] <= target) {
      kept_.push_back(l);
      continue;
    }
    open(l);
  }
  theory_.undo(theory_mark_[idx(target)]);
  trail_.resize(keep);
  trail_.insert(trail_.end(), kept_.rbegin(), kept_.rend());
  level_start_.resize(idx(target));
  theory_mark_.resize(idx(target));
  clause_head_ = theory_head_ = keep;
  if (target == 0) in_order_ = true;
}

// Takes back a level, later ones of near groups, and what was implied with their help; see the top of the header.
void Cdcl::take_out(std::int32_t target) {
  const auto group = [&](std::int32_t l) { return group_[idx(trail_[level_start_[idx(l - 1)]].variable())]; };
  const std::int32_t here = group(target);
  const std::size_t first = level_start_[idx(target - 1)], mark = theory_mark_[idx(target - 1)];
  renumbered_.assign(idx(level()) + 1, 0);  // 0: taken back
  std::int32_t levels = target - 1;
  for (std::int32_t l = target; l <= level(); ++l)
    if (l > target && std::abs(group(l) - here) > kNear) {
      renumbered_[idx(l)] = ++levels;
      theory_mark_[idx(levels - 1)] = theory_mark_[idx(l - 1)];
    }
  const auto leans_on_open = [&](Lit l) {
    const ClauseId why = reason_[idx(l.variable())];
    if (why == kNoClause) return false;
    const Lit* const begin = lits(why);
    return std::any_of(begin, begin + clauses_[idx(why)].size, [&](Lit other) { return value(other) == 0; });
  };
  std::size_t keep = first, assigned = theory_head_;
  for (std::size_t i = first; i < trail_.size(); ++i) {
    const Lit l = trail_[i];
    std::int32_t& at = level_of_[idx(l.variable())];
    if ((at >= target && renumbered_[idx(at)] == 0) || leans_on_open(l)) {
      if (i < theory_head_) {
        theory_.unassign(l);
        --assigned;
      }
      open(l);
      continue;
    }
    if (at >= target) at = renumbered_[idx(at)];
    if (reason_[idx(l.variable())] == kNoClause) level_start_[idx(at - 1)] = keep;
    trail_[keep++] = l;
  }
  trail_.resize(keep);
  decisions_kept += levels - (target - 1);
  level_start_.resize(idx(levels));
  theory_mark_.resize(idx(levels));
  theory_.forget_open(mark);
  clause_head_ = first;
  theory_head_ = assigned;
}

void Cdcl::open(Lit l) {
  value_[idx(l.variable())] = 0;
  if (heap_place_[idx(l.variable())] < 0) heap_insert(l.variable());
}

// The levels whose decisions come before the next one: a restart would take them again.
std::int32_t Cdcl::reusable_level() {
  while (!heap_.empty() && value_[idx(heap_[0])] != 0) heap_pop();
  if (heap_.empty()) return level();
  std::int32_t keep = 0;
  while (keep < level() && precedes(trail_[level_start_[idx(keep)]].variable(), heap_[0])) ++keep;
  return keep;
}

}  // namespace isolang
