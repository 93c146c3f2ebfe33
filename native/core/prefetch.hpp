// Prefetches memory that will be needed soon. A look-up in distant memory costs a hundred times as
// much as one in a cache, but a dozen of them can run simultaneously if their addresses are known
// early enough.
#pragma once
#include <cstdint>

namespace isolang {

// From this many items on, the data no longer fits into the nearer caches. Sanitizer builds always
// prefetch, so that small histories cover this code.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::int32_t kPrefetchFrom = 0;
#else
inline constexpr std::int32_t kPrefetchFrom = 1 << 16;
#endif

template <typename T>
void prefetch(const T* address) {
  __builtin_prefetch(address);
  // GCC would drop calls of a function that only prefetches, because it sees no effect of the
  // function.
  asm volatile("");
}

}  // namespace isolang
