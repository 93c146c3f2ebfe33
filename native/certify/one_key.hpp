// Checks whose walks stay with one key. The history and the choice are rewritten: each access of a transaction to a key
// becomes a transaction of its own.
//
// Session order joins only accesses of one key, and so do the chosen relations. Real time would lead to other keys,
// too. Therefore the times of each key are moved behind those of the keys before it, and no walk leads back. What holds
// for the one key of a closed walk, or of a return path, then holds for the whole.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

struct Accesses {
  History history;  // only sessions, outcomes and times
  Choice choice;
};
Accesses accesses(const History& history, const Choice& choice);

}  // namespace isolang::certify
