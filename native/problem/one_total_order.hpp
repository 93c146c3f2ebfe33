// Decides whether one total order satisfies everything stated by a history except its version
// orders.
#pragma once
#include "core/problem.hpp"

namespace isolang {

// Returns whether there is a total order of T0, all transactions that are in, and some optional ones, in which each
// external read comes after one of its candidates. With `sessions`, each transaction must also come after those before
// it in its session; with `real_time`, after those that ended before it began. Takes linear time in reads and
// candidates, except for sorting by time.
bool fits_one_total_order(const Problem& problem, bool sessions, bool real_time);

}  // namespace isolang
