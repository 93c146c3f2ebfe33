// Removes redundant edges from a graph without changing reachability.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/budget.hpp"

namespace isolang {

// Returns the edges (from and to in turn) without duplicates, and without many of the edges that
// can be replaced by two successive edges. An edge is removed if a kept edge, followed by another
// edge, leads to the same node. Reachability stays the same, because in a graph without cycles all
// edges that can be replaced by longer paths may be removed together (A. Aho, M. Garey, J. Ullman,
// SIAM J. Comput. 1972). If the graph has a cycle, only duplicates are removed. Throws OutOfTime.
std::vector<std::int32_t> reduced_edges(std::int32_t nodes, std::span<const std::int32_t> edges,
                                        Budget& budget);

}  // namespace isolang
