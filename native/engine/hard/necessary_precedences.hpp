// Necessary precedences in a total order: what comes before what, whatever the reads take their
// values from.
//
// What cannot happen in a relaxation (relaxation.hpp) while one event is held back, comes after
// that event (Hoffmann, Porteous, Sebastia, "Ordered landmarks in planning", JAIR 22, 2004). Read
// from its end the total order is one of the same kind: a write undoes itself, and leaves the
// version that it overwrote. So there are necessary precedences from both sides; they eliminate
// sources of reads, and fewer sources make more necessary precedences, until nothing changes. The
// relaxations count, too, how many versions of a value there have been, for none is overwritten
// twice (counting_bounds.hpp).
#pragma once
#include "engine/hard/chains.hpp"

namespace isolang {

// Adds what follows to the needs of the events. Returns false if no total order exists.
bool add_necessary_precedences(Chains& chains, Budget& budget);

}  // namespace isolang
