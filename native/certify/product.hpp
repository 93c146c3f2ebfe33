// The product of a check's machine with a history and a choice. The choice violates the check iff this product has a
// cycle of a certain form.
#pragma once
#include "certify/choice.hpp"
#include "certify/expression.hpp"
#include "certify/snapshots.hpp"

namespace isolang::certify {

// Nodes 0 … transactions · states - 1 are pairs (transaction, state), in that order. Auxiliary nodes follow.
struct ProductGraph {
  std::int64_t nodes = 0;
  std::vector<std::int64_t> edge_start;
  std::vector<std::int32_t> edge_to;
};
ProductGraph product(const History& history, const Choice& choice, const Machine& machine,
                     Budget& budget);

// Returns whether the choice violates the check. With `snapshots`, the graph also contains the pairs that implicit
// set-reads may have. Throws NotCertified if the graph is too large to decide.
bool breaks(const History& history, const Choice& choice, const Machine& machine, Budget& budget,
            const Snapshots* snapshots = nullptr);

}  // namespace isolang::certify
