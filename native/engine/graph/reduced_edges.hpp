// Fewer edges that reach the same: those of a graph without cycles that no two others replace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/budget.hpp"

namespace isolang {

// The edges, from and to in turn, without many that two others in a row replace: those that an edge
// which stays, and one after it, replace; each once. What they reach stays the same: in a graph without cycles every edge that a
// longer path replaces may go, all at once (A. Aho, M. Garey, J. Ullman, SIAM J. Comput. 1972). Of a
// graph with a cycle all edges, each once. Throws OutOfTime.
std::vector<std::int32_t> reduced_edges(std::int32_t nodes, std::span<const std::int32_t> edges,
                                        Budget& budget);

}  // namespace isolang
