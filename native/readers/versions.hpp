// What dbcop's two newer formats share: nil is the initial state, and so is 0 where no transaction wrote it.
#pragma once
#include "readers/readers.hpp"

namespace isolang {

// Makes reads of version 0 reads of nil, for the keys that no transaction wrote 0 to; remarks how many ("zero_reads").
//
// A write of 0 by an uncommitted transaction counts: a read of that 0 is an aborted read, not an initial one.
void nil_for_unwritten_zeros(Reading& reading);

}  // namespace isolang
