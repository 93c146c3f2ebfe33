// Computes topological orders that are as close as possible to a given order. This is pure graph theory: nodes are
// numbers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {

// Kahn's algorithm. It takes the ready node with the least priority first, then the least number.
// Returns the nodes in order; if there is a cycle, not all of them. Takes linear time, except for
// sorting priorities that are far apart.
//
// `wishes` are further edges: a ready node waits for the nodes that should come before it, but only for a limited
// number of turns.
std::vector<std::int32_t> topological_order(const Adjacency& successors,
                                            std::span<const std::int32_t> priority, Budget& budget,
                                            const Adjacency* wishes = nullptr);

}  // namespace isolang
