// Functions for dbcop's two newer formats. In both, nil is the initial state, and so is 0 for a key to which no
// transaction wrote 0.
#pragma once
#include "readers/readers.hpp"

namespace isolang {

// Turns reads of version 0 into reads of nil, for the keys to which no transaction wrote 0. A remark gives their number
// ("zero_reads").
//
// A write of 0 by an uncommitted transaction counts: a read of that 0 is an aborted read and not an initial one.
void nil_for_unwritten_zeros(Reading& reading);

}  // namespace isolang
