// The events of a total order as chains. A search that builds the total order from its beginning
// needs this information.
//
// An event is a transaction, or its reads and its writes separately if the level allows other
// events between them. A chain is a part of a session in which each event follows the previous one.
// Writers that no read can distinguish write one value.
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
  using Cell = std::uint16_t;  // a position in a chain, or a value of a key

  struct Read {
    std::int32_t key, first_value;  // first_value: where its row of match begins
    bool replaced;  // a write of its transaction replaces the version, and nothing comes between
  };
  struct Write {
    std::int32_t key, value;  // value: numbered as in value_start
  };
  // Ranges into needs, reads and writes. There are two ranges of writes: those of the event, and
  // those of its transaction (lock, locks).
  struct Event {
    Node node;
    std::int32_t need, needs, read, reads, write, writes, lock, locks;
    bool opens;  // the writes of its transaction follow as a separate event
  };

  // Returns nothing if the history has indeterminate transactions, or is too large.
  static std::optional<Chains> of(const TotalOrder& total_order, Budget& budget);

  const TotalOrder& total_order;
  std::vector<std::int32_t> start;  // per chain, into events
  std::vector<Event> events;
  std::vector<Need> needs;
  std::vector<Read> reads;
  std::vector<Write> writes;
  std::vector<std::int32_t> value_start;  // per key, its first value
  std::vector<std::int32_t> first_value;  // per key, the value of T0; -1 if the key has no writers
  std::vector<std::uint8_t>
      fine;  // per key, 1 if some of its reads make finer distinctions than classes
  // Per read and value of its key, 1 if the read may see the value.
  std::vector<std::uint8_t> match;

  std::size_t count() const { return start.size() - 1; }
  std::size_t keys() const { return fine.size(); }
  std::size_t values() const { return idx(value_start.back()); }
  std::int32_t value_of(std::int32_t writer) const { return writer_value_[writer]; }
  std::int32_t length(std::size_t chain) const { return start[chain + 1] - start[chain]; }
  // Replaces the needs of all events. `clock` contains, for each event and each chain, the number
  // of events of that chain that precede the event.
  void set_needs(const std::vector<Cell>& clock);
  std::vector<Cell> clock() const;
  // Returns the needs as edges between nodes, without edges that other edges imply.
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
