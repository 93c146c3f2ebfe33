// When transactions may have taken place, guessed from who read from whom: where the search starts from. Only a guess, no
// conclusion is drawn from it.
#pragma once
#include <vector>

#include "engine/prune.hpp"

namespace isolang {

// The nodes of all transactions by their likely time; none where there is nothing to guess it from.
std::vector<Node> likely_line(const Pruner& pruner, Budget& budget);

}  // namespace isolang
