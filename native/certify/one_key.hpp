// Checks whose walks stay on one key. The history and the choice are rewritten: each access of a transaction to a key
// becomes a separate transaction.
//
// Session order and the chosen relations then relate only accesses to the same key. Real time would also lead to other
// keys. The times of each key are therefore moved behind those of all earlier keys, so that no walk leads back to an
// earlier key. All accesses on a closed walk, or on a return path, are then accesses to the same key.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

struct Accesses {
  History history;  // only sessions, outcomes and times
  Choice choice;
};
Accesses accesses(const History& history, const Choice& choice);

}  // namespace isolang::certify
