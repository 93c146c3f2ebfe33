// Distributes work over several threads in such a way that the result does not depend on their
// number.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/budget.hpp"

namespace isolang {

// Calls work(worker, part, budget) for the parts 0 … parts - 1. A single thread takes them in this
// order. Each worker, numbered from 0, does one part at a time with its own budget. Worker 0 is the
// calling thread. If the system refuses a thread, the other threads do its work.
//
// Ends early if a part returns false: all parts before the first such part are then done, and
// perhaps some parts after it. Returns the number of that part, or `parts`. An exception ends all
// threads and is rethrown here.
std::size_t in_parts(
    std::size_t parts, std::size_t threads, Budget& budget,
    const std::function<bool(std::size_t worker, std::size_t part, Budget& budget)>& work);

// Cuts the items 0 … count - 1 into parts that weigh at least `least` each, except perhaps the last
// part. Part i consists of the items cuts[i] … cuts[i + 1] - 1.
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

// Tries several procedures for one answer, one after another, or in parallel if there are threads.
// The result is the first procedure *in their order* that answers (returns true), whichever
// finishes sooner, because the result must not depend on the number of threads. The procedures
// after it are then asked to stop: the budget of each must be a part of `budget` with its entry of
// `stop`. Returns the number of the procedure that answered, or ways.size(). An exception ends all
// procedures and is rethrown here.
std::size_t first_to_answer(std::span<const std::function<bool()>> ways,
                            std::span<std::atomic<bool>> stop, std::size_t threads, Budget& budget);

}  // namespace isolang
