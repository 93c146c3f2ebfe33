// Event graphs that are one total order of reads and writes, and what such a total order shows
// about a history.
//
// Such an event graph has one check. wr leads from the write state to the read state, rw leads
// back, and ww leads from the write state to either state. Inside a transaction the read state
// precedes the write state, or is the same state. A topological order of the product is then a
// total order on which each transaction reads at its read node and writes at its write node. A wr
// edge T → S and the rw edges S → (all writers after T) go up if and only if T's write is the last
// write of the key before S reads (S's own write left out). ww edges into the read state go up if
// and only if no two intervals [read, write] of writers of one key overlap ("locks"). So a total
// order that respects the known edges and satisfies every read and every lock is a model, and each
// model gives such a total order.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/search/search.hpp"

namespace isolang {

class TotalOrder {
 public:
  // Returns nothing if the event graph has a different shape.
  static std::optional<TotalOrder> of(const Pruner& pruner);

  const Pruner& pruner;
  const EventGraph& graph;
  const Problem& problem;
  std::int32_t read_state = 0, write_state = 0;
  bool locks = false;

  Node read_node(std::int32_t txn) const { return graph.node(0, txn, read_state); }
  Node write_node(std::int32_t txn) const { return graph.node(0, txn, write_state); }
  bool apart() const { return read_state != write_state; }
  // Returns true if the transaction may be in the total order. T0 is not in it, because it precedes
  // the total order.
  bool usable(std::int32_t txn) const { return usable_[txn] != 0; }
  bool optional(std::int32_t txn) const {
    return pruner.inclusion[txn] == static_cast<std::uint8_t>(Inclusion::optional);
  }
  Adjacency reads, writes;  // by transaction
  Adjacency before,
      after;  // by node: edges between nodes of usable transactions and auxiliary nodes

  // Adds edges between such nodes: edges that every model respects although they are not known.
  // From then on, total orders must respect them.
  void precede(std::vector<std::pair<Node, Node>> more);

  // Returns true if the writer is a possible source of the read. Usually the two then belong to one
  // class, because key and value are equal.
  bool sees(std::int32_t read, std::int32_t writer) const {
    const std::int32_t c = read_class_[read];
    return c >= 0 ? c == writer_class_[writer] : is_candidate(read, writer);
  }
  std::int32_t writer_class(std::int32_t writer) const { return writer_class_[writer]; }
  std::int32_t read_class(std::int32_t read) const { return read_class_[read]; }

  // Returns the model of a total order. `place` gives the position of each node, and `present`
  // tells for each transaction whether it is in the order. Returns nothing if some read or lock is
  // not satisfied. (The searches keep their own counts, and this function checks the whole total
  // order again.)
  std::optional<Model> model(const std::vector<std::int32_t>& place,
                             const std::vector<std::uint8_t>& present) const;

  // Returns how hard the history is to decide: how much its reads constrain the order, relative to
  // its freedom. This is Σ over reads -ln(share of the writers of the key that the read could have
  // as its source) ÷ ln(number of interleavings of the sessions).
  static double load(const Problem& problem);

 private:
  explicit TotalOrder(const Pruner& p) : pruner(p), graph(p.graph), problem(p.graph.problem) {}
  bool is_candidate(std::int32_t read, std::int32_t writer) const;
  void set_classes();
  void set_edges();

  std::vector<std::uint8_t> usable_;
  std::vector<std::int32_t> writer_class_, read_class_;
};

}  // namespace isolang
