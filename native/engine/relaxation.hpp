// The delete relaxation of planning (Bonet and Geffner, "Planning as heuristic search", AIJ 129, 2001) for chains of
// steps: what can happen if every fact that once held stays so. What cannot happen even so, cannot happen.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/chains.hpp"

namespace isolang {

class Relaxation {
 public:
  using Cell = Chains::Cell;

  Relaxation(const std::vector<std::int32_t>& start, std::size_t facts) : at_first(facts, 0), start_(start) {}
  // Step by step, chain by chain: one of these facts must hold, this one does afterwards, so much comes first.
  void want(std::span<const std::int32_t> some);
  void give(std::int32_t fact) { gives_.push_back(fact); }
  void need(Need n) { needs_.push_back(n); }
  void end_step();

  std::vector<std::uint8_t> at_first;  // the facts that hold at first, or may
  std::int32_t length(std::size_t chain) const { return start_[chain + 1] - start_[chain]; }

  // Lets everything happen that can: `seen` and `reached` grow. `held`: a chain that stops where it is told, or -1.
  void run(std::vector<std::uint8_t>& seen, std::vector<Cell>& reached, std::int32_t held = -1,
           std::int32_t stop = 0) const {
    grow(seen, reached, held, stop, [](std::int32_t) {}, [] { return false; });
  }
  // Only until so many facts hold for which `counts` is positive: `missing` of them are left.
  void run_until(std::vector<std::uint8_t>& seen, std::vector<Cell>& reached, std::int32_t& missing,
                 const std::vector<std::int16_t>& counts) const {
    grow(
        seen, reached, -1, 0, [&](std::int32_t fact) { missing -= counts[static_cast<std::size_t>(fact)] > 0; },
        [&] { return missing == 0; });
  }

 private:
  struct Step {
    std::int32_t want, wants_end, give, gives_end, need, needs_end;
  };
  struct Want {
    std::int32_t only, some, some_end;  // the fact, or -1: one of these
  };

  bool can(const Step& s, const std::vector<std::uint8_t>& seen, const std::vector<Cell>& reached) const {
    for (std::int32_t i = s.want; i < s.wants_end; ++i) {
      const Want& w = wants_[static_cast<std::size_t>(i)];
      bool there = w.only >= 0 && seen[static_cast<std::size_t>(w.only)] != 0;
      for (std::int32_t k = w.some; k < w.some_end && !there; ++k)
        there = seen[static_cast<std::size_t>(some_[static_cast<std::size_t>(k)])] != 0;
      if (!there) return false;
    }
    for (std::int32_t i = s.need; i < s.needs_end; ++i) {
      const Need& n = needs_[static_cast<std::size_t>(i)];
      if (reached[static_cast<std::size_t>(n.chain)] < n.count) return false;
    }
    return true;
  }
  template <typename Given, typename Done>
  void grow(std::vector<std::uint8_t>& seen, std::vector<Cell>& reached, std::int32_t held, std::int32_t stop,
            Given given, Done done) const {
    for (bool again = true; again && !done();) {
      again = false;
      for (std::size_t c = 0; c + 1 < start_.size(); ++c) {
        const auto end =
            static_cast<std::size_t>(static_cast<std::int32_t>(c) == held ? start_[c] + stop : start_[c + 1]);
        const std::size_t first = static_cast<std::size_t>(start_[c]) + reached[c];
        std::size_t at = first;
        for (; at < end && can(steps_[at], seen, reached); ++at) {
          for (std::int32_t i = steps_[at].give; i < steps_[at].gives_end; ++i) {
            const std::int32_t fact = gives_[static_cast<std::size_t>(i)];
            if (seen[static_cast<std::size_t>(fact)] == 0) given(fact);
            seen[static_cast<std::size_t>(fact)] = 1;
          }
          reached[c] = static_cast<Cell>(reached[c] + 1);
        }
        again = again || at > first;
      }
    }
  }

  std::vector<std::int32_t> start_;
  std::vector<Step> steps_;
  std::vector<Want> wants_;
  std::vector<std::int32_t> some_, gives_;
  std::vector<Need> needs_;
};

}  // namespace isolang
