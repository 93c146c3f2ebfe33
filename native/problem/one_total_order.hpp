// Whether all that a history says without version orders fits in one total order.
#pragma once
#include "core/problem.hpp"

namespace isolang {

// Whether there is a total order of T0, all transactions that are in, and some that are optional,
// in which each external read comes after one of its candidates and, as asked for, each transaction
// after those before it in its session, and after those that ended before it began. Linear in reads
// and candidates, but for sorting by time.
bool fits_one_total_order(const Problem& problem, bool sessions, bool real_time);

}  // namespace isolang
