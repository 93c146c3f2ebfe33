// `Annealing::run` makes sweeps of random moves and lowers the temperature after each sweep. Every
// move keeps the known edges satisfied, because a node can be placed only between its neighbours.
// KeyOrders computes the change in cost.
#include "engine/hard/annealing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index.hpp"
#include "engine/search/initial_linearization.hpp"

namespace isolang {
namespace {
constexpr std::int64_t kSweeps = 6000, kFirstSweeps = 150;
constexpr double kCoolingGrowth = 2.5;  // factor from each cooling to the next
constexpr std::uint64_t kRepairPercent = 20;                    // out of 100 moves
constexpr std::size_t kBlock = 512, kOneBlock = 4096;  // numbers of nodes
constexpr std::int64_t kSweepsPerTurn = 8;                      // number of sweeps

}  // namespace

Annealing::Annealing(const TotalOrder& total_order, Budget& budget, std::uint64_t seed,
                     std::span<const Node> start)
    : total_order_(total_order),
      budget_(budget),
      state_(seed * 0xD1342543DE82EF95ULL +
             0x1234567),  // with the generator's own step, seeds would share one stream
      key_orders_(total_order),
      sweeps_(start.empty() ? kSweeps : kFirstSweeps),
      range_(start.empty() ? Range{0.6, 0.2} : Range{0.22, 0.12}) {
  const Problem& p = total_order.problem;
  const auto nodes = total_order.graph.nodes();
  std::vector<double> positions(idx(nodes), KeyOrders::kFirst);
  const auto rank =
      rank_along(start.empty() ? std::span<const Node>(total_order.pruner.order) : start,
                 total_order.after, budget);
  present_.assign(p.inclusion.size(), 0);
  for (Node v = 0; v < nodes; ++v) {
    const std::int32_t txn = total_order.graph.transaction_of(v);
    if (total_order.graph.check_of(v) < 0 || txn == p.n || (txn >= 0 && !total_order.usable(txn)))
      continue;
    movable_.push_back(v);
    positions[v] = rank[v];
  }
  for (std::int32_t t = 0; t < p.n; ++t) {
    if (!total_order.usable(t)) continue;
    if (total_order.optional(t))
      optional_.push_back(t);
    else
      present_[t] = 1;
  }
  if (!movable_.empty())
    toggles_ = std::min<std::uint64_t>(125, 1000 * optional_.size() / movable_.size() + 1);
  key_orders_.build(std::move(positions), present_);
  spread_positions();
  best = cost;
  cool();
  if (!movable_.empty()) begin_turn();
}

std::uint64_t Annealing::random() {  // splitmix64
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

double Annealing::between(double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

double Annealing::below(Node v) const {
  double low = KeyOrders::kFirst;
  for (const Node u : total_order_.before.of(v)) low = std::max(low, key_orders_.position(u));
  return low;
}

double Annealing::above(Node v) const {
  double high = static_cast<double>(movable_.size());
  for (const Node u : total_order_.after.of(v)) high = std::min(high, key_orders_.position(u));
  return high;
}

bool Annealing::accepts(std::int32_t difference) {
  return difference <= 0 ||
         (idx(difference) < threshold_.size() && random() < threshold_[difference]);
}

void Annealing::move_between(Node v, double low, double high) {
  const double position = between(low, high);
  if (!(low < position && position < high)) return;
  const std::int32_t difference = key_orders_.change(v, position);
  if (!accepts(difference)) return;
  key_orders_.move(v, position);
  cost += difference;
}

// Makes a move that may satisfy a read of the list. The list may be outdated: each read is tested
// again before the move, so an outdated entry only wastes a move.
void Annealing::repair_a_read() {
  KeyOrders::Unsatisfied found;
  if (!key_orders_.is_unsatisfied(unsatisfied_[pick(unsatisfied_.size())], found)) return;
  switch (pick(3)) {
    case 0:
      return move_node(found.reader);
    case 1: {
      const Problem& p = total_order_.problem;
      const auto first = idx(p.candidate_start[found.read]);
      const auto last = idx(p.candidate_start[idx(found.read) + 1]);
      const std::int32_t txn = p.writer_txn[p.candidate[first + pick(last - first)]];
      if (txn == p.n || !total_order_.usable(txn) || !present_[txn]) return;
      const Node writer = total_order_.write_node(txn);
      return move_between(writer, std::max(found.since, below(writer)),
                          std::min(key_orders_.position(found.reader), above(writer)));
    }
    default:
      if (found.blocker >= 0) move_node(found.blocker);
  }
}

// Moves both nodes of a transaction to the same position, next to each other. They move one after
// the other, because each difference in cost is that of one node. If the two moves together are
// rejected, the first node moves back.
void Annealing::move_transaction(std::int32_t txn) {
  const Node r = total_order_.read_node(txn), w = total_order_.write_node(txn);
  double low = below(r), high = above(w);
  for (const Node u : total_order_.before.of(w))
    if (u != r) low = std::max(low, key_orders_.position(u));
  for (const Node u : total_order_.after.of(r))
    if (u != w) high = std::min(high, key_orders_.position(u));
  if (!(low < high)) return;
  const double write = between(low, high), read = between(std::max(low, write - 1), write);
  if (!(low < read && read < write && write < high)) return;
  const bool later = write > key_orders_.position(w);
  const Node first = later ? w : r, second = later ? r : w;
  const double to_first = later ? write : read, to_second = later ? read : write,
               back = key_orders_.position(first);
  std::int32_t difference = key_orders_.change(first, to_first);
  key_orders_.move(first, to_first);
  difference += key_orders_.change(second, to_second);
  if (accepts(difference)) {
    key_orders_.move(second, to_second);
    cost += difference;
  } else {
    key_orders_.move(first, back);
  }
}

// Adds an indeterminate transaction to the total order, or removes it.
void Annealing::toggle(std::int32_t txn) {
  const Node r = total_order_.read_node(txn), w = total_order_.write_node(txn);
  const auto all = [&](bool on) {
    std::int32_t difference = on ? key_orders_.enter(w) : key_orders_.leave(w);
    if (total_order_.apart()) difference += on ? key_orders_.enter(r) : key_orders_.leave(r);
    return difference;
  };
  const bool comes = present_[txn] == 0;
  const std::int32_t difference = all(comes);
  if (accepts(difference)) {
    cost += difference;
    present_[txn] = comes;
  } else {
    all(!comes);
  }
}

void Annealing::step() {
  ++moves;
  if (!optional_.empty() && pick(1000) < toggles_) return toggle(optional_[pick(optional_.size())]);
  if (!unsatisfied_.empty() && pick(100) < kRepairPercent) return repair_a_read();
  const Node v = movable_[block_first_ + pick(block_size_)];
  if (!present(v)) {
    const double low = below(v), high = above(v), position = between(low, high);
    if (low < position && position < high) key_orders_.set_position(v, position);
  } else if (const std::int32_t txn = total_order_.graph.transaction_of(v);
             txn >= 0 && total_order_.apart() && v == total_order_.read_node(txn) &&
             random() % 2 == 0) {
    move_transaction(txn);
  } else {
    move_node(v);
  }
}

std::vector<Node> Annealing::in_order() const {
  std::vector<Node> order = movable_;
  std::ranges::sort(order, [&](Node a, Node b) {
    return key_orders_.position(a) != key_orders_.position(b)
               ? key_orders_.position(a) < key_orders_.position(b)
               : a < b;
  });
  return order;
}

// Spreads the positions evenly, as 0, 1, 2, … in their order, because moves draw new positions
// uniformly from an interval.
void Annealing::spread_positions() {
  movable_ = in_order();
  std::vector<double> even(idx(total_order_.graph.nodes()), KeyOrders::kFirst);
  for (std::size_t i = 0; i < movable_.size(); ++i) even[movable_[i]] = static_cast<double>(i);
  key_orders_.build(std::move(even), present_);
  cost = key_orders_.cost();
}

void Annealing::cool() {
  const double share = static_cast<double>(sweep_) / static_cast<double>(sweeps_);
  temperature_ = range_.hot * std::pow(range_.cold / range_.hot, share);
  for (std::size_t d = 0; d < threshold_.size(); ++d)
    threshold_[d] =
        static_cast<std::uint64_t>(std::exp(-static_cast<double>(d) / temperature_) * 0x1p63) * 2;
}

bool Annealing::run(std::int64_t count) {
  const auto done = [&] {
    if (cost > 0) return false;
    spread_positions();  // separates nodes that share a position, if any, and recomputes the cost
    return cost == 0;
  };
  if (done()) return true;
  for (; count > 0; --count) {
    budget_.poll();
    step();
    best = std::min(best, cost);
    if (done()) return true;
    if (++in_sweep_ < block_size_) continue;
    in_sweep_ = 0;
    if (++in_turn_ == turn_sweeps()) begin_turn();
    key_orders_.find_unsatisfied(block(), unsatisfied_);
  }
  return false;
}

void Annealing::begin_turn() {
  in_turn_ = 0;
  block_first_ += block_size_;
  if (block_first_ == movable_.size()) {
    block_first_ = 0;
    end_sweeps();
  }
  block_size_ = std::min(in_blocks() ? kBlock : kOneBlock, movable_.size() - block_first_);
}

bool Annealing::in_blocks() const { return movable_.size() > kOneBlock; }
std::int64_t Annealing::turn_sweeps() const { return in_blocks() ? kSweepsPerTurn : 1; }

// Ends the sweeps after every block has had its turn.
void Annealing::end_sweeps() {
  if (cost < frozen_cost) {
    frozen_cost = cost;
    frozen_ = in_order();
  }
  const std::int64_t before = std::exchange(sweep_, sweep_ + turn_sweeps());
  if (sweep_ / kSweepsPerTurn != before / kSweepsPerTurn) spread_positions();
  if (sweep_ >= sweeps_) {
    sweep_ = 0;
    sweeps_ = static_cast<std::int64_t>(static_cast<double>(sweeps_) * kCoolingGrowth);
    ++coolings;
  }
  cool();
}

std::optional<Model> Annealing::model() const {
  const std::vector<Node> order = in_order();
  std::vector<std::int32_t> place(idx(total_order_.graph.nodes()), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int32_t>(i);
  return total_order_.model(place, present_);
}

}  // namespace isolang
