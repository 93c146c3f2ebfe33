// The events of a total order in chains: what a search that builds the total order from its
// beginning has to know.
//
// An event is a transaction, or its reads and its writes if the level lets them be apart. A
// chain is a part of a session in which each event follows the one before. Writers that no read can
// tell apart write one value.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "engine/hard/total_order.hpp"

namespace isolang {

struct Need {
  std::int32_t chain, count;  // this many events of that chain come first
};

class Chains {
 public:
  using Cell = std::uint16_t;  // a place in a chain, or a value of a key

  struct Read {
    std::int32_t key, first_value;  // first_value: where its row of match begins
    bool replaced;                  // by a write of its transaction, and nothing comes between
  };
  struct Write {
    std::int32_t key, value;  // value: a number of value_start
  };
  // Ranges into needs, reads, writes. Of the writes those of the event, and those of its
  // transaction (lock, locks).
  struct Event {
    Node node;
    std::int32_t need, needs, read, reads, write, writes, lock, locks;
    bool opens;  // its transaction's writes follow as an event of their own
  };

  // Empty with indeterminate transactions, and beyond limits of size.
  static std::optional<Chains> of(const TotalOrder& total_order, Budget& budget);

  const TotalOrder& total_order;
  std::vector<std::int32_t> start;  // per chain, into events
  std::vector<Event> events;
  std::vector<Need> needs;
  std::vector<Read> reads;
  std::vector<Write> writes;
  std::vector<std::int32_t> value_start;  // per key: its first value
  std::vector<std::int32_t> first_value;  // per key: that of T0, or -1 without writers
  std::vector<std::uint8_t>
      fine;  // per key: some of its reads make finer distinctions than classes
  std::vector<std::uint8_t> match;  // per read and value of its key

  std::size_t count() const { return start.size() - 1; }
  std::size_t keys() const { return fine.size(); }
  std::size_t values() const { return idx(value_start.back()); }
  std::int32_t value_of(std::int32_t writer) const { return writer_value_[writer]; }
  std::int32_t length(std::size_t chain) const { return start[chain + 1] - start[chain]; }
  // Replaces the needs of all events. clock: per event and chain, this many events of that chain come
  // first.
  void set_needs(const std::vector<Cell>& clock);
  std::vector<Cell> clock() const;
  // The needs as edges between nodes, those left out that others imply.
  std::vector<std::pair<Node, Node>> edges() const;

 private:
  explicit Chains(const TotalOrder& l) : total_order(l) {}
  void set_chains(std::vector<std::vector<Node>>& nodes) const;
  bool set_values();
  void set_events(const std::vector<std::vector<Node>>& nodes);
  bool set_known_needs(Budget& budget);

  std::vector<std::int32_t> writer_value_;  // per writer
  std::vector<std::int64_t> match_start_;   // per read of the problem
};

}  // namespace isolang
