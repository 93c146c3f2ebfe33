// Removal of redundant edges: reachability stays the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/budget.hpp"

namespace isolang {

// Returns the edges (from and to in turn) without duplicates, and without many edges that two
// others in a row replace: an edge goes if an edge that stays, followed by another edge, replaces
// it. Reachability stays the same, because in a graph without cycles all edges that a longer path
// replaces may be removed at once (A. Aho, M. Garey, J. Ullman, SIAM J. Comput. 1972). If the graph
// has a cycle, all edges stay, without duplicates. Throws OutOfTime.
std::vector<std::int32_t> reduced_edges(std::int32_t nodes, std::span<const std::int32_t> edges,
                                        Budget& budget);

}  // namespace isolang
