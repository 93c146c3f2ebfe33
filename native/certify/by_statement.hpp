// Checks whose walks pass single statements: the choice with each statement that reads as a place of
// its own, where its reads are.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

Choice by_statement(const History& history, const Choice& choice);

}  // namespace isolang::certify
