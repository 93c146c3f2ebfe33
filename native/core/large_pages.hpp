// Memory in large pages, where the system offers them: the first access to a 4 KiB page costs as
// much as filling the page twice. Blocks of 1 MiB and more that this library allocates with `new`
// request large pages automatically.
#pragma once
#include <cstddef>

namespace isolang {

inline constexpr std::size_t kLargeBlock = std::size_t{1} << 20;

// Requests large pages for the next `bytes` of the heap before they are used, but reserves only the
// addresses. The heap then keeps its memory between one stage and the next. The call changes the
// allocator of the whole process, so only processes started by isocheck may use it.
void reserve_heap_in_large_pages(std::size_t bytes);

// Returns free pages inside the heap to the system. In a watch, long-lived blocks lie scattered
// among the blocks that each round allocates and frees.
void trim_heap();

// Advises the system to use large pages for memory that is about to be filled and does not come
// from this library's `new`. The system may refuse.
void advise_large_pages(void* begin, std::size_t bytes);

}  // namespace isolang
