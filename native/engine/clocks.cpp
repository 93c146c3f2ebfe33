#include "engine/clocks.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace isolang {

namespace {
constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

std::vector<std::int32_t> topological_order(const Adjacency& successors, std::span<const std::int32_t> priority,
                                            Budget& budget) {
  const std::size_t n = successors.start.size() - 1;
  std::vector<std::int32_t> waiting(n, 0);
  for (const std::int32_t v : successors.item) ++waiting[idx(v)];
  using Ready = std::pair<std::int32_t, std::int32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t v = 0; v < n; ++v)
    if (waiting[v] == 0) ready.emplace(priority[v], static_cast<std::int32_t>(v));
  std::vector<std::int32_t> order;
  order.reserve(n);
  while (!ready.empty()) {
    budget.poll();
    const std::int32_t u = ready.top().second;
    ready.pop();
    order.push_back(u);
    for (const std::int32_t v : successors.of(u))
      if (--waiting[idx(v)] == 0) ready.emplace(priority[idx(v)], v);
  }
  return order;
}

void Clocks::build(const Adjacency& predecessors, std::span<const std::int32_t> order,
                   std::span<const std::uint8_t> touched, std::size_t max_bytes, Budget& budget) {
  const std::size_t n = order.size();
  std::vector<std::int32_t> rank(n), chain(n, -1), position(n, 0), tail;
  for (std::size_t i = 0; i < n; ++i) rank[idx(order[i])] = static_cast<std::int32_t>(i);
  for (const std::int32_t v : order) {
    for (const std::int32_t u : predecessors.of(v)) {
      if (tail[idx(chain[idx(u)])] != u) continue;
      chain[idx(v)] = chain[idx(u)];
      position[idx(v)] = position[idx(u)] + 1;
      tail[idx(chain[idx(u)])] = v;
      break;
    }
    if (chain[idx(v)] < 0) {
      chain[idx(v)] = static_cast<std::int32_t>(tail.size());
      tail.push_back(v);
    }
  }
  const bool again = !touched.empty() && column_.size() == n && chains_ <= tail.size() + tail.size() / 8;
  if (!again) {
    position_ = std::move(position);
    chains_ = tail.size();
    columns_ = std::min(chains_, std::max<std::size_t>(1, max_bytes / (sizeof(std::int32_t) * std::max<std::size_t>(1, n))));
    std::vector<std::int32_t> column_of_chain(chains_);
    std::iota(column_of_chain.begin(), column_of_chain.end(), 0);
    if (columns_ < chains_) {
      std::vector<std::int32_t> by_length(chains_);
      std::iota(by_length.begin(), by_length.end(), 0);
      std::ranges::stable_sort(by_length, std::greater<>(), [&](std::int32_t c) { return position_[idx(tail[idx(c)])]; });
      std::ranges::fill(column_of_chain, -1);
      for (std::size_t i = 0; i < columns_; ++i) column_of_chain[idx(by_length[i])] = static_cast<std::int32_t>(i);
    }
    column_.resize(n);
    for (std::size_t v = 0; v < n; ++v) column_[v] = column_of_chain[idx(chain[v])];
    rows_.assign(n * columns_, -1);
  }
  changed_.assign(n, again ? 0 : 1);
  std::vector<std::int32_t> sources, row(columns_);
  for (const std::int32_t v : order) {
    budget.poll();
    const auto all = predecessors.of(v);
    if (again && touched[idx(v)] == 0 && std::ranges::none_of(all, [&](std::int32_t u) { return changed(u); })) continue;
    std::ranges::fill(row, -1);
    // From the latest predecessor down: most of the others are then already covered, and cost one comparison.
    sources.assign(all.begin(), all.end());
    std::ranges::sort(sources, std::greater<>(), [&](std::int32_t u) { return rank[idx(u)]; });
    for (const std::int32_t u : sources) {
      if (const std::int32_t c = column_[idx(u)]; c >= 0 && row[idx(c)] >= position_[idx(u)]) continue;
      const std::int32_t* const other = rows_.data() + idx(u) * columns_;
      for (std::size_t c = 0; c < columns_; ++c) row[c] = std::max(row[c], other[c]);
    }
    if (const std::int32_t c = column_[idx(v)]; c >= 0) row[idx(c)] = position_[idx(v)];
    std::int32_t* const stored = rows_.data() + idx(v) * columns_;
    if (again && std::equal(row.begin(), row.end(), stored)) continue;
    std::ranges::copy(row, stored);
    changed_[idx(v)] = 1;
  }
}

}  // namespace isolang
