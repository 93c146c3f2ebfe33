// Reachability in a directed acyclic graph by chain clocks. Pure graph theory: nodes are numbers.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/budget.hpp"

namespace isolang {

// Adjacency in one array: the neighbours of v are item[start[v]] … item[start[v+1]-1].
struct Adjacency {
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> item;
  std::span<const std::int32_t> of(std::int32_t v) const {
    const auto i = static_cast<std::size_t>(v);
    return {item.data() + start[i], item.data() + start[i + 1]};
  }
};

// Groups the numbers 0 … count-1 by key_of(i), stably. `groups` is the number of keys; negative keys are left out.
template <typename KeyOf, typename ItemOf>
Adjacency group_by(std::int32_t groups, std::size_t count, KeyOf key_of, ItemOf item_of) {
  Adjacency g;
  g.start.assign(static_cast<std::size_t>(groups) + 1, 0);
  for (std::size_t i = 0; i < count; ++i)
    if (const std::int32_t k = key_of(i); k >= 0) ++g.start[static_cast<std::size_t>(k) + 1];
  for (std::size_t v = 0; v < static_cast<std::size_t>(groups); ++v) g.start[v + 1] += g.start[v];
  g.item.resize(static_cast<std::size_t>(g.start.back()));
  std::vector<std::int64_t> next(g.start.begin(), g.start.end() - 1);
  for (std::size_t i = 0; i < count; ++i)
    if (const std::int32_t k = key_of(i); k >= 0)
      g.item[static_cast<std::size_t>(next[static_cast<std::size_t>(k)]++)] = item_of(i);
  return g;
}

// Kahn's algorithm, taking the ready node with the least priority first. Returns the nodes in order; fewer than all if
// there is a cycle.
std::vector<std::int32_t> topological_order(const Adjacency& successors, std::span<const std::int32_t> priority,
                                            Budget& budget);

// For every node the latest position on each chain that reaches it. The chains cover the graph and are found greedily
// in topological order: a node continues the chain of its first predecessor that ends one. They are *not* sessions: when
// session order cannot be repeated in the automaton, a session is no path.
class Clocks {
 public:
  // Memory is limited to about max_bytes: beyond that only the longest chains get a column, and `reaches` answers "not
  // known" (false) for nodes of the others. SOUND BECAUSE every use treats false as "not known to reach".
  //
  // A later call, after edges were added, keeps the chains (they still are paths) unless a cover with far fewer was found,
  // and computes again only the rows that may differ. `touched`, per node: it has new predecessors;
  // if it is empty everything is new.
  void build(const Adjacency& predecessors, std::span<const std::int32_t> order, std::span<const std::uint8_t> touched,
             std::size_t max_bytes, Budget& budget);
  bool changed(std::int32_t v) const { return changed_[static_cast<std::size_t>(v)] != 0; }  // by the last build

  bool reaches(std::int32_t u, std::int32_t v) const {  // by a path of any length, zero included
    const std::int32_t column = column_[static_cast<std::size_t>(u)];
    if (column < 0) return u == v;
    return rows_[static_cast<std::size_t>(v) * columns_ + static_cast<std::size_t>(column)] >=
           position_[static_cast<std::size_t>(u)];
  }
  // The same test taken apart, for loops over many u and one v: `reaches(u, v)` iff row(v)[mark.column] >= mark.position.
  struct Mark {
    std::int32_t column, position;
  };
  Mark mark(std::int32_t u) const {
    const std::int32_t column = column_[static_cast<std::size_t>(u)];
    if (column < 0) return {0, std::numeric_limits<std::int32_t>::max()};
    return {column, position_[static_cast<std::size_t>(u)]};
  }
  const std::int32_t* row(std::int32_t v) const { return rows_.data() + static_cast<std::size_t>(v) * columns_; }
  std::size_t columns() const { return columns_; }
  std::size_t chains() const { return chains_; }

 private:
  std::size_t columns_ = 0, chains_ = 0;
  std::vector<std::int32_t> column_, position_;
  std::vector<std::int32_t> rows_;
  std::vector<std::uint8_t> changed_;
};

}  // namespace isolang
