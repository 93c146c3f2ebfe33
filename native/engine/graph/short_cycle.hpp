// Finds a short cycle among the known edges. If pruning refutes a history, such a cycle is usually the core of the
// refutation.
#pragma once
#include <cstdint>
#include <vector>

#include "core/budget.hpp"
#include "engine/graph/event_graph.hpp"

namespace isolang {

// Returns the numbers of the cycle's edges, in order; empty if the nodes whose entry in `left_out`
// is 0 form no cycle. The search runs breadth first from one node after another. It never goes
// deeper than the best cycle found, and once there is a cycle its effort is limited.
std::vector<std::int32_t> short_cycle(std::span<const Edge> edges,
                                      const std::vector<std::uint8_t>& left_out, Budget& budget);

}  // namespace isolang
