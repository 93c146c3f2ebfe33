// Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) on the total order itself.
// Every node has a position. The cost is the number of reads that do not see their value, plus the
// number of broken locks. A move puts one node, or both nodes of a transaction, anywhere between
// its neighbours among the known edges. A total order whose cost is 0 is a model.
//
// One move in five concerns a read that does not see its value: the reader moves, a writer of the
// value moves in front of it, or the writer between the two moves.
//
// If a total order with cost 0 exists, it is found suddenly, in a narrow range of temperatures
// (0.35 to 0.5 in the hard region). Below this range the cost falls only until the total order is
// frozen, and above it there is too much noise. One slow cooling through this range is better than
// many fast ones. But the total order to start from, such as the initial linearization of a large
// history, may already be close to one with cost 0, and heat would only destroy it. Then a short
// cooling from the temperature at which orders freeze repairs nearly all of the few errors.
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
  // `start` contains the nodes of all transactions in an order close to a model, or is empty.
  Annealing(const TotalOrder& total_order, Budget& budget, std::uint64_t seed,
            std::span<const Node> start = {});

  // Makes this many moves. Returns true if it found a total order with cost 0, see model().
  bool run(std::int64_t moves);
  std::optional<Model> model() const;
  // Returns the nodes of the best total order so far, in order. frozen_cost is its cost.
  const std::vector<Node>& frozen() const { return frozen_; }
  std::int64_t frozen_cost = std::numeric_limits<std::int64_t>::max();

  // Returns the moves left in this cooling.
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
  void repair_a_read();  // makes a move that may satisfy a read
  void move_transaction(std::int32_t txn);
  void toggle(std::int32_t txn);
  std::vector<Node> in_order() const;
  void spread_positions();  // sets the positions to 0, 1, 2, …
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
      movable_;  // in their order when positions were last spread evenly
  std::vector<Node> frozen_;
  std::vector<std::int32_t> optional_;
  std::uint64_t toggles_ = 0;  // number of toggles per 1,000 moves
  // Moves are made in one block of adjacent nodes at a time, because the block of a long total order
  // then stays in the cache. A short total order is one block.
  std::size_t block_first_ = 0, block_size_ = 0;  // in movable_
  std::span<const Node> block() const {
    return std::span(movable_).subspan(block_first_, block_size_);
  }
  bool in_blocks() const;
  std::int64_t turn_sweeps() const;        // number of sweeps of a block before the next block's turn
  std::size_t in_sweep_ = 0;               // moves made in this sweep
  std::int64_t in_turn_ = 0;               // sweeps made in this turn
  // The reads of the block that did not see their value at the last check.
  std::vector<std::int32_t> unsatisfied_;
  std::int64_t sweeps_, sweep_ = 0;
  struct Range {
    double hot, cold;
  };
  Range range_;
  double temperature_ = 0;
  // For each increase in cost, the threshold for accepting a move.
  std::array<std::uint64_t, 32> threshold_{};
};

}  // namespace isolang
