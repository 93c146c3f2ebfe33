// Kahn's algorithm: of the nodes that are ready, `topological_order` takes the first one by
// priority (`LeastFirst`). A ready node with an unfulfilled wish is held back, but only for a
// limited number of turns.
#include "engine/graph/topological_order.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/bits.hpp"
#include "core/index.hpp"

namespace isolang {
namespace {

// A wish is abandoned after this many turns. Otherwise, contradictory wishes would delay their
// nodes, and all nodes that depend on these, until the end.
constexpr std::size_t kPatience = 1000;

// A set of numbers below a limit. It finds the least number in one step per factor of 64: a bit of
// a word tells whether a word of the level below is not empty.
class LeastFirst {
 public:
  explicit LeastFirst(std::size_t limit) {
    do {
      limit = words_for(limit);
      levels_.emplace_back(std::max<std::size_t>(1, limit), 0);
    } while (limit > 1);
  }
  bool empty() const { return levels_.back()[0] == 0; }
  void insert(std::size_t number) {
    for (auto& level : levels_) {
      std::uint64_t& word = level[word_of(number)];
      const bool known = word != 0;
      word |= mask_of(number);
      if (known) return;
      number = word_of(number);
    }
  }
  std::size_t least() const {
    std::size_t number = 0;
    for (std::size_t i = levels_.size(); i-- > 0;)
      number = number * kWordBits + idx(std::countr_zero(levels_[i][number]));
    return number;
  }
  std::size_t pop() {
    const std::size_t number = least();
    std::size_t at = number;
    for (auto& level : levels_) {
      std::uint64_t& word = level[word_of(at)];
      word &= ~mask_of(at);
      if (word != 0) break;
      at = word_of(at);
    }
    return number;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;
};

// Returns the nodes by priority, then by number.
std::vector<std::int32_t> by_priority(std::span<const std::int32_t> priority) {
  std::vector<std::int32_t> nodes(priority.size());
  if (nodes.empty()) return nodes;
  const auto [least, most] = std::ranges::minmax(priority);
  const std::int64_t range = std::int64_t{most} - least + 1;
  if (range > 4 * static_cast<std::int64_t>(nodes.size()) + 64) {
    std::iota(nodes.begin(), nodes.end(), 0);
    std::ranges::stable_sort(nodes, {}, [&](std::int32_t v) { return priority[v]; });
    return nodes;
  }
  std::vector<std::int32_t> start(idx(range) + 1, 0);
  for (const std::int32_t p : priority) ++start[idx(p - least) + 1];
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  for (std::size_t v = 0; v < nodes.size(); ++v)
    nodes[start[priority[v] - least]++] = static_cast<std::int32_t>(v);
  return nodes;
}

}  // namespace

std::vector<std::int32_t> topological_order(const Adjacency& successors,
                                            std::span<const std::int32_t> priority,
                                            Budget& budget, const Adjacency* wishes) {
  const std::size_t n = successors.start.size() - 1;
  const std::vector<std::int32_t> node = by_priority(priority);
  std::vector<std::int32_t> turn(n), waiting(n, 0), wished(wishes == nullptr ? 0 : n, 0), order;
  for (std::size_t i = 0; i < n; ++i) turn[node[i]] = static_cast<std::int32_t>(i);
  for (const std::int32_t v : successors.item) ++waiting[v];
  if (wishes != nullptr)
    for (const std::int32_t v : wishes->item) ++wished[v];
  LeastFirst ready(n), held(n);  // held: ready, but another node should come first
  const auto is_ready = [&](std::int32_t v) {
    (wished.empty() || wished[v] == 0 ? ready : held).insert(idx(turn[v]));
  };
  std::vector<std::uint8_t> taken(wished.size(), 0);
  for (std::size_t v = 0; v < n; ++v)
    if (waiting[v] == 0) is_ready(static_cast<std::int32_t>(v));
  order.reserve(n);
  while (!ready.empty() || !held.empty()) {
    budget.poll();
    const bool waits = !ready.empty() && (held.empty() || ready.least() < held.least() + kPatience);
    const std::int32_t u = node[(waits ? ready : held).pop()];
    if (!taken.empty() && std::exchange(taken[u], std::uint8_t{1}) != 0) continue;
    order.push_back(u);
    for (const std::int32_t v : successors.of(u))
      if (--waiting[v] == 0) is_ready(v);
    if (wishes == nullptr) continue;
    for (const std::int32_t v : wishes->of(u))
      if (--wished[v] == 0 && waiting[v] == 0 && taken[v] == 0) is_ready(v);
  }
  return order;
}

}  // namespace isolang
