// Refutations without steps: the checker itself derives which events must precede which others, and shows that no total
// order of the transactions can exist.
#pragma once
#include <vector>

#include "certify/checks.hpp"
#include "certify/evidence.hpp"

namespace isolang::certify {

// Returns true if the models of some check are total orders of events (see the .cpp file) and the fixpoint of the rules
// on these events is a contradiction. A result of false proves nothing. Throws OutOfTime.
bool no_total_order(const History& history, const std::vector<ReadCheck>& checks,
                    Evidence& evidence, Budget& budget);

}  // namespace isolang::certify
