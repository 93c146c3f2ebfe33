// Replaces the global `operator new` of this library, so that large blocks request large pages from
// the system. A request that fails has no effect.
#include "core/large_pages.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "core/faults.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace isolang {

void advise_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kPage = 4096;
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (at + kPage - 1) / kPage * kPage,
                       last = (at + bytes) / kPage * kPage;
  if (first < last)
    static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
#endif
}

void reserve_heap_in_large_pages([[maybe_unused]] std::size_t bytes) {
#if defined(__GLIBC__) && defined(M_MMAP_MAX)
  // Blocks in the heap lie one after another. When they are freed, later blocks take their place, whose pages the system
  // need not clear again: it would clear those of a block of its own. A heap keeps up to kKept free bytes at its end.
  constexpr std::size_t kBlock = std::size_t{16} << 20;
  constexpr int kKept = 2'000'000'000;
  if (mallopt(M_MMAP_MAX, 0) == 0 || mallopt(M_TRIM_THRESHOLD, kKept) == 0) return;
  std::vector<void*> blocks;
  for (std::size_t have = 0; have < bytes; have += kBlock)
    if (void* const block = std::malloc(kBlock)) {
      advise_large_pages(block, kBlock);
      blocks.push_back(block);
    }
  for (void* const block : blocks) std::free(block);
#endif
}

void trim_heap() {
#ifdef __GLIBC__
  static_cast<void>(malloc_trim(0));
#endif
}

}  // namespace isolang

// gcc signals the address sanitizer by a macro, but clang before 21 only by a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

// Allocates all large blocks of this library: columns, edges, clock rows. The address sanitizer has
// a separate allocator.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

void* operator new(std::size_t bytes) {
  if (isolang::faults::fails_allocation()) throw std::bad_alloc();
  for (;;) {
    if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) {
      if (bytes >= isolang::kLargeBlock) isolang::advise_large_pages(block, bytes);
      return block;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

#endif
