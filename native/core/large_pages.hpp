// Memory in large pages, where the system has them: the first touch of each page of 4 KiB costs as
// much as filling it twice. What this library allocates with `new` in blocks of 8 MiB and more asks
// for them by itself.
#pragma once
#include <cstddef>

namespace isolang {

inline constexpr std::size_t kLargeBlock = std::size_t{8} << 20;

// So much of the heap from here on, before it is used; only the addresses are taken. The heap is
// then not given back between one stage and the next. It changes the allocator of the whole
// process: only for processes that isocheck starts.
void reserve_heap_in_large_pages(std::size_t bytes);

// Gives free pages inside the heap back to the system: what lives for long lies scattered among what
// each round of a watch allocates and frees.
void trim_heap();

// Memory that is about to be filled, but was not allocated by this library's `new`. Advice: the
// system may refuse.
void advise_large_pages(void* begin, std::size_t bytes);

}  // namespace isolang
