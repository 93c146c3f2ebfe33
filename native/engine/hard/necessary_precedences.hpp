// Necessary precedences in a total order: events that precede others whatever the sources of the
// reads are.
//
// If an event cannot happen in a relaxation (relaxation.hpp) while another event is held back, it
// comes after that other event (Hoffmann, Porteous, Sebastia, "Ordered landmarks in planning", JAIR
// 22, 2004). Read from its end, the total order has the same form: a write undoes itself and leaves
// the version that it overwrote. So there are necessary precedences from both sides. They eliminate
// sources of reads, and fewer sources yield more necessary precedences, until nothing changes. The
// relaxations also count how many versions of a value there have been, because no version is
// overwritten twice (counting_bounds.hpp).
#pragma once
#include "engine/hard/chains.hpp"

namespace isolang {

// Adds the necessary precedences to the needs of the events. Returns false if no total order
// exists.
bool add_necessary_precedences(Chains& chains, Budget& budget);

}  // namespace isolang
