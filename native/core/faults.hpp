// Faults on purpose, for tests: the n-th allocation fails, or the deadline has passed at the n-th
// poll. Compiled in always, so that what is tested is what runs; while nothing is armed it costs a
// look at a flag.
#pragma once
#include <atomic>
#include <cstdint>

namespace isolang::faults {

inline std::atomic<bool> armed{false};
inline std::atomic<std::int64_t> allocations{0}, polls{0};             // since armed
inline std::atomic<std::int64_t> failing_allocation{0}, last_poll{0};  // from 1; 0: none

inline void arm(std::int64_t allocation, std::int64_t poll) {
  allocations = polls = 0;
  failing_allocation = allocation;
  last_poll = poll;
  armed = true;
}
inline void disarm() { armed = false; }

// One allocation fails; those after it do not, as when a large block is asked for.
inline bool fails_allocation() {
  return armed.load(std::memory_order_relaxed) && ++allocations == failing_allocation;
}
// A deadline that has passed stays so.
inline bool past_deadline() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const std::int64_t number = ++polls, last = last_poll;
  return last > 0 && number >= last;
}

}  // namespace isolang::faults
