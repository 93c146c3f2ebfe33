// Repairs a total order that is nearly a model, as a search may leave it. Transactions stay in
// place, except those that certainly prevent a model.
//
// A search that may move everything starts from a few wrong reads and moves transactions. These pass other
// transactions, some of whose choices must then be decided again. If many choices are open, this goes on until the
// search covers the whole history. Therefore the repair *holds* all transactions without a contradiction: an edge from
// each held transaction to the next keeps them in their order. If no solution exists, the refutation shows which held
// transactions prevent it: those at the ends of the sequences of held edges in its cycles. The repair releases these
// transactions and searches again. The set of released transactions grows only by what a proof requires, as the relaxed
// clauses of a core-guided search for MaxSAT do (Fu and Malik, SAT 2006).
//
// SOUND BECAUSE a model is a model of the whole history, whatever was held, and a refutation counts
// only if no cycle in it uses a held edge. If the repair would release too much, or if its searches
// take too long, it gives up.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/search/search.hpp"

namespace isolang {

struct Repair {
  Cdcl::Result result = Cdcl::Result::gave_up;
  std::int32_t rounds = 0;
  std::int64_t released = 0;  // number of transactions
};

// The limits of a repair, in conflicts. A round that takes `round` conflicts is given up, and it is
// the last one if all rounds together have taken `total`.
struct RepairEffort {
  std::int64_t round, total;
};

// `rank` is the total order, as a topological order of the known edges. Afterwards `search` is the
// search of the last round, which has the model or the refutation.
Repair repair(std::optional<Search>& search, const Pruner& pruner, Budget& budget,
              std::uint64_t seed, std::size_t max_bytes, const std::vector<std::int32_t>& rank,
              const RepairEffort& effort);

}  // namespace isolang
