// Decides simultaneously, for many pairs of nodes of a graph, whether a walk leads from the first node to the second.
// The checker does not share this code with the engine.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "certify/product.hpp"
#include "core/budget.hpp"

namespace isolang::certify {

// Returns whether a walk leads from the first to the second node of some pair. A pair consists of two positions in
// `order`, which lists all nodes topologically. The first position comes before the second.
bool any_walk(const ProductGraph& graph, std::span<const std::int32_t> order,
              std::vector<std::pair<std::int32_t, std::int32_t>> pairs, Budget& budget);

}  // namespace isolang::certify
