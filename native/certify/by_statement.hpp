// Checks whose walks pass single statements. In the choice of such a check, each statement that reads is a separate
// place, and its reads are at that place.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

// Returns the choice in which reads are at the places of their statements. With `writes`, the choice also has the first
// statement behind each write. With `together`, consecutive reads that were sent and answered at the same times form
// one statement. SOUND BECAUSE each walk of single statements is also a walk of such statements.
Choice by_statement(const History& history, const Choice& choice, bool writes, bool together);

}  // namespace isolang::certify
