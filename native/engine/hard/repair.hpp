// Repairing a total order that is nearly a model, as a search may leave it: transactions stay where
// they are, but for those that certainly prevent a model.
//
// A search that may move everything sets out from some wrong reads, moves transactions, these pass
// others, of which some must be decided again, and where many are open that goes on until it has
// taken up the whole history. So here all that is not wrong is *held*: an edge from each held
// transaction to the next keeps their order. Without a solution, the refutation says which of
// them are in the way: those at the ends of the stretches of held edges in its cycles. These are
// released, and the search begins anew. What is released grows only by what a proof asks for, as
// the relaxed clauses of a core-guided search for MaxSAT do (Fu and Malik, SAT 2006).
//
// SOUND BECAUSE what is found is a model of the whole, held or not; and that there is none is never
// concluded: where too much is released, or a search too long, the repair gives up.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/search/search.hpp"

namespace isolang {

struct Repair {
  bool succeeded = false;  // the search has a model
  std::int32_t rounds = 0;
  std::int64_t released = 0;  // transactions
};

// `rank`: the total order, as a topological order of the known edges. `search` becomes that of the
// last round.
Repair repair(std::optional<Search>& search, const Pruner& pruner, Budget& budget,
              std::uint64_t seed, std::size_t max_bytes, const std::vector<std::int32_t>& rank);

}  // namespace isolang
