// A topological order that is kept while edges come and go: Pearce and Kelly, "A dynamic topological sort algorithm for
// directed acyclic graphs" (ACM JEA 11, 2006). Pure graph theory: nodes and edges are numbers.
#pragma once
#include <cstdint>
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

  std::size_t edges() const { return from_.size(); }
  std::int32_t rank(std::int32_t v) const { return rank_[static_cast<std::size_t>(v)]; }
  std::vector<std::int32_t> path;
  std::vector<std::int32_t> moved;  // the nodes whose rank has changed since forget_moved, each once
  void forget_moved();

 private:
  template <typename Visit>
  void each_out(std::int32_t v, Visit visit) const;
  template <typename Visit>
  void each_in(std::int32_t v, Visit visit) const;

  std::size_t permanent_;
  std::vector<std::int32_t> from_, to_, rank_;
  Adjacency out_, in_;                                     // edge numbers, permanent edges
  std::vector<std::int32_t> out_head_, in_head_;           // last added edge of a node, or -1
  std::vector<std::int32_t> out_next_, in_next_;           // by edge number - permanent_
  std::vector<std::uint8_t> mark_, moved_;
  std::vector<std::int32_t> parent_, forward_, backward_, slots_;
};

}  // namespace isolang
