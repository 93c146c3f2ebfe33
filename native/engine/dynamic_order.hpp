// A topological order that is kept while edges come and go: Pearce and Kelly, "A dynamic topological sort algorithm for
// directed acyclic graphs" (ACM JEA 11, 2006). Pure graph theory: nodes and edges are numbers.
#pragma once
#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "engine/clocks.hpp"

namespace isolang {

class DynamicOrder {
 public:
  // `from`, `to`: the permanent edges, numbered 0 …; `rank` must be a topological order of them.
  DynamicOrder(std::int32_t nodes, std::vector<std::int32_t> from, std::vector<std::int32_t> to,
               std::vector<std::int32_t> rank);

  // Adds an edge; it gets the next number. False if it would close a cycle: then it is not added and `path` holds the
  // numbers of the edges of a path v → u.
  bool add(std::int32_t u, std::int32_t v);
  // Takes back the edges added last, until `count` edges are left. The order stays: it is still one.
  void shrink(std::size_t count);
  // Takes back an added edge; its number stays in use. The order stays likewise.
  void remove(std::int32_t edge);

  void set_ranks(std::vector<std::int32_t> rank);  // another topological order, of the edges added since, too
  Adjacency successors() const;
  // Sorts the nodes of these ranks anew: each as late as it can, the higher `latest` the later.
  template <typename Latest>
  void sort_late(std::int32_t first, std::int32_t last, Latest latest);

  std::size_t edges() const { return from_.size(); }
  std::int32_t from(std::int32_t edge) const { return from_[static_cast<std::size_t>(edge)]; }
  std::int32_t to(std::int32_t edge) const { return to_[static_cast<std::size_t>(edge)]; }
  std::int32_t rank(std::int32_t v) const { return rank_[static_cast<std::size_t>(v)]; }
  std::int64_t visited = 0;  // nodes, in all
  std::vector<std::int32_t> path;
  std::vector<std::int32_t> moved;  // the nodes whose rank has changed since forget_moved, each once
  void forget_moved();

 private:
  template <typename Visit>
  void each_out(std::int32_t v, Visit visit) const;
  template <typename Visit>
  void each_in(std::int32_t v, Visit visit) const;

  void set_rank(std::int32_t v, std::int32_t rank) {
    if (rank_[static_cast<std::size_t>(v)] == rank) return;
    rank_[static_cast<std::size_t>(v)] = rank;
    at_[static_cast<std::size_t>(rank)] = v;
    if (std::exchange(moved_[static_cast<std::size_t>(v)], std::uint8_t{1}) == 0) moved.push_back(v);
  }

  std::size_t permanent_;
  std::vector<std::int32_t> from_, to_;                    // -1: removed
  std::vector<std::int32_t> rank_, at_;                    // at_: per rank its node
  Adjacency out_, in_;                                     // edge numbers, permanent edges
  std::vector<std::int32_t> out_head_, in_head_;           // last added edge of a node, or -1
  std::vector<std::int32_t> out_next_, in_next_;           // by edge number - permanent_
  std::vector<std::uint8_t> mark_, moved_;
  std::vector<std::int32_t> parent_, forward_, backward_, slots_;
};

template <typename Visit>
void DynamicOrder::each_out(std::int32_t v, Visit visit) const {
  for (const std::int32_t e : out_.of(v)) visit(e);
  for (std::int32_t e = out_head_[static_cast<std::size_t>(v)]; e >= 0;
       e = out_next_[static_cast<std::size_t>(e) - permanent_])
    visit(e);
}

template <typename Visit>
void DynamicOrder::each_in(std::int32_t v, Visit visit) const {
  for (const std::int32_t e : in_.of(v)) visit(e);
  for (std::int32_t e = in_head_[static_cast<std::size_t>(v)]; e >= 0;
       e = in_next_[static_cast<std::size_t>(e) - permanent_])
    visit(e);
}

template <typename Latest>
void DynamicOrder::sort_late(std::int32_t first, std::int32_t last, Latest latest) {
  const auto nodes =
      std::span(at_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
  std::vector<std::int32_t> waiting(nodes.size(), 0);  // for so many successors among them
  using Ready = std::pair<std::pair<std::int32_t, std::int32_t>, std::int32_t>;
  std::priority_queue<Ready> ready;
  const auto add = [&](std::int32_t v) { ready.push({{latest(v), rank(v)}, v}); };
  const auto inside = [&](std::int32_t r) { return first <= r && r <= last; };
  for (const std::int32_t v : nodes) {
    std::int32_t& count = waiting[static_cast<std::size_t>(rank(v) - first)];
    each_out(v, [&](std::int32_t e) { count += inside(rank(to_[static_cast<std::size_t>(e)])); });
    if (count == 0) add(v);
  }
  std::vector<std::int32_t> sorted;  // the last first
  while (!ready.empty()) {
    const std::int32_t v = ready.top().second;
    ready.pop();
    sorted.push_back(v);
    each_in(v, [&](std::int32_t e) {
      const std::int32_t u = from_[static_cast<std::size_t>(e)];
      if (inside(rank(u)) && --waiting[static_cast<std::size_t>(rank(u) - first)] == 0) add(u);
    });
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) set_rank(sorted[i], last - static_cast<std::int32_t>(i));
}

}  // namespace isolang
