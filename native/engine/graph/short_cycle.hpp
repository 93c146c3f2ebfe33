// A short cycle of known edges: the heart of most refutations by pruning.
#pragma once
#include <cstdint>
#include <vector>

#include "core/budget.hpp"
#include "engine/graph/event_graph.hpp"

namespace isolang {

// Returns the numbers of its edges, in order; empty without a cycle among the nodes whose entry of
// `left_out` is 0. The search starts from one node after the other, breadth first, never deeper than
// the best so far, and within a limit of effort once there is one.
std::vector<std::int32_t> short_cycle(std::span<const Edge> edges,
                                      const std::vector<std::uint8_t>& left_out, Budget& budget);

}  // namespace isolang
