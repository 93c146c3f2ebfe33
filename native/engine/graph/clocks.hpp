// Reachability in a directed acyclic graph by chain clocks. Pure graph theory: nodes are numbers.
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

// For every node the latest position on each chain that reaches it. The chains cover the graph and
// are found greedily in topological order: a node continues the chain of its first predecessor that
// ends one. They are *not* sessions: when session order cannot be repeated in the automaton, a
// session is not a path. Where that leaves many of them, rows and chains are found together: a chain
// then goes on at any node that its last one reaches. (Clients that lose a connection leave a
// session each, and its end is soon before everything.)
//
// A row of positions a node would be four bytes times nodes times chains: too much for a million
// nodes and hundreds of chains. But nodes that are near in topological order know about the same
// of the past: rows are kept in that order, in blocks, and a cell is by how much it lags behind the
// last position of its chain up to the end of the block. Two bytes are exact nearly always; one
// byte, where memory asks for it, reaches back 254 positions of each chain. A cell that lags by
// more reads as the least of its block. SOUND BECAUSE that is a lower bound, and every use treats a
// position beyond it as "not known to reach".
class Clocks {
 public:
  // `predecessors`: of each node by descending place in `order` (see `reversed`). `by_number`: the
  // same in the order in which they became known, or none, if the chains of the last call will do.
  // Memory is limited to about max_bytes: with less than one byte a cell only the longest chains
  // get a column, and `reaches` answers "not known" (false) for nodes of the others.
  //
  // `grown`: the nodes are those of the last call, and its edges are still there. The chains are
  // then kept (they still are paths) unless a cover with far fewer was found.
  void build(const Adjacency& predecessors, const Adjacency* by_number,
             std::span<const std::int32_t> order, bool grown, std::size_t max_bytes,
             Budget& budget);
  // By the last build: the row differs from the one before, or may differ.
  bool changed(std::int32_t v) const { return changed_[v] != 0; }
  bool exact() const { return exact_; }  // `reaches` is false only where no path exists
  bool exact_marks() const { return exact_ && !joined_; }  // so is the test by a mark: see `mark`

  struct Mark {
    std::int32_t column, position;
  };
  // By a path of any length, zero included.
  bool reaches(std::int32_t u, std::int32_t v) const {
    const Place& from = place_[u];
    const Place& to = place_[v];
    if (from.column < 0) return u == v;
    if (from.column == to.column) return from.position <= to.position;
    if (from.slot > to.slot) return false;  // spares the row
    return value(to.slot, from.column) >= from.position;
  }
  // The same test taken apart, for loops over many u and one v: `reaches(u, v)` iff
  // row[mark.column] >= mark.position, where row was all -1 and then raised by v. Raised by several
  // nodes it tells what reaches any of them.
  Mark mark(std::int32_t u) const {
    const Place& at = place_[u];
    if (at.column < 0) return {0, std::numeric_limits<std::int32_t>::max()};
    return {at.column, at.position};
  }
  bool on_chain(std::int32_t u) const { return place_[u].column >= 0; }  // else the mark is not a place
  // Its place in the order of the last build; the mark is in the same place.
  std::int32_t rank(std::int32_t v) const { return place_[v].slot; }
  // Whether a row of v alone covers the mark.
  bool reaches(Mark u, std::int32_t v) const {
    const Place& to = place_[v];
    // mutant: reaches-early, chain-backwards
    return (u.column == to.column && u.position <= to.position) ||
           value(to.slot, u.column) >= u.position;
  }
  // A guess when nodes happened, by what is known: how many reach each node less how many it
  // reaches, about (those are counted on a few long chains), so that it is in the middle of the
  // time in which it may have happened. Empty where some node is on no column.
  std::vector<std::int32_t> middles() const;
  void raise(std::span<std::int32_t> row, std::int32_t v) const;
  // For large graphs: the place tells where the row is.
  void prefetch_place(std::int32_t v) const { prefetch(place_.data() + v); }
  void prefetch_row(std::int32_t v) const;
  std::size_t columns() const { return columns_; }
  std::size_t chains() const { return chains_; }

 private:
  struct Place {
    std::int32_t column, position;
    std::int32_t slot = 0;  // the rank, by which rows are stored
  };
  static constexpr std::size_t kBlock = 256;  // rows

  // False: those of the last build will do.
  bool find_chains(const Adjacency& predecessors, std::span<const std::int32_t> order, bool grown,
                   std::size_t max_bytes);
  template <typename Fill>
  bool joined(const Fill& fill_rows, const Adjacency& predecessors,
              std::span<const std::int32_t> order, std::size_t max_bytes);
  bool leads_off_chain(const Adjacency& predecessors) const;
  // `joining`: finds the chains, too. False: there are more than columns.
  template <typename Cell>
  bool fill(std::vector<Cell>& cells, const Adjacency& predecessors,
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
  std::size_t few_ = 256;  // columns, with which joining begins
  bool narrow_ = false, exact_ = true, joined_ = false;
  std::vector<Place> place_;
  std::vector<std::uint8_t> bytes_;  // one of these two: rows of cells, by slot
  std::vector<std::uint16_t> words_;
  std::vector<std::int32_t> top_,
      floor_;  // per block a row: what a cell of 0 stands for, and the largest cell
  std::vector<std::int32_t>
      sum_;  // per node, of its row: rows only grow, so that an equal sum is an equal row
  std::vector<std::uint8_t> changed_;
};

}  // namespace isolang
