// Exhaustive state search, breadth first through the sets of events that can come first in the
// total order.
//
// States (state_rules.hpp) with the same number of events form a layer. Equal states are stored
// once (they are compared in full, not by hash). Only the `width` most promising states of a layer
// are expanded. A pass that reaches the end has found a total order. A pass that runs out of states
// without having left out any proves that there is none. Otherwise the next pass is four times as
// wide.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/hard/state_rules.hpp"

namespace isolang {

class StateSearch {
 public:
  enum class Answer : std::uint8_t { open, found, refuted, gave_up };

  // The states may take about `max_bytes` of memory. If they need more, the search gives up.
  StateSearch(const Chains& chains, Budget& budget, std::size_t max_bytes);

  Answer run(std::int64_t expansions);  // expands this many states
  std::optional<Model> model();         // after `found`

  // Returns the number of cells of one state, as a measure of the work for it.
  std::int64_t state_cells() const { return static_cast<std::int64_t>(cells_ + chains_.values()); }

  std::int64_t expanded = 0;
  std::int64_t width = 0;
  std::int32_t passes = 0, deepest = 0;

 private:
  using Cell = Chains::Cell;
  using State = StateRules::State;
  struct Layer {
    std::vector<Cell> cells;            // cells_ cells for each state
    std::vector<std::uint32_t> origin;  // into trail_
    std::vector<float> promise;
    std::vector<std::int32_t> table;  // open addressing: state + 1, or 0
    std::size_t size() const { return origin.size(); }
    std::size_t bytes() const {
      return cells.capacity() * sizeof(Cell) + origin.capacity() * sizeof(std::uint32_t) +
             promise.capacity() * sizeof(float) + table.capacity() * sizeof(std::int32_t);
    }
  };
  struct Origin {
    std::uint32_t parent;
    std::int32_t chain;  // the chain whose next event ran, before the rules ran the events that followed
  };

  void start_pass();
  void release(Layer& layer);
  bool full() const { return held_ + trail_.capacity() * sizeof(Origin) > max_bytes_; }
  Answer next_pass();
  void insert(const State& s, std::uint32_t parent, std::int32_t chain);
  void keep_best(Layer& layer);

  const Chains& chains_;
  StateRules rules_;
  Budget& budget_;
  std::size_t max_bytes_, held_ = 0;  // held_: memory of the layers
  std::size_t cells_;
  std::vector<Layer> layers_;
  std::vector<Origin> trail_;
  std::size_t layer_ = 0, state_ = 0;
  bool cut_ = false;
  std::optional<std::uint32_t> goal_;  // the end of the trail of a total order
  State parent_, child_;
};

}  // namespace isolang
