// Finds short cycles among the known edges. If pruning refutes a history, such a cycle is usually the core of the
// refutation.
#pragma once
#include <cstdint>
#include <vector>

#include "core/budget.hpp"
#include "engine/graph/event_graph.hpp"

namespace isolang {

// Returns a cycle of each strongly connected component of the nodes whose entry in `left_out` is 0,
// as the numbers of the cycle's edges, in order. The shortest cycle comes first. The search runs
// breadth first from one node after another. It never goes deeper than the best cycle found in the
// component. Once there is a cycle, it ends after visiting about `effort` edges.
std::vector<std::vector<std::int32_t>> short_cycles(std::span<const Edge> edges,
                                                    const std::vector<std::uint8_t>& left_out,
                                                    std::int64_t effort, Budget& budget);

}  // namespace isolang
