// Work in numbered parts, on several threads.
#pragma once
#include <cstddef>
#include <functional>

#include "core/budget.hpp"

namespace isolang {

// Calls work(worker, part, budget) for the parts 0 … parts - 1, in this order if there is one thread. A worker (they
// are numbered from 0) does one part at a time, with a budget of its own; worker 0 is the calling thread. Where a
// thread cannot be had, the others do its work.
//
// Ends early if a part returns false: all parts before the first such one are then done, and perhaps some after it.
// Returns that part, or `parts`. What is thrown ends all threads and is thrown again here.
std::size_t in_parts(std::size_t parts, std::size_t threads, Budget& budget,
                     const std::function<bool(std::size_t worker, std::size_t part, Budget& budget)>& work);

}  // namespace isolang
