// Checks whose walks stay with one key: the history and the choice with each access of a
// transaction to a key as a transaction of its own.
//
// Session order joins accesses of one key only, and so do the chosen relations. Real time would
// lead to other keys, too: the times of each key are moved behind those of the keys before it, so
// that no walk leads back. What holds of the one key of a closed walk, or of a return path, is
// then what holds of the whole.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

struct Accesses {
  History history;  // sessions, outcomes and times, and nothing else
  Choice choice;
};
Accesses accesses(const History& history, const Choice& choice);

}  // namespace isolang::certify
