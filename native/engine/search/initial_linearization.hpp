// When transactions may have taken place, guessed from who read from whom: where the search starts
// from. Only a guess, no conclusion is drawn from it.
#pragma once
#include <span>
#include <vector>

#include "engine/prune/pruner.hpp"

namespace isolang {

// The nodes of all transactions by their likely time; none where there is nothing to guess it from.
std::vector<Node> initial_linearization(const Pruner& pruner, Budget& budget);

// For each node its place in an order of these edges that is near to the total order; others come
// as soon as they can.
std::vector<std::int32_t> rank_along(std::span<const Node> linearization,
                                     const Adjacency& successors, Budget& budget);

// Sessions that do not reveal the time of their transactions.
bool has_short_sessions(const Problem& problem);

// For each node its place in an order of these edges where readers come right behind what they read
// from.
std::vector<std::int32_t> rank_behind_sources(const Adjacency& successors, Budget& budget);

}  // namespace isolang
