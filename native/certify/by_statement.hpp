// Checks whose walks pass single statements: the choice with each statement that reads as a place of
// its own, where its reads are.
#pragma once
#include "certify/choice.hpp"

namespace isolang::certify {

// `writes`: also what comes behind each write. With `together`, reads that were sent and answered at
// the same moments, one operation behind the other, are one statement. SOUND BECAUSE each walk of
// single statements is one of these, too.
Choice by_statement(const History& history, const Choice& choice, bool writes, bool together);

}  // namespace isolang::certify
