// Reachability in a directed acyclic graph by chain clocks: for each node, a row with the last position on each chain
// from which a path leads to the node. This is pure graph theory: nodes are numbers.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "core/index.hpp"
#include "core/prefetch.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {

// Stores for every node the latest position on each chain from which a path leads to it. The chains
// cover the graph and are found greedily in topological order: a node continues the chain of its
// first predecessor that is the last node of a chain. Chains are *not* sessions: if session order
// cannot be repeated in the automaton, a session is not a path. If this gives many chains, rows and
// chains are found together instead: a chain then continues at any node that its last node reaches.
// (Clients that lose a connection leave one session each, and the end of such a session soon
// precedes everything.)
//
// A row of positions for each node would take four bytes times nodes times chains, which is too
// much for a million nodes and hundreds of chains. But nodes close to each other in topological
// order have almost the same past. Rows are therefore kept in that order, in blocks, and a cell
// stores how far it lags behind the last position of its chain up to the end of the block. Two
// bytes are nearly always exact. One byte, used when memory is short, reaches back 254 positions of
// each chain. A cell that lags by more reads as the least value of its block. SOUND BECAUSE that is
// a lower bound, and every use treats a position beyond it as "not known to reach".
class Clocks {
 public:
  // `predecessors` lists the predecessors of each node by descending position in `order` (see
  // `reversed`). `by_number` lists them in the order in which they became known, or is null if the
  // chains of the last call suffice. Memory is limited to about max_bytes: if there is less than
  // one byte for each cell, only the longest chains get a column, and `reaches` answers "not known"
  // (false) for nodes of the other chains.
  //
  // `grown` means that the nodes are those of the last call, and that its edges still exist. The
  // chains are then kept, because they are still paths, unless a cover with far fewer chains has
  // been found.
  void build(const Adjacency& predecessors, const Adjacency* by_number,
             std::span<const std::int32_t> order, bool grown, std::size_t max_bytes,
             Budget& budget);
  // Returns true if the last build may have changed the row of the node.
  bool changed(std::int32_t v) const { return changed_[v] != 0; }

  struct Mark {
    std::int32_t column, position;
  };
  // Returns true if a path of any length, including zero, leads from u to v.
  bool reaches(std::int32_t u, std::int32_t v) const {
    const Place& from = place_[u];
    const Place& to = place_[v];
    if (from.column < 0) return u == v;
    if (from.column == to.column) return from.position <= to.position;
    if (from.slot > to.slot) return false;  // avoids loading the row
    return value(to.slot, from.column) >= from.position;
  }
  // Splits `reaches` for loops over many u and one v: `reaches(u, v)` if and only if
  // row[mark.column] >= mark.position, where row was all -1 and was then raised by v. A row raised
  // by several nodes shows what reaches any of them.
  Mark mark(std::int32_t u) const {
    const Place& at = place_[u];
    if (at.column < 0) return {0, std::numeric_limits<std::int32_t>::max()};
    return {at.column, at.position};
  }
  // Returns true if the node is on a chain. Otherwise its mark does not stand for a position.
  bool on_chain(std::int32_t u) const { return place_[u].column >= 0; }
  // Returns the node's position in the order of the last build, which is stored next to its mark.
  std::int32_t rank(std::int32_t v) const { return place_[v].slot; }
  // Returns true if the row of v alone, not raised by any other node, covers the mark.
  bool reaches(Mark u, std::int32_t v) const {
    const Place& to = place_[v];
    // mutant: reaches-early, chain-backwards
    return (u.column == to.column && u.position <= to.position) ||
           value(to.slot, u.column) >= u.position;
  }
  // Returns, for each node, a guess of when it happened, computed from the known edges. The guess
  // is roughly the number of nodes that reach the node, minus the number of nodes that it reaches
  // (estimated from a few long chains). This puts each node in the middle of the period in which it
  // may have happened. The result is empty if some node has no column.
  std::vector<std::int32_t> middles() const;
  void raise(std::span<std::int32_t> row, std::int32_t v) const;
  // Prefetching is useful in large graphs. A node's row can be prefetched only after its place,
  // which says where the row is.
  void prefetch_place(std::int32_t v) const { prefetch(place_.data() + v); }
  void prefetch_row(std::int32_t v) const;
  std::size_t columns() const { return columns_; }
  // Returns how many polls take about as long as one pass over a row.
  std::size_t polls_of_row() const { return 1 + columns_ / kCellsOfPoll; }
  std::size_t chains() const { return chains_; }

 private:
  static constexpr std::size_t kCellsOfPoll = 512;  // the cells of a row that a pass visits in the time of one poll
  struct Place {
    std::int32_t column, position;
    std::int32_t slot = 0;  // the rank, by which rows are stored
  };
  static constexpr std::size_t kBlock = 256;  // rows

  // Finds a new chain cover. Returns false if the chains of the last build are kept.
  bool find_chains(const Adjacency& predecessors, std::span<const std::int32_t> order, bool grown,
                   std::size_t max_bytes);
  template <typename Fill>
  bool joined(const Fill& fill_rows, const Adjacency& predecessors,
              std::span<const std::int32_t> order, std::size_t max_bytes);
  bool leads_off_chain(const Adjacency& predecessors) const;
  // With `joining`, also assigns the nodes to chains. Returns the number of nodes in `order` that
  // have a row: all of them, unless joining would take more chains than there are columns.
  template <typename Cell>
  std::size_t fill(std::vector<Cell>& cells, const Adjacency& predecessors,
                   std::span<const std::int32_t> order, bool joining, Budget& budget);
  template <typename Cell>
  std::int32_t value(const std::vector<Cell>& cells, std::size_t slot, std::size_t column) const {
    const Cell cell = cells[slot * columns_ + column];
    const std::size_t at = slot / kBlock * columns_ + column;
    return cell == std::numeric_limits<Cell>::max() ? floor_[at] : top_[at] - cell;
  }
  std::int32_t value(std::int32_t slot, std::int32_t column) const {
    const auto s = idx(slot), c = idx(column);
    return narrow_ ? value(bytes_, s, c) : value(words_, s, c);
  }

  std::size_t columns_ = 0, chains_ = 0;
  std::size_t few_ = 256;  // the number of columns that joining starts with
  bool narrow_ = false, joined_ = false;
  std::vector<Place> place_;
  std::vector<std::uint8_t> bytes_;  // one of these two is used: rows of cells, by slot
  std::vector<std::uint16_t> words_;
  // For each block, a row with the positions that cells of 0 stand for, and a row with the least
  // positions.
  std::vector<std::int32_t> top_,
      floor_;
  std::vector<std::int32_t>
      sum_;  // per node, the sum of its row; rows only grow, so equal sums mean equal rows
  std::vector<std::uint8_t> changed_;
};

}  // namespace isolang
