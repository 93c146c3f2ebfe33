// Fetching what will be needed soon: a look-up far away costs a hundred times a near one, but a dozen of them may be
// under way at once if each one's address is known before it is needed.
#pragma once

namespace isolang {

template <typename T>
void prefetch(const T* address) {
  __builtin_prefetch(address);
  // A function that only prefetches has no effect, as GCC sees it, and its calls would be left out.
  asm volatile("");
}

}  // namespace isolang
