#include "engine/anneal.hpp"

#include <algorithm>
#include <cmath>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr double kHot = 0.5, kCold = 0.12;
constexpr double kLonger = 2.5;
constexpr std::uint64_t kMend = 20;  // of 100 moves

constexpr double kFirst = -1.0;  // the moment of T0

}  // namespace

Annealing::Annealing(const Timeline& line, Budget& budget, std::uint64_t seed)
    : line_(line), budget_(budget), state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567) {
  const Problem& p = line.problem;
  const auto nodes = line.graph.nodes();
  moment_.assign(idx(nodes), kFirst);
  present_.assign(p.inclusion.size(), 0);
  keys_.resize(idx(p.keys));
  touch_start_.push_back(0);
  for (Node v = 0; v < nodes; ++v) {
    const std::int32_t txn = line.graph.transaction_of(v);
    if (line.graph.check_of(v) >= 0 && txn != p.n && (txn < 0 || line.usable(txn))) {
      movable_.push_back(v);
      txn_of_.push_back(txn);
      moment_[idx(v)] = line.pruner.rank[idx(v)];
      if (txn >= 0) {
        if (v == line.read_node(txn))
          for (const std::int32_t r : line.reads.of(txn)) {
            const std::int32_t key = p.read_key[idx(r)];
            auto touch = std::find_if(touches_.begin() + touch_start_.back(), touches_.end(), [&](const Touch& t) { return t.key == key; });
            if (touch == touches_.end()) {
              touches_.push_back({key, static_cast<std::int32_t>(touched_reads_.size()), 0});
              touch = touches_.end() - 1;
            }
            touched_reads_.insert(touched_reads_.begin() + touch->first_read + touch->reads++, r);
            for (auto t = touch + 1; t != touches_.end(); ++t) ++t->first_read;
          }
        for (const std::int32_t w : line.writes.of(txn)) {
          const bool writes = v == line.write_node(txn), guards = line.locks && !writes && v == line.read_node(txn);
          if (!writes && !guards) continue;
          const std::int32_t key = line.key_of(w);
          auto touch = std::find_if(touches_.begin() + touch_start_.back(), touches_.end(), [&](const Touch& t) { return t.key == key; });
          if (touch == touches_.end()) {
            touches_.push_back({key, 0, 0});
            touch = touches_.end() - 1;
          }
          (writes ? touch->writer : touch->guarded) = w;
        }
      }
    }
    touch_start_.push_back(static_cast<std::int32_t>(touches_.size()));
  }
  for (std::int32_t key = 0; key < p.keys; ++key)
    if (const std::int32_t w = p.key_start[idx(key)]; w < p.key_start[idx(key) + 1]) keys_[idx(key)].push_back({kFirst, w});
  for (std::int32_t t = 0; t < p.n; ++t) {
    if (!line.usable(t)) continue;
    if (line.optional(t)) {
      optional_.push_back(t);
      continue;
    }
    present_[idx(t)] = 1;
    put(line.write_node(t), moment_[idx(line.write_node(t))]);
    if (line.apart()) put(line.read_node(t), moment_[idx(line.read_node(t))]);
  }
  evenly();
  cost = best = count_cost();
  cool();
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
  double low = kFirst;
  for (const Node u : line_.before.of(v)) low = std::max(low, moment_[idx(u)]);
  return low;
}

double Annealing::above(Node v) const {
  double high = static_cast<double>(movable_.size());
  for (const Node u : line_.after.of(v)) high = std::min(high, moment_[idx(u)]);
  return high;
}

namespace {

template <typename Line>
auto place_in(const Line& entries, double moment) {
  return std::lower_bound(entries.begin(), entries.end(), moment, [](const auto& e, double m) { return e.moment < m; });
}

}  // namespace

// The node's own entries, if they are on the line, are passed over.
std::int32_t Annealing::seen(Node v, double moment) const {
  std::int32_t sum = 0;
  const double own = moment_[idx(v)];
  for (std::int32_t t = touch_start_[idx(v)]; t < touch_start_[idx(v) + 1]; ++t) {
    const Touch& touch = touches_[idx(t)];
    if (touch.reads == 0 && touch.writer < 0) continue;
    const auto& entries = keys_[idx(touch.key)];
    const auto here = place_in(entries, moment);
    auto previous = here;  // T0's write stands at the front, so there is one
    do --previous;
    while (!previous->write() || previous->moment == own);
    for (std::int32_t i = 0; i < touch.reads; ++i)
      sum += mismatch(touched_reads_[idx(touch.first_read + i)], previous->item);
    if (touch.writer < 0) continue;
    auto next = here;
    for (; next != entries.end(); ++next) {
      if (next->moment == own) continue;
      if (next->write()) break;
      sum += mismatch(~next->item, touch.writer) - mismatch(~next->item, previous->item);
    }
    if (!line_.locks) continue;
    sum += previous->moment > locked(touch.writer);
    if (next != entries.end()) {
      const double since = locked(next->item);
      sum += (moment > since) - (previous->moment > since);
    }
  }
  return sum;
}

