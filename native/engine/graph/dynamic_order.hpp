// A topological order that is maintained while edges are added and removed: Pearce and Kelly, "A
// dynamic topological sort algorithm for directed acyclic graphs" (ACM JEA 11, 2006). This is pure
// graph theory: nodes and edges are numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "core/prefetch.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {

class DynamicOrder {
 public:
  // The permanent edges are numbered 0 … count-1: from_of(i) → to_of(i). `rank` must be a
  // topological order of them. If the caller has the edges by `from`, in the order of their numbers,
  // it may share them as `out`. They, and what from_of refers to, must then outlive this object.
  template <typename FromOf, typename ToOf>
  DynamicOrder(std::size_t count, FromOf from_of, ToOf to_of, std::vector<std::int32_t> rank,
               const Adjacency* out = nullptr)
      : permanent_(count), out_(out) {
    const auto nodes = static_cast<std::int32_t>(rank.size());
    in_ = group_by(nodes, count, to_of, from_of);
    if (out_ == nullptr) {
      own_out_ = group_by(nodes, count, from_of, to_of);
      out_ = &own_out_;
      find_numbers(from_of);
    } else {
      find_numbers_ = [this, from_of] { find_numbers(from_of); };
    }
    begin(std::move(rank));
  }
  DynamicOrder(const DynamicOrder&) = delete;
  DynamicOrder& operator=(const DynamicOrder&) = delete;

  // Adds an edge, which gets the next number. Returns false if the edge would close a cycle: the
  // edge is then not added, and `path` holds the numbers of the edges of a path v → u.
  bool add(std::int32_t u, std::int32_t v);
  // Removes the edges added last, until `count` edges are left. The order does not change, because
  // it is still a topological order.
  void shrink(std::size_t count);
  // Removes an added edge. Its number stays in use, and the order does not change.
  void remove(std::int32_t edge);

  void set_ranks(
      // Sets another topological order, which must also respect the added edges.
      std::vector<std::int32_t> rank);
  Adjacency successors() const;
  // Sorts the nodes of the ranks first … last again: each node comes as late as possible, and nodes
  // with a higher `latest` come later.
  template <typename Latest>
  void sort_late(std::int32_t first, std::int32_t last, Latest latest);

  std::size_t edges() const { return permanent_ + from_.size(); }
  std::int32_t rank(std::int32_t v) const { return rank_[v]; }
  void prefetch_rank(std::int32_t v) const { prefetch(rank_.data() + v); }
  std::int64_t visited = 0;  // number of nodes visited in total
  std::vector<std::int32_t> path;
  std::vector<std::int32_t>
      moved;  // the nodes whose rank has changed since forget_moved, without duplicates
  void forget_moved();

 private:
  // Where an edge is stored: for a permanent edge, its index in out_->item; for an added edge, ~ of
  // its index in from_ and to_.
  using Place = std::int32_t;
  std::int32_t number_of(Place edge) {
    if (edge < 0) return static_cast<std::int32_t>(permanent_) + ~edge;
    if (number_.empty()) find_numbers_();
    return number_[edge];
  }
  template <typename FromOf>
  void find_numbers(FromOf from_of) {
    number_.resize(permanent_);
    std::vector<std::uint32_t> next(out_->start.begin(), out_->start.end() - 1);
    for (std::size_t i = 0; i < permanent_; ++i) number_[next[from_of(i)]++] = static_cast<std::int32_t>(i);
  }
  template <typename Visit>
  void each_out(std::int32_t v, Visit visit) const;  // visit(node, Place of the edge)
  template <typename Visit>
  void each_in(std::int32_t v, Visit visit) const;  // visit(node)

  void begin(std::vector<std::int32_t> rank);
  bool find_backward(std::int32_t u, std::int32_t lower, std::size_t most);
  void shift_forward(std::int32_t lower, std::int32_t upper);

  void set_rank(std::int32_t v, std::int32_t rank) {
    if (rank_[v] == rank) return;
    rank_[v] = rank;
    at_[rank] = v;
    if (std::exchange(moved_[v], std::uint8_t{1}) == 0) moved.push_back(v);
  }

  std::size_t permanent_;
  const Adjacency* out_;                 // neighbours along permanent edges
  Adjacency own_out_, in_;
  // Per item of *out_, the number of the edge. If *out_ is shared, it is empty until a path is found.
  std::vector<std::int32_t> number_;
  std::function<void()> find_numbers_;
  std::vector<std::int32_t> rank_, at_;  // at_: the node of each rank
  // The added edges, by number - permanent_.
  std::vector<std::int32_t> from_, to_;           // -1: removed
  // For each added edge, the previous edge in the list of the same node, or -1.
  std::vector<std::int32_t> out_next_, in_next_;
  std::vector<std::int32_t> out_head_, in_head_;  // per node, the last edge of its list, or -1
  std::vector<std::uint8_t> mark_, moved_;
  struct Parent {
    std::int32_t node;
    Place edge;
  };
  std::vector<Parent> parent_;
  std::vector<std::int32_t> forward_, backward_, slots_;
};

template <typename Visit>
void DynamicOrder::each_out(std::int32_t v, Visit visit) const {
  const auto node = idx(v);
  for (std::uint32_t i = out_->start[node]; i < out_->start[node + 1]; ++i)
    visit(out_->item[i], static_cast<Place>(i));
  for (std::int32_t e = out_head_[node]; e >= 0; e = out_next_[e]) visit(to_[e], ~e);
}

template <typename Visit>
void DynamicOrder::each_in(std::int32_t v, Visit visit) const {
  for (const std::int32_t u : in_.of(v)) visit(u);
  for (std::int32_t e = in_head_[v]; e >= 0; e = in_next_[e]) visit(from_[e]);
}

template <typename Latest>
void DynamicOrder::sort_late(std::int32_t first, std::int32_t last, Latest latest) {
  const auto nodes = std::span(at_).subspan(idx(first), idx(last - first + 1));
  // Number of successors in the range that have not been placed yet.
  std::vector<std::int32_t> waiting(nodes.size(), 0);
  using Ready = std::pair<std::pair<std::int32_t, std::int32_t>, std::int32_t>;
  std::priority_queue<Ready> ready;
  const auto add = [&](std::int32_t v) { ready.push({{latest(v), rank(v)}, v}); };
  const auto inside = [&](std::int32_t r) { return first <= r && r <= last; };
  for (const std::int32_t v : nodes) {
    std::int32_t& count = waiting[rank(v) - first];
    each_out(v, [&](std::int32_t w, Place) { count += inside(rank(w)); });
    if (count == 0) add(v);
  }
  std::vector<std::int32_t> sorted;  // the last node first
  while (!ready.empty()) {
    const std::int32_t v = ready.top().second;
    ready.pop();
    sorted.push_back(v);
    each_in(v, [&](std::int32_t u) {
      if (inside(rank(u)) && --waiting[rank(u) - first] == 0) add(u);
    });
  }
  for (std::size_t i = 0; i < sorted.size(); ++i)
    set_rank(sorted[i], last - static_cast<std::int32_t>(i));
}

}  // namespace isolang
