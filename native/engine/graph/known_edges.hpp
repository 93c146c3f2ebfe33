// The edges shown directly by a history, and the short cycles among them.
//
// A read with one candidate reads from that candidate. A transaction that reads a version and
// writes the key comes right after that version. List reads show orders. Elle infers the same
// edges, and the engine infers more. But a cycle of such edges takes a few lines to read, while the
// first refutation may go around half of the history.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/budget.hpp"
#include "core/problem.hpp"
#include "engine/graph/adjacency.hpp"
#include "engine/graph/automaton.hpp"

namespace isolang {

// The relations, beginning with those that people follow most easily. A set of relations has the
// bit 1 << relation for each member.
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
  // For ww and rw edges: the reads that show the order. Their transactions overwrote the versions
  // that they read.
  std::vector<std::int64_t> shown = {};
};

struct KnownCycle {
  // Numbers of the edges, in order. The first edge closes the cycle.
  std::vector<std::int32_t> edges;
  std::int32_t component = 0;       // the strongly connected component of the cycle
};

struct KnownCycles {
  std::vector<KnownCycle> cycles;
  bool complete = true;  // false if the search stopped early
};

struct CycleSearch {
  // The sets of relations allowed for the edges of the path back, and for the closing edge.
  std::uint8_t back = 0, closing = 0;
  std::size_t longest = 8;             // maximum number of edges in a cycle
  std::size_t most = 24;               // maximum number of cycles
  std::int64_t effort = 1'000'000;     // maximum number of edges to visit
};

class KnownGraph {
 public:
  // Builds the graph of the transactions from `low` to before `high`. Reads after the first
  // `effort` reads are left out.
  KnownGraph(const Problem& problem, std::int32_t low, std::int32_t high, std::int64_t effort,
             Budget& budget);

  // Returns short cycles. Cycles of two edges come first, beginning with the simplest. Longer and
  // longer cycles follow: a shortest one for each closing edge.
  KnownCycles short_cycles(const CycleSearch& search, Budget& budget) const;

  const std::vector<KnownEdge>& edges() const { return edges_; }
  bool complete() const { return complete_; }

 private:
  std::int32_t low_, nodes_;
  std::vector<KnownEdge> edges_;
  Adjacency outgoing_;  // the edges of each node; a node is a transaction's number minus `low`
  bool complete_ = true;

  std::int32_t node(std::int32_t txn) const { return txn - low_; }
  std::vector<std::int32_t> components(std::uint8_t relations, Budget& budget) const;
};

}  // namespace isolang
