// Checks whose walks pass single statements: the history and the choice with each statement that reads
// as a transaction of its own, behind the others, that is included in nothing.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

struct ByStatement {
  // Sessions, outcomes, operations and times of transactions; owners and times of statements.
  History history;
  Choice choice;
};
ByStatement by_statement(const History& history, const Choice& choice);

}  // namespace isolang::certify
