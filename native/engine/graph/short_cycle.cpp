// `short_cycles` finds the strongly connected components, and runs breadth-first searches from each
// node, within its component. A component is done when it has a cycle of two edges, or when the
// effort is used up and it has any cycle.
#include "engine/graph/short_cycle.hpp"

#include <algorithm>
#include <utility>

#include "core/index.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {
namespace {
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

// Searches for short cycles through one node, within its component.
class CyclesOfNode {
 public:
  CyclesOfNode(std::span<const Edge> edges, const std::vector<std::uint8_t>& left_out,
               std::int64_t most_effort, Budget& budget)
      : effort(most_effort),
        edges_(edges),
        outgoing_(by_node(edges, left_out, &Edge::from)),
        incoming_(by_node(edges, left_out, &Edge::to)),
        component_(components(edges, outgoing_, left_out, budget)),
        ahead_(left_out.size(), 0),
        behind_(left_out.size(), 0),
        via_(left_out.size(), -1) {}

  // Returns the component of the node; -1 if no cycle leads through the node.
  std::int32_t component(Node v) const { return component_[v]; }

  // Returns true if a cycle of at most this many edges leads through the node. The search starts
  // from both ends, because at half the depth there are about the square root of the nodes.
  bool any(Node start, std::size_t longest) {
    const std::size_t half = longest / 2;
    search(start, outgoing_, &Edge::to, ahead_, half, [](Node) { return false; });
    const std::int32_t forwards = searches_;
    return search(start, incoming_, &Edge::from, behind_, longest - half,
                  [&](Node v) { return ahead_[v] == forwards; });
  }

  // Returns the edges of a shortest cycle through the node.
  std::vector<std::int32_t> shortest(Node start) {
    search(start, outgoing_, &Edge::to, ahead_, edges_.size(), [&](Node v) { return v == start; });
    std::vector<std::int32_t> cycle;
    for (Node v = start; cycle.empty() || v != start; v = edges_[via_[v]].from)
      cycle.push_back(via_[v]);
    std::ranges::reverse(cycle);
    return cycle;
  }

  std::int64_t effort;  // the number of edges that may still be visited

 private:
  static Adjacency by_node(std::span<const Edge> edges, const std::vector<std::uint8_t>& left_out,
                           Node Edge::* end) {
    return group_by(
        static_cast<std::int32_t>(left_out.size()), edges.size(),
        [&](std::size_t i) {
          return left_out[edges[i].from] | left_out[edges[i].to] ? -1 : edges[i].*end;
        },
        [](std::size_t i) { return static_cast<std::int32_t>(i); });
  }

  // Searches breadth first, along at most this many edges in the direction of `end`, and marks the
  // nodes that it finds. Returns true as soon as it finds a node at which it ends.
  template <typename Ends>
  bool search(Node start, const Adjacency& next, Node Edge::* end, std::vector<std::int32_t>& found,
              std::size_t longest, Ends ends) {
    const std::int32_t mark = found[start] = ++searches_;
    queue_.assign(1, start);
    std::size_t depth = 0, of_depth = 1;  // how many nodes are at most this deep
    for (std::size_t head = 0; head < queue_.size(); ++head) {
      if (head == of_depth) {
        ++depth;
        of_depth = queue_.size();
      }
      if (depth == longest) break;
      for (const std::int32_t e : next.of(queue_[head])) {
        --effort;
        const Node v = edges_[e].*end;
        if (component_[v] != component_[start]) continue;
        const bool last = ends(v);
        if (!last && found[v] == mark) continue;
        found[v] = mark;
        via_[v] = e;
        if (last) return true;
        queue_.push_back(v);
      }
    }
    return false;
  }

  std::span<const Edge> edges_;
  Adjacency outgoing_, incoming_;  // node -> edge numbers
  std::vector<std::int32_t> component_, ahead_, behind_;  // the last search that found a node
  std::vector<std::int32_t> via_;  // the edge by which it was found
  std::int32_t searches_ = 0;
  std::vector<Node> queue_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> short_cycles(std::span<const Edge> edges,
                                                    const std::vector<std::uint8_t>& left_out,
                                                    std::int64_t effort, Budget& budget) {
  const auto n = static_cast<std::int32_t>(left_out.size());
  CyclesOfNode through(edges, left_out, effort, budget);
  std::vector<std::vector<std::int32_t>> cycles;
  std::vector<std::int32_t> number(idx(n), -1);  // per component: its cycle, or -1
  for (Node start = 0; start < n; ++start) {
    if (through.component(start) < 0) continue;
    std::int32_t& at = number[through.component(start)];
    if (at < 0) {
      at = static_cast<std::int32_t>(cycles.size());
      cycles.push_back(through.shortest(start));
    } else if (through.effort > 0 && cycles[at].size() > 2 &&
               through.any(start, cycles[at].size() - 1)) {
      cycles[at] = through.shortest(start);
    }
    budget.poll();
  }
  std::ranges::stable_sort(cycles, {}, &std::vector<std::int32_t>::size);
  return cycles;
}

}  // namespace isolang
