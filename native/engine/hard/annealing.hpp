// Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) on the total order itself:
// every node has a position, the cost is the number of reads that do not see their value and of
// locks that are broken, and a move puts one node, or one transaction, anywhere between its
// neighbours among the known edges. A total order without cost is a model.
//
// One move in five is about a read that is not satisfied: its reader goes elsewhere, a writer of
// its value comes, or the writer between them goes away.
//
// A total order that exists is found suddenly, in a narrow range of temperatures (0.35 to 0.5 in
// the hard region): below it the cost falls only until the total order is frozen, above it there is
// too much noise. One slow cooling through that range is worth more than many fast ones. But where
// the total order to start from is near to one without cost already, as the initial linearization
// of a large history is, the heat would only destroy it: a short cooling from where orders freeze
// mends what is wrong here and there, but for a few reads.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/index.hpp"
#include "engine/hard/key_orders.hpp"

namespace isolang {

class Annealing {
 public:
  // `start`: the nodes of all transactions in an order that is near to a model, or none.
  Annealing(const TotalOrder& total_order, Budget& budget, std::uint64_t seed,
            std::span<const Node> start = {});

  // So many moves. True: a total order without cost is found, see model().
  bool run(std::int64_t moves);
  std::optional<Model> model() const;
  // The nodes of the best total order so far, in their order, and its cost.
  const std::vector<Node>& frozen() const { return frozen_; }
  std::int64_t frozen_cost = std::numeric_limits<std::int64_t>::max();

  // Of this cooling.
  std::int64_t moves_left() const {
    return (sweeps_ - sweep_) * static_cast<std::int64_t>(movable_.size());
  }
  std::int64_t moves = 0, cost = 0, best = 0;
  std::int32_t coolings = 0;  // runs of the cooling schedule that ended without success

 private:
  bool accepts(std::int32_t difference);
  void step();
  void move_between(Node v, double low, double high);
  void move_node(Node v) { move_between(v, below(v), above(v)); }
  void mend();  // a move that may satisfy a read
  void move_transaction(std::int32_t txn);
  void toggle(std::int32_t txn);
  std::vector<Node> in_order() const;
  void evenly();  // positions become 0, 1, 2, …
  void cool();
  void begin_turn();
  void end_sweeps();
  double below(Node v) const;
  double above(Node v) const;
  double between(double low, double high);
  std::uint64_t random();
  std::size_t pick(std::size_t count) { return idx((random() >> 32) * count >> 32); }
  bool present(Node v) const {
    const std::int32_t txn = total_order_.graph.transaction_of(v);
    return txn < 0 || present_[txn] != 0;
  }

  const TotalOrder& total_order_;
  Budget& budget_;
  std::uint64_t state_;
  KeyOrders key_orders_;
  std::vector<std::uint8_t> present_;  // per transaction
  std::vector<Node>
      movable_;  // in the order in which they stood when positions were last spread evenly
  std::vector<Node> frozen_;
  std::vector<std::int32_t> optional_;
  std::uint64_t toggles_ = 0;  // of 1,000 moves
  // Adjacent nodes have their turn together: of a long total order they stay in the cache. A
  // block of a short total order is all.
  std::size_t block_first_ = 0, block_size_ = 0;  // in movable_
  std::span<const Node> block() const {
    return std::span(movable_).subspan(block_first_, block_size_);
  }
  bool in_blocks() const;
  std::int64_t turn_sweeps() const;        // of a block before the next one has its turn
  std::size_t in_sweep_ = 0;               // moves
  std::int64_t in_turn_ = 0;               // sweeps
  std::vector<std::int32_t> unsatisfied_;  // of the block, as of the last look
  std::int64_t sweeps_, sweep_ = 0;
  struct Range {
    double hot, cold;
  };
  Range range_;
  double temperature_ = 0;
  std::array<std::uint64_t, 32> threshold_{};  // of accepting a cost that rises by this much
};

}  // namespace isolang
