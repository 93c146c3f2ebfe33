// Exhaustive search over frontiers: breadth first through the sets of events that can come first on the line.
//
// An event is a transaction, or its reads and its writes if the level lets them stand apart. A state is what has run (a
// place in each chain of events) and the current value of each key: whatever else happened before does not matter to what
// can follow. States with equally many events form a layer; equal ones are kept once (compared in full, not by hash). Only
// the `width` most promising of a layer are followed. A pass that reaches the end has found a line; one that runs dry
// without having left out a state proves that there is none; else the next one is four times as wide.
//
// The rules below keep the layers small. Each either kills a state that has no completion, or runs an event at once where
// a completion, if there is one, can be changed into one that begins with that event.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/timeline.hpp"

namespace isolang {

class Frontiers {
 public:
  enum class Answer : std::uint8_t { open, found, refuted, gave_up };

  // Applies only without maybe transactions and within limits of size, see applies(). The states may take about
  // `max_bytes` of memory; where they need more the search gives up.
  Frontiers(const Timeline& line, Budget& budget, std::size_t max_bytes);
  bool applies() const { return applies_; }

  Answer run(std::int64_t expansions);  // so many states
  std::optional<Model> model();         // after `found`

  // What one state is made of: the measure of the work on it.
  std::int64_t state_cells() const { return static_cast<std::int64_t>(cells_ + values_); }

  std::int64_t expanded = 0;
  std::int64_t width = 0;
  std::int32_t passes = 0, deepest = 0;

 private:
  using Cell = std::uint16_t;
  struct Need {
    std::int32_t chain, count;  // so many events of that chain come first
  };
  struct Read {
    std::int32_t key, first_value;  // first_value: where its row of match_ begins
  };
  struct Write {
    std::int32_t key, value;  // value: a number of value_start_
  };
  // Ranges into needs_, reads_, writes_; `keys` of the write keys (its own or its transaction's) in writes_.
  struct Event {
    Node node;
    std::int32_t need, needs, read, reads, write, writes, lock, locks;
    bool opens;  // its transaction's writes follow as an event of their own
  };
  struct Layer {
    std::vector<Cell> cells;           // width_of_state_ each
    std::vector<std::uint32_t> origin;  // into trail_
    std::vector<float> promise;
    std::vector<std::int32_t> table;   // open addressing: state + 1, or 0
    std::size_t size() const { return origin.size(); }
    std::size_t bytes() const {
      return cells.capacity() * sizeof(Cell) + origin.capacity() * sizeof(std::uint32_t) + promise.capacity() * sizeof(float) +
             table.capacity() * sizeof(std::int32_t);
    }
  };
  struct Origin {
    std::uint32_t parent;
    std::int32_t chain;  // whose next event ran; the rules ran what followed
  };
  // The state at hand, with what is left to do for each value.
  struct Scratch {
    std::vector<Cell> cells;
    std::vector<std::int16_t> writers, readers, modifiers;  // by value
    std::vector<std::uint8_t> locked;                       // by key
    std::int32_t done = 0;
  };

  void set_chains();
  void set_values();
  void set_events();
  bool set_needs();
  void set_counts();
  void start_pass();
  void load(const Cell* cells, std::int32_t done);
  bool can_run(const Scratch& s, const Event& e) const;
  bool harmless(const Scratch& s, std::int32_t chain) const;
  bool run_event(Scratch& s, std::int32_t chain);  // false: no completion
  bool close(Scratch& s);                          // runs what may run at once
  bool impossible(const Scratch& s, std::int32_t key, std::int32_t value) const;
  bool stuck(const Scratch& s);
  void release(Layer& layer);
  bool full() const { return held_ + trail_.capacity() * sizeof(Origin) > max_bytes_; }
  Answer next_pass();
  void insert(const Scratch& s, std::uint32_t parent, std::int32_t chain);
  void keep_best(Layer& layer);
  float promise(const Scratch& s) const;
  const Event* next(const Scratch& s, std::int32_t chain) const {
    const auto c = static_cast<std::size_t>(chain);
    const std::int32_t at = chain_start_[c] + s.cells[c];
    return at < chain_start_[c + 1] ? &events_[static_cast<std::size_t>(at)] : nullptr;
  }
  std::int32_t current(const Scratch& s, std::int32_t key) const {
    return value_start_[static_cast<std::size_t>(key)] + s.cells[chains_ + static_cast<std::size_t>(key)];
  }

  const Timeline& line_;
  Budget& budget_;
  std::size_t max_bytes_, held_ = 0;  // held_: by the layers
  bool applies_ = false;
  std::size_t chains_ = 0, cells_ = 0, values_ = 0;
  std::vector<std::vector<Node>> chain_nodes_;
  std::vector<std::int32_t> chain_start_;  // into events_
  std::vector<Event> events_;
  std::vector<Need> needs_;
  std::vector<Read> reads_;
  std::vector<Write> writes_;
  std::vector<std::uint8_t> fine_;          // per key: some of its reads make finer distinctions than classes
  std::vector<std::int32_t> value_start_;   // per key: its first value
  std::vector<std::int32_t> writer_value_;  // per writer
  std::vector<std::uint8_t> match_;         // per read and value of its key
  std::vector<std::int64_t> match_start_;   // per read
  // What is left from an event of a chain on, by value: rows of writers, readers, modifiers.
  std::vector<std::int16_t> left_;
  std::vector<float> log_;

  std::vector<Layer> layers_;
  std::vector<Origin> trail_;
  std::size_t layer_ = 0, state_ = 0;
  bool cut_ = false;
  std::optional<std::uint32_t> goal_;      // where the trail of a line ends
  std::vector<std::int32_t> ran_;          // of the replay: the chains in the order in which their events ran
  bool replay_ = false;
  Scratch parent_, child_;
  std::vector<std::uint8_t> seen_;         // of stuck(): the values that could be there
  std::vector<std::int32_t> reached_;      // and how far each chain could get
};

}  // namespace isolang
