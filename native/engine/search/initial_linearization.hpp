// A guess of when transactions took place, computed from the sources of reads. The search starts
// from this guess, but draws no conclusions from it.
#pragma once
#include <span>
#include <vector>

#include "engine/prune/pruner.hpp"

namespace isolang {

// Returns the nodes of all transactions by their likely time; empty if nothing suggests
// an order.
std::vector<Node> initial_linearization(const Pruner& pruner, Budget& budget);

// Returns for each node its position in a topological order close to `linearization`. Nodes outside
// `linearization` come as early as possible.
std::vector<std::int32_t> rank_along(std::span<const Node> linearization,
                                     const Adjacency& successors, Budget& budget);

// Returns true if the sessions are too short to show the times of their transactions.
bool has_short_sessions(const Problem& problem);

// Returns for each node its position in a topological order in which readers come right after their
// sources.
std::vector<std::int32_t> rank_behind_sources(const Adjacency& successors, Budget& budget);

}  // namespace isolang