std::int32_t Annealing::guarded(Node v, double moment) const {
  std::int32_t sum = 0;
  for (std::int32_t t = touch_start_[idx(v)]; t < touch_start_[idx(v) + 1]; ++t) {
    const Touch& touch = touches_[idx(t)];
    if (touch.guarded < 0) continue;
    const auto& entries = keys_[idx(touch.key)];
    auto last = place_in(entries, moment_[idx(line_.write_node(line_.problem.writer_txn[idx(touch.guarded)]))]);
    do --last;
    while (!last->write());
    sum += last->moment > moment;
  }
  return sum;
}

double Annealing::locked(std::int32_t writer) const {
  const std::int32_t txn = line_.problem.writer_txn[idx(writer)];
  return txn == line_.problem.n ? kFirst : moment_[idx(line_.read_node(txn))];
}

void Annealing::take(Node v) {
  for (std::int32_t t = touch_start_[idx(v)]; t < touch_start_[idx(v) + 1]; ++t) {
    const Touch& touch = touches_[idx(t)];
    auto& entries = keys_[idx(touch.key)];
    const auto first = entries.begin() + (place_in(entries, moment_[idx(v)]) - entries.begin());
    entries.erase(first, first + touch.reads + (touch.writer >= 0));
  }
}

void Annealing::put(Node v, double moment) {
  moment_[idx(v)] = moment;
  for (std::int32_t t = touch_start_[idx(v)]; t < touch_start_[idx(v) + 1]; ++t) {
    const Touch& touch = touches_[idx(t)];
    auto& entries = keys_[idx(touch.key)];
    auto at = entries.begin() + (place_in(entries, moment) - entries.begin());
    for (std::int32_t i = 0; i < touch.reads; ++i)
      at = entries.insert(at, {moment, ~touched_reads_[idx(touch.first_read + i)]}) + 1;
    if (touch.writer >= 0) entries.insert(at, {moment, touch.writer});
  }
}

bool Annealing::accepts(std::int32_t difference) {
  if (difference <= 0) return true;
  return idx(difference) < threshold_.size() && random() < threshold_[idx(difference)];
}

void Annealing::move_node(Node v) {
  const double low = below(v), high = above(v), moment = between(low, high);
  if (low < moment && moment < high) move_to(v, moment);  // else no room is left between two numbers
}

void Annealing::find_unsatisfied() {
  unsatisfied_.clear();
  for (const auto& entries : keys_) {
    std::int32_t last = -1;
    for (const Entry& e : entries)
      if (e.write())
        last = e.item;
      else if (mismatch(~e.item, last))
        unsatisfied_.push_back(~e.item);
  }
}

// Satisfied since the last look or not: the read is judged anew, so an old list only wastes a move.
void Annealing::mend() {
  const std::int32_t r = unsatisfied_[pick(unsatisfied_.size())];
  const Problem& p = line_.problem;
  if (!present_[idx(p.read_txn[idx(r)])]) return;
  const Node reader = line_.read_node(p.read_txn[idx(r)]);
  const auto first = p.candidate_start[idx(r)];
  const auto& entries = keys_[idx(p.read_key[idx(r)])];
  auto previous = place_in(entries, moment_[idx(reader)]);
  do --previous;
  while (!previous->write());
  if (!mismatch(r, previous->item)) return;
  if (random() % 2 == 0) {
    const std::int32_t w = p.candidate[static_cast<std::size_t>(first) + pick(static_cast<std::size_t>(p.candidate_start[idx(r) + 1] - first))];
    const std::int32_t txn = p.writer_txn[idx(w)];
    if (txn == p.n || !line_.usable(txn) || !present_[idx(txn)]) return;
    const Node v = line_.write_node(txn);
    const double low = std::max(previous->moment, below(v)), high = std::min(moment_[idx(reader)], above(v));
    if (!(low < high)) return;
    const double moment = between(low, high);
    if (low < moment && moment < high) move_to(v, moment);
  } else {
    move_node(reader);
  }
}

void Annealing::move_to(Node v, double moment) {
  const std::int32_t difference = change(v, moment) - change(v, moment_[idx(v)]);
  if (!accepts(difference)) return;
  take(v);
  put(v, moment);
  cost += difference;
}

// Both nodes of a transaction to one place, next to each other. They are moved one after the other, so that each
// difference is that of one node, and the first goes back if the two together are refused.
void Annealing::move_transaction(std::int32_t txn) {
  const Node r = line_.read_node(txn), w = line_.write_node(txn);
  double low = below(r), high = above(w);
  for (const Node u : line_.before.of(w))
    if (u != r) low = std::max(low, moment_[idx(u)]);
  for (const Node u : line_.after.of(r))
    if (u != w) high = std::min(high, moment_[idx(u)]);
  if (!(low < high)) return;
  const double write = between(low, high), read = between(std::max(low, write - 1), write);
  if (!(low < read && read < write && write < high)) return;
  const bool later = write > moment_[idx(w)];
  const Node first = later ? w : r, second = later ? r : w;
  const double to_first = later ? write : read, to_second = later ? read : write, back = moment_[idx(first)];
  std::int32_t difference = change(first, to_first) - change(first, back);
  shift(first, to_first);
  difference += change(second, to_second) - change(second, moment_[idx(second)]);
  if (accepts(difference)) {
    shift(second, to_second);
    cost += difference;
  } else {
    shift(first, back);
  }
}

