// Refutations without steps: that no line of the transactions can exist, by what must come before
// what.
#pragma once
#include <vector>

#include "certify/checks.hpp"
#include "certify/evidence.hpp"

namespace isolang::certify {

// Whether some check's models are total orders of events (below), and a fixpoint of the rules on it
// is a contradiction. False says nothing. Throws OutOfTime.
bool no_total_order(const History& history, const std::vector<ReadCheck>& checks,
                    Evidence& evidence, Budget& budget);

}  // namespace isolang::certify
