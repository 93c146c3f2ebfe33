// The product of a check's machine with a history and a choice: does it break the check?
#pragma once
#include "certify/choice.hpp"
#include "certify/expression.hpp"
#include "certify/snapshots.hpp"

namespace isolang::certify {

// Nodes 0 … transactions · states - 1 are (transaction, state), in that order; then auxiliary ones.
struct ProductGraph {
  std::int64_t nodes = 0;
  std::vector<std::int64_t> edge_start;
  std::vector<std::int32_t> edge_to;
};
ProductGraph product(const History& history, const Choice& choice, const Machine& machine,
                     Budget& budget);

// Throws NotCertified when the graph is too large to decide.
// With the pairs that implicit set-reads may have, if there are snapshots.
bool breaks(const History& history, const Choice& choice, const Machine& machine, Budget& budget,
            const Snapshots* snapshots = nullptr);

}  // namespace isolang::certify
