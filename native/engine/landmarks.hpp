// Landmarks of a line: what comes before what, whatever the reads take their values from.
//
// What cannot happen in a relaxation (relaxation.hpp) while one event is held back, comes after that event (Hoffmann,
// Porteous, Sebastia, "Ordered landmarks in planning", JAIR 22, 2004). Read from its end the line is one of the same
// kind: a write undoes itself, and leaves the version that it overwrote. So there are landmarks from both sides; they
// strike out sources of reads, and fewer sources make more landmarks, until nothing changes. The relaxations count, too,
// how many versions of a value there have been, for none is overwritten twice (balance.hpp).
#pragma once
#include "engine/chains.hpp"

namespace isolang {

// Adds what follows to the needs of the events. False: there is no line.
bool add_landmarks(Chains& chains, Budget& budget);

}  // namespace isolang
