// The product of a check's machine with a history and a choice: does it break the check?
#pragma once
#include "certify/choice.hpp"
#include "certify/expression.hpp"

namespace isolang::certify {

// Throws NotCertified when the graph is too large to decide.
bool breaks(const History& history, const Choice& choice, const Machine& machine, Budget& budget);

}  // namespace isolang::certify
