// The delete relaxation of planning (Bonet and Geffner, "Planning as heuristic search", AIJ 129,
// 2001) for chains of steps: it finds what can happen if every fact that once held continues to
// hold. What cannot happen in the relaxation cannot happen at all. Counters count the steps of each
// kind so far, and never decrease either.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/index.hpp"
#include "engine/hard/chains.hpp"

namespace isolang {

class Relaxation {
 public:
  using Cell = Chains::Cell;

  // The steps, facts and counts that have been reached so far.
  struct Extent {
    std::vector<std::uint8_t> seen;     // 1 for each fact that holds
    std::vector<Cell> reached;          // per chain, the number of steps that have happened
    std::vector<std::int32_t> counted;  // for each counter, its count
  };

  Relaxation(const std::vector<std::int32_t>& start, std::size_t facts, std::size_t counters = 0)
      : at_first(facts, 0), start_(start), counters_(counters) {}
  // The functions below describe the steps one by one, chain by chain. A step requires that one of
  // some facts holds (want), makes a fact hold (give), requires earlier steps (need) and counts
  // (at_least), and raises counters (count).
  void want(std::span<const std::int32_t> some);
  void give(std::int32_t fact) { gives_.push_back(fact); }
  void need(Need n) { needs_.push_back(n); }
  void at_least(std::int32_t counter, std::int32_t count) { floors_.push_back({counter, count}); }
  void count(std::int32_t counter) { counts_.push_back(counter); }
  void end_step();

  std::vector<std::uint8_t> at_first;  // the facts that hold, or may hold, initially
  std::int32_t length(std::size_t chain) const { return start_[chain + 1] - start_[chain]; }

  Extent begin() const {
    return {at_first, std::vector<Cell>(start_.size() - 1, 0),
            std::vector<std::int32_t>(counters_, 0)};
  }
  // Lets everything happen that can happen, and extends `extent` by it. The chain `held` stops at
  // `stop`.
  void run(Extent& extent, std::int32_t held, std::int32_t stop) const {
    grow(extent, held, stop, [](std::int32_t) {}, [] { return false; });
  }
  // Runs only until all facts for which `wanted` is positive hold. `missing` is the number of these
  // facts that do not hold yet.
  void run_until(Extent& extent, std::int32_t& missing,
                 const std::vector<std::int16_t>& wanted) const {
    grow(
        extent, -1, 0, [&](std::int32_t fact) { missing -= wanted[fact] > 0; },
        [&] { return missing == 0; });
  }

 private:
  struct Step {
    std::int32_t want, wants_end, give, gives_end, need, needs_end, floor, floors_end, count,
        counts_end;
  };
  struct Want {
    std::int32_t only, some, some_end;  // the fact, or -1 for one of several facts
  };
  struct Floor {
    std::int32_t counter, count;
  };

  bool can(const Step& s, const Extent& extent) const {
    for (std::int32_t i = s.want; i < s.wants_end; ++i) {
      const Want& w = wants_[i];
      bool there = w.only >= 0 && extent.seen[w.only] != 0;
      for (std::int32_t k = w.some; k < w.some_end && !there; ++k)
        there = extent.seen[some_[k]] != 0;
      if (!there) return false;
    }
    for (std::int32_t i = s.floor; i < s.floors_end; ++i) {
      const Floor& f = floors_[i];
      if (extent.counted[f.counter] < f.count) return false;
    }
    for (std::int32_t i = s.need; i < s.needs_end; ++i) {
      const Need& n = needs_[i];
      if (extent.reached[n.chain] < n.count) return false;
    }
    return true;
  }
  template <typename Given, typename Done>
  void grow(Extent& extent, std::int32_t held, std::int32_t stop, Given given, Done done) const {
    for (bool again = true; again && !done();) {
      again = false;
      for (std::size_t c = 0; c + 1 < start_.size(); ++c) {
        const auto end =
            idx(static_cast<std::int32_t>(c) == held ? start_[c] + stop : start_[c + 1]);
        const std::size_t first = idx(start_[c]) + extent.reached[c];
        std::size_t at = first;
        for (; at < end && can(steps_[at], extent); ++at) {
          for (std::int32_t i = steps_[at].give; i < steps_[at].gives_end; ++i) {
            const std::int32_t fact = gives_[i];
            if (extent.seen[fact] == 0) given(fact);
            extent.seen[fact] = 1;
          }
          for (std::int32_t i = steps_[at].count; i < steps_[at].counts_end; ++i)
            ++extent.counted[counts_[i]];
          extent.reached[c] = static_cast<Cell>(extent.reached[c] + 1);
        }
        again = again || at > first;
      }
    }
  }

  std::vector<std::int32_t> start_;
  std::vector<Step> steps_;
  std::vector<Want> wants_;
  std::vector<std::int32_t> some_, gives_, counts_;
  std::vector<Need> needs_;
  std::vector<Floor> floors_;
  std::size_t counters_;
};

}  // namespace isolang
