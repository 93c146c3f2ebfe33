// Checks whose walks pass through single statements. In the choice for such a check, each reading statement is a place
// of its own, and its reads are at that place.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

// Returns the choice with each read moved to the place of its statement. With `writes`, the choice also records the
// first statement after each write. With `together`, consecutive reads that were sent and answered at the same times
// form one statement. SOUND BECAUSE each walk through single statements is also a walk through such joint statements.
Choice by_statement(const History& history, const Choice& choice, bool writes, bool together);

}  // namespace isolang::certify
