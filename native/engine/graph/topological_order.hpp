// Topological orders that stay near to a given one. Pure graph theory: nodes are numbers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {

// Kahn's algorithm, taking the ready node with the least priority first, then the least number.
// Returns the nodes in order; fewer than all if there is a cycle. Time: linear, but for the sorting
// of priorities that are far apart.
std::vector<std::int32_t> topological_order(const Adjacency& successors,
                                            std::span<const std::int32_t> priority, Budget& budget);

}  // namespace isolang
