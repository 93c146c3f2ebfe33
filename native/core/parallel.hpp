// Work on several threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/budget.hpp"

namespace isolang {

// Calls work(worker, part, budget) for the parts 0 … parts - 1, in this order if there is one
// thread. A worker (they are numbered from 0) does one part at a time, with a budget of its own;
// worker 0 is the calling thread. Where a thread cannot be had, the others do its work.
//
// Ends early if a part returns false: all parts before the first such one are then done, and
// perhaps some after it. Returns that part, or `parts`. What is thrown ends all threads and is
// thrown again here.
std::size_t in_parts(
    std::size_t parts, std::size_t threads, Budget& budget,
    const std::function<bool(std::size_t worker, std::size_t part, Budget& budget)>& work);

// Cuts the items 0 … count - 1 into parts of at least this much weight, the last one aside: part i is
// cuts[i] … cuts[i + 1] - 1.
template <typename WeightOf>
std::vector<std::size_t> cut_into_parts(std::size_t count, std::size_t least, WeightOf weight_of) {
  std::vector<std::size_t> cuts{0};
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += weight_of(i);
    if (sum < least && i + 1 < count) continue;
    cuts.push_back(i + 1);
    sum = 0;
  }
  return cuts;
}

// Several ways to one answer, tried in turn, or side by side if there are threads: the first way
// *in their order* that answers (true) counts, whichever ends sooner, so that nothing depends on
// how many threads there are. What then runs behind it is told to stop: its budget has to be a part
// of `budget` with its entry of `stop`. Returns the number of that way, or ways.size(). What is
// thrown ends all of them and is thrown again here.
std::size_t first_to_answer(std::span<const std::function<bool()>> ways,
                            std::span<std::atomic<bool>> stop, std::size_t threads, Budget& budget);

}  // namespace isolang
