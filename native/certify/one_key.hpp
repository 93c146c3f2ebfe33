// Checks whose walks stay with one key. The history and the choice are rewritten: each access of a transaction to a key
// becomes a separate transaction.
//
// Session order and the chosen relations then relate only accesses of one key. Real time would also lead to other keys.
// Therefore the times of each key are moved behind the times of all earlier keys, and no walk leads back to an earlier
// key. All accesses of a closed walk, or of a return path, are then accesses of one key.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

struct Accesses {
  History history;  // only sessions, outcomes and times
  Choice choice;
};
Accesses accesses(const History& history, const Choice& choice);

}  // namespace isolang::certify
