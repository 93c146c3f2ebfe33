// The states of the state search, and the rules that keep its layers small.
//
// A state consists of the events that have run (a position in each chain) and the current value of
// each key. Nothing else that happened before affects what can follow. Each rule either removes a
// state that has no completion, or runs an event immediately, because every completion can be
// changed into one that begins with that event.
#pragma once
#include <cstdint>
#include <vector>

#include "core/index.hpp"
#include "engine/hard/chains.hpp"
#include "engine/hard/relaxation.hpp"

namespace isolang {

class StateRules {
 public:
  using Cell = Chains::Cell;
  // A state, together with the remaining work for each value.
  struct State {
    std::vector<Cell> cells;  // per chain, its position; per key, its value
    std::vector<std::int16_t> writers, readers, modifiers;  // by value
    std::vector<std::uint8_t> locked;                       // by key
    std::int32_t done = 0;
  };

  explicit StateRules(const Chains& chains);
  std::size_t cells() const { return chains_.count() + chains_.keys(); }

  // Sets the initial state and runs every event that may run immediately. Returns false if the
  // resulting state cannot be completed.
  bool first(State& s);
  void load(State& s, const Cell* cells, std::int32_t done) const;
  bool can_run(const State& s, std::int32_t chain) const {
    const Event* const e = next(s, chain);
    return e != nullptr && can_run(s, *e);
  }
  // Runs the next event of the chain, and then every event that may run immediately. Returns false
  // if the resulting state cannot be completed.
  bool run(State& s, std::int32_t chain) { return run_event(s, chain) && close(s); }
  bool has_stuck_event(const State& s);
  // Returns the logarithm of an estimate of the number of completions.
  float estimate_completions(const State& s) const;

  std::vector<std::int32_t>* trace =
      nullptr;  // if not null, gets the chains in the order in which their events run

 private:
  using Event = Chains::Event;
  bool can_run(const State& s, const Event& e) const;
  bool may_run_at_once(const State& s, std::int32_t chain) const;
  bool impossible(const State& s, std::int32_t key, std::int32_t value) const;
  bool run_event(State& s, std::int32_t chain);  // returns false if no completion exists
  bool close(State& s);
  const Event* next(const State& s, std::int32_t chain) const {
    const auto c = idx(chain);
    const std::int32_t at = chains_.start[c] + s.cells[c];
    return at < chains_.start[c + 1] ? &chains_.events[at] : nullptr;
  }
  std::int32_t current(const State& s, std::int32_t key) const {
    return chains_.value_start[key] + s.cells[chains_.count() + idx(key)];
  }
  bool sees(const State& s, const Chains::Read& read) const {
    return chains_.match[read.first_value + s.cells[chains_.count() + idx(read.key)]] != 0;
  }
  bool needs_met(const State& s, const Event& e) const;

  const Chains& chains_;
  Relaxation relaxation_;  // its facts are values
  const bool any_fine_;  // some key has reads that make finer distinctions than classes
  // For each event and value, how many writers, readers and modifiers of the value the rest of the
  // event's chain has.
  std::vector<std::int16_t> left_;
  std::vector<float> log_;
  Relaxation::Extent
      extent_;  // for stuck(): the values that could exist, and how far each chain could get
};

}  // namespace isolang
