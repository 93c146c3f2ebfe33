// `short_cycles` finds the strongly connected components, and runs a breadth-first search from each
// node, within its component. A component is done when it has a cycle of two edges, or when the
// effort is used up and it has any cycle.
#include "engine/graph/short_cycle.hpp"

#include <algorithm>
#include <utility>

#include "core/index.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {
namespace {
constexpr std::int64_t kEffort = 2'000'000;  // maximum number of edges visited

// Returns the strongly connected component of each node, by Tarjan's algorithm (SIAM Journal on
// Computing, 1972) with an explicit stack; -1 for excluded nodes, and for nodes on no cycle.
std::vector<std::int32_t> components(std::span<const Edge> edges, const Adjacency& outgoing,
                                     const std::vector<std::uint8_t>& left_out, Budget& budget) {
  const auto n = static_cast<std::int32_t>(left_out.size());
  std::vector<std::int32_t> component(idx(n), -1), found(idx(n), -1), lowest(idx(n), 0), open;
  std::vector<std::uint8_t> is_open(idx(n), 0), loops(idx(n), 0);
  std::vector<std::pair<Node, std::size_t>> path;  // with the index of the next edge
  std::int32_t count = 0;
  const auto enter = [&](Node v) {
    found[v] = lowest[v] = count++;
    is_open[v] = 1;
    open.push_back(v);
    path.emplace_back(v, 0);
  };
  for (Node start = 0; start < n; ++start) {
    if (left_out[start] != 0 || found[start] >= 0) continue;
    enter(start);
    while (!path.empty()) {
      budget.poll();
      auto& [v, next] = path.back();
      const auto list = outgoing.of(v);
      if (next < list.size()) {
        const Node w = edges[list[next++]].to;
        loops[v] |= static_cast<std::uint8_t>(w == v);
        if (found[w] < 0)
          enter(w);
        else if (is_open[w] != 0)
          lowest[v] = std::min(lowest[v], found[w]);
        continue;
      }
      const Node done = v;
      path.pop_back();
      if (!path.empty())
        lowest[path.back().first] = std::min(lowest[path.back().first], lowest[done]);
      if (lowest[done] != found[done]) continue;
      const bool alone = open.back() == done && loops[done] == 0;
      for (Node w = -1; w != done;) {
        w = open.back();
        open.pop_back();
        is_open[w] = 0;
        component[w] = alone ? -1 : done;
      }
    }
  }
  return component;
}

}  // namespace

std::vector<std::vector<std::int32_t>> short_cycles(std::span<const Edge> edges,
                                                    const std::vector<std::uint8_t>& left_out,
                                                    Budget& budget) {
  const auto n = static_cast<std::int32_t>(left_out.size());
  const auto outgoing = group_by(
      n, edges.size(),
      [&](std::size_t i) {
        return left_out[edges[i].from] | left_out[edges[i].to] ? -1 : edges[i].from;
      },
      [](std::size_t i) { return static_cast<std::int32_t>(i); });
  const auto component = components(edges, outgoing, left_out, budget);
  std::vector<std::vector<std::int32_t>> cycles;
  std::vector<std::int32_t> number(idx(n), -1);  // per component: its cycle, or -1
  std::vector<std::int32_t> via(idx(n), -1), stamp(idx(n), -1), depth(idx(n), 0);
  std::vector<Node> queue;
  std::int64_t effort = kEffort;
  for (Node start = 0; start < n; ++start) {
    if (component[start] < 0) continue;
    std::int32_t& at = number[component[start]];
    if (at >= 0 && (effort <= 0 || cycles[at].size() <= 2)) continue;
    queue.assign(1, start);
    stamp[start] = start;
    depth[start] = 0;
    bool closed = false;
    for (std::size_t head = 0; head < queue.size() && !closed; ++head) {
      const Node u = queue[head];
      if (at >= 0 && idx(depth[u]) + 1 >= cycles[at].size()) break;
      for (const std::int32_t e : outgoing.of(u)) {
        --effort;
        const Node v = edges[e].to;
        if (v == start) {
          if (at < 0) {
            at = static_cast<std::int32_t>(cycles.size());
            cycles.emplace_back();
          }
          auto& cycle = cycles[at];
          cycle.assign(1, e);
          for (Node w = u; w != start; w = edges[via[w]].from) cycle.push_back(via[w]);
          std::ranges::reverse(cycle);
          closed = true;
          break;
        }
        if (stamp[v] == start || component[v] != component[start]) continue;
        stamp[v] = start;
        depth[v] = depth[u] + 1;
        via[v] = e;
        queue.push_back(v);
      }
    }
    budget.poll();
  }
  std::ranges::stable_sort(cycles, {}, &std::vector<std::int32_t>::size);
  return cycles;
}

}  // namespace isolang
