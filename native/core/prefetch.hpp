// Fetching what will be needed soon: a look-up far away costs a hundred times a near one, but a
// dozen of them may be under way at once if each one's address is known before it is needed.
#pragma once
#include <cstdint>

namespace isolang {

// So many things no longer fit the nearer caches. Sanitizers are to see what is done for them in
// small histories.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::int32_t kPrefetchFrom = 0;
#else
inline constexpr std::int32_t kPrefetchFrom = 1 << 16;
#endif

template <typename T>
void prefetch(const T* address) {
  __builtin_prefetch(address);
  // A function that only prefetches has no effect, as GCC sees it, and its calls would be left out.
  asm volatile("");
}

}  // namespace isolang