// A maybe transaction comes in, or goes.
void Annealing::toggle(std::int32_t txn) {
  const Node r = line_.read_node(txn), w = line_.write_node(txn);
  std::int32_t difference = 0;
  const bool comes = present_[idx(txn)] == 0;
  if (comes) {
    difference = seen(w, moment_[idx(w)]);
    put(w, moment_[idx(w)]);
    if (line_.apart()) {
      difference += seen(r, moment_[idx(r)]);
      put(r, moment_[idx(r)]);
    }
  } else {
    if (line_.apart()) {
      difference -= seen(r, moment_[idx(r)]);
      take(r);
    }
    difference -= seen(w, moment_[idx(w)]);
    take(w);
  }
  if (accepts(difference)) {
    cost += difference;
    present_[idx(txn)] = comes;
    return;
  }
  for (const Node v : {w, r}) {
    if (v == r && !line_.apart()) break;
    if (comes)
      take(v);
    else
      put(v, moment_[idx(v)]);
  }
}

void Annealing::step() {
  ++moves;
  if (!optional_.empty() && random() % 8 == 0) {
    toggle(optional_[pick(optional_.size())]);
    return;
  }
  if (!unsatisfied_.empty() && random() % 100 < kMend) return mend();
  const std::size_t i = pick(movable_.size());
  const Node v = movable_[i];
  const std::int32_t txn = txn_of_[i];
  if (txn >= 0 && !present_[idx(txn)]) {
    const double low = below(v), high = above(v), moment = between(low, high);
    if (low < moment && moment < high) moment_[idx(v)] = moment;
  } else if (txn >= 0 && line_.apart() && v == line_.read_node(txn) && random() % 2 == 0) {
    move_transaction(txn);
  } else {
    move_node(v);
  }
}

// Moments are drawn evenly from an interval, so they are to be spread evenly: 0, 1, 2, … in their order.
void Annealing::evenly() {
  std::vector<Node> order = movable_;
  std::ranges::sort(order, [&](Node a, Node b) {
    return moment_[idx(a)] != moment_[idx(b)] ? moment_[idx(a)] < moment_[idx(b)] : a < b;
  });
  std::vector<double> even(moment_.size(), kFirst);
  for (std::size_t i = 0; i < order.size(); ++i) even[idx(order[i])] = static_cast<double>(i);
  const Problem& p = line_.problem;
  for (auto& entries : keys_)
    for (Entry& e : entries) {
      const std::int32_t txn = e.write() ? p.writer_txn[idx(e.item)] : p.read_txn[idx(~e.item)];
      if (txn != p.n) e.moment = even[idx(e.write() ? line_.write_node(txn) : line_.read_node(txn))];
    }
  moment_ = std::move(even);
}

void Annealing::cool() {
  const double share = static_cast<double>(sweep_) / static_cast<double>(sweeps_);
  temperature_ = kHot * std::pow(kCold / kHot, share);
  for (std::size_t d = 0; d < threshold_.size(); ++d)
    threshold_[d] = static_cast<std::uint64_t>(std::exp(-static_cast<double>(d) / temperature_) * 0x1p63) * 2;
}

bool Annealing::run(std::int64_t count) {
  if (cost == 0) return true;
  for (; count > 0; --count) {
    budget_.poll();
    step();
    best = std::min(best, cost);
    if (cost == 0) return true;
    if (++in_sweep_ < static_cast<std::int64_t>(movable_.size())) continue;
    in_sweep_ = 0;
    find_unsatisfied();
    if (++sweep_ % 8 == 0) evenly();
    if (sweep_ >= sweeps_) {
      sweep_ = 0;
      sweeps_ = static_cast<std::int64_t>(static_cast<double>(sweeps_) * kLonger);
      ++coolings;
    }
    cool();
  }
  return false;
}

std::int64_t Annealing::count_cost() const {
  std::int64_t sum = 0;
  for (const auto& entries : keys_) {
    const Entry* previous = nullptr;
    for (const Entry& e : entries) {
      if (!e.write()) {
        sum += mismatch(~e.item, previous->item);
        continue;
      }
      if (previous != nullptr && line_.locks) sum += previous->moment > locked(e.item);
      previous = &e;
    }
  }
  return sum;
}

std::optional<Model> Annealing::model() const {
  std::vector<Node> order = movable_;
  std::ranges::sort(order, [&](Node a, Node b) { return moment_[idx(a)] < moment_[idx(b)]; });
  std::vector<std::int32_t> place(moment_.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[idx(order[i])] = static_cast<std::int32_t>(i);
  return line_.model(place, present_);
}

}  // namespace isolang
