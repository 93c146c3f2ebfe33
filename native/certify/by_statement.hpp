// Checks whose walks pass single statements: the history and the choice with each statement that reads
// as a transaction of its own, behind the others, that is included in nothing and has the clock of its
// transaction's session.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

struct ByStatement {
  History history;  // sessions, outcomes, operations and times of transactions; no predicate reads
  Choice choice;    // with statements apart
};
ByStatement by_statement(const History& history, const Choice& choice);

}  // namespace isolang::certify
