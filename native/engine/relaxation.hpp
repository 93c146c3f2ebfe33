// The delete relaxation of planning (Bonet and Geffner, "Planning as heuristic search", AIJ 129, 2001) for a line: what can
// happen if every value that a key once had stays there. What cannot happen even so, cannot happen.
//
// Landmarks (Hoffmann, Porteous, Sebastia, "Ordered landmarks in planning", JAIR 22, 2004): what cannot happen while one
// event is held back comes after that event. Read from its end the line is one of the same kind: a write undoes itself, from
// its value to the one that it replaced. So there are landmarks from both sides, and each makes more of the others.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/chains.hpp"

namespace isolang {

class Relaxation {
 public:
  // From the first event on: events want the values that they read, and give those that they write.
  static Relaxation forward(const Chains& chains);
  // From the last event on: events want the values that they write and those that they only read, and give the ones that
  // they replace.
  static Relaxation backward(const Chains& chains);

  void set_needs(const Chains& chains);

  // From where the chains are and the values that are there, to the end or until no `wanted` value is missing: `seen` and
  // `reached` grow. `held`: a chain that stops where it is told, or -1.
  void run(std::vector<std::uint8_t>& seen, std::vector<Chains::Cell>& reached, std::int32_t& wanted,
           const std::vector<std::int16_t>& readers) const {
    grow(seen, reached, -1, 0, [&](std::int32_t v) { wanted -= readers[static_cast<std::size_t>(v)] > 0; }, [&] { return wanted == 0; });
  }
  void run(std::vector<std::uint8_t>& seen, std::vector<Chains::Cell>& reached, std::int32_t held, std::int32_t stop) const {
    grow(seen, reached, held, stop, [](std::int32_t) {}, [] { return false; });
  }
  const std::vector<std::uint8_t>& at_first() const { return at_first_; }  // the values that are there at first, or may be
  std::int32_t length(std::size_t chain) const { return start_[chain + 1] - start_[chain]; }

 private:
  struct Step {
    std::int32_t need, needs_end, want, wants_end, give, gives_end;
  };
  struct Want {
    std::int32_t only;         // the value, or -1:
    std::int32_t some, some_end;  // one of these
  };
  explicit Relaxation(const Chains& chains) : start_(chains.start) {}

  bool can(const Step& s, const std::vector<std::uint8_t>& seen, const std::vector<Chains::Cell>& reached) const {
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
  void grow(std::vector<std::uint8_t>& seen, std::vector<Chains::Cell>& reached, std::int32_t held, std::int32_t stop,
            Given given, Done done) const {
    for (bool again = true; again && !done();) {
      again = false;
      for (std::size_t c = 0; c + 1 < start_.size(); ++c) {
        const auto end = static_cast<std::size_t>(static_cast<std::int32_t>(c) == held ? start_[c] + stop : start_[c + 1]);
        std::size_t at = static_cast<std::size_t>(start_[c]) + reached[c];
        const std::size_t first = at;
        for (; at < end && can(steps_[at], seen, reached); ++at) {
          for (std::int32_t i = steps_[at].give; i < steps_[at].gives_end; ++i) {
            std::uint8_t& there = seen[static_cast<std::size_t>(gives_[static_cast<std::size_t>(i)])];
            if (there == 0) given(gives_[static_cast<std::size_t>(i)]);
            there = 1;
          }
          reached[c] = static_cast<Chains::Cell>(reached[c] + 1);
        }
        again = again || at > first;
      }
    }
  }
  void want(const Chains& chains, const Chains::Read& read);
  void end_step(Step s);

  bool from_end_ = false;
  std::vector<std::int32_t> start_;
  std::vector<Step> steps_;
  std::vector<Want> wants_;
  std::vector<std::int32_t> some_, gives_;
  std::vector<Need> needs_;
  std::vector<std::uint8_t> at_first_;
};

// Adds to the needs of the events what follows from either relaxation, until nothing new does. False: some event cannot
// happen at all, there is no line.
bool add_landmarks(Chains& chains, Budget& budget);

}  // namespace isolang
