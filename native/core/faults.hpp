// Injected faults for tests: the n-th allocation fails, or the deadline has passed at the n-th
// poll. They are always compiled in, so that tests run the same code as users do. While no fault is
// armed, they cost only the test of a flag.
#pragma once
#include <atomic>
#include <cstdint>

namespace isolang::faults {

inline std::atomic<bool> armed{false};
inline std::atomic<std::int64_t> allocations{0}, polls{0};             // counted since `arm`
// Both are counted from 1, and 0 means no fault.
inline std::atomic<std::int64_t> failing_allocation{0}, last_poll{0};

inline void arm(std::int64_t allocation, std::int64_t poll) {
  allocations = polls = 0;
  failing_allocation = allocation;
  last_poll = poll;
  armed = true;
}
inline void disarm() { armed = false; }

// Returns true for exactly one allocation. The allocations after it succeed, as they often do after
// the system has refused one large block.
inline bool fails_allocation() {
  return armed.load(std::memory_order_relaxed) && ++allocations == failing_allocation;
}
// Returns true from poll `last_poll` on: a deadline that has passed stays in the past.
inline bool past_deadline() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const std::int64_t number = ++polls, last = last_poll;
  return last > 0 && number >= last;
}

}  // namespace isolang::faults
