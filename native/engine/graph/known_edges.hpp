// The edges that a history shows by itself, and the short cycles among them.
//
// A read with one candidate reads from it; what reads a version and writes the key comes right
// after that version; list reads show orders. That is what Elle infers, and less than the engine
// knows; but a cycle of such edges is a few lines to read, where a first refutation may go around
// half of the history.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/budget.hpp"
#include "core/problem.hpp"
#include "engine/graph/adjacency.hpp"
#include "engine/graph/automaton.hpp"

namespace isolang {

// From what people follow most easily; as bits of a set, 1 << relation.
enum class KnownRelation : std::uint8_t { ww = 0, wr, so, rw };
inline const char* name_of(KnownRelation relation) {
  constexpr Relation kSame[] = {Relation::ww, Relation::wr, Relation::so, Relation::rw};
  return kRelationNames[idx(kSame[idx(relation)])];
}
inline constexpr std::size_t kKnownRelations = 4;

struct KnownEdge {
  KnownRelation relation;
  std::int32_t from, to;
  std::int32_t key = -1;
  std::int64_t op = -1;
  std::int32_t writer = -1;
  // Of ww and rw: the reads of those who overwrote what they had read, which show the order.
  std::vector<std::int64_t> shown = {};
};

struct KnownCycle {
  std::vector<std::int32_t> edges;  // numbers, in order; the first one closes it
  std::int32_t component = 0;       // the strongly connected component that it lies in
};

struct KnownCycles {
  std::vector<KnownCycle> cycles;
  bool complete = true;  // whether the search came to its end
};

struct CycleSearch {
  std::uint8_t back = 0, closing = 0;  // sets of relations: of the path, and of the edge closing it
  std::size_t longest = 8;             // edges
  std::size_t most = 24;               // cycles
  std::int64_t effort = 1'000'000;     // edges to look at
};

class KnownGraph {
 public:
  // Of the transactions from `low` to before `high`. After `effort` reads the rest is left out.
  KnownGraph(const Problem& problem, std::int32_t low, std::int32_t high, std::int64_t effort,
             Budget& budget);

  // Those of two edges first, the simpler before the others; then longer and longer ones, of each
  // closing edge a shortest.
  KnownCycles short_cycles(const CycleSearch& search, Budget& budget) const;

  const std::vector<KnownEdge>& edges() const { return edges_; }
  bool complete() const { return complete_; }

 private:
  std::int32_t low_, nodes_;
  std::vector<KnownEdge> edges_;
  Adjacency outgoing_;  // of each node, the edges; a node is a transaction's number less `low`
  bool complete_ = true;

  std::int32_t node(std::int32_t txn) const { return txn - low_; }
  std::vector<std::int32_t> components(std::uint8_t relations, Budget& budget) const;
};

}  // namespace isolang
