// `reduced_edges` visits the successors of each node in topological order, and drops an edge if an
// edge of an earlier successor leads to the same end. If the graph has a cycle, it drops only
// repeated edges.
#include "engine/graph/reduced_edges.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace isolang {
namespace {

// The successors of each node, in one array.
struct Successors {
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> to;
};

Successors successors(std::int32_t nodes, std::span<const std::int32_t> edges) {
  Successors s;
  s.start.assign(idx(nodes) + 1, 0);
  for (std::size_t i = 0; i < edges.size(); i += 2)
    ++s.start[idx(edges[i]) + 1];
  for (std::size_t v = 0; v < idx(nodes); ++v) s.start[v + 1] += s.start[v];
  s.to.resize(edges.size() / 2);
  std::vector<std::int64_t> next(s.start.begin(), s.start.end() - 1);
  for (std::size_t i = 0; i < edges.size(); i += 2) {
    const auto from = idx(edges[i]);
    s.to[idx(next[from]++)] = edges[i + 1];
  }
  return s;
}

// Returns the position of each node in a topological order; empty if there is a cycle.
std::vector<std::int32_t> places(std::int32_t nodes, const Successors& s) {
  std::vector<std::int32_t> missing(idx(nodes), 0), ready;
  for (const std::int32_t v : s.to) ++missing[idx(v)];
  for (std::int32_t v = 0; v < nodes; ++v)
    if (missing[idx(v)] == 0) ready.push_back(v);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const auto u = idx(ready[i]);
    for (std::int64_t e = s.start[u]; e < s.start[u + 1]; ++e) {
      const std::int32_t v = s.to[idx(e)];
      if (--missing[idx(v)] == 0) ready.push_back(v);
    }
  }
  if (ready.size() < idx(nodes)) return {};
  std::vector<std::int32_t> place(idx(nodes));
  for (std::size_t i = 0; i < ready.size(); ++i)
    place[idx(ready[i])] = static_cast<std::int32_t>(i);
  return place;
}

}  // namespace

std::vector<std::int32_t> reduced_edges(std::int32_t nodes, std::span<const std::int32_t> edges,
                                        Budget& budget) {
  Successors s = successors(nodes, edges);
  const std::vector<std::int32_t> place = places(nodes, s);
  const bool acyclic = !place.empty() || nodes == 0;
  // Per node, the last node that has it as a successor, or as a successor's successor.
  std::vector<std::int32_t> seen(idx(nodes), -1);
  std::vector<std::int32_t> kept;
  for (std::int32_t u = 0; u < nodes; ++u) {
    budget.poll();
    const auto first = s.to.begin() + s.start[idx(u)];
    const auto last = s.to.begin() + s.start[idx(u) + 1];
    // The nearest successors come first, because edges to what they reach are redundant.
    if (acyclic)
      std::sort(first, last, [&](std::int32_t a, std::int32_t b) {
        return place[idx(a)] < place[idx(b)];
      });
    for (auto v = first; v != last; ++v) {
      if (seen[idx(*v)] == u) continue;
      seen[idx(*v)] = u;
      kept.push_back(u);
      kept.push_back(*v);
      if (!acyclic) continue;
      for (std::int64_t e = s.start[idx(*v)];
           e < s.start[idx(*v) + 1]; ++e)
        seen[idx(s.to[idx(e)])] = u;
    }
  }
  return kept;
}

}  // namespace isolang
