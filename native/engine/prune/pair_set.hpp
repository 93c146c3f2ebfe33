// A set of pairs of writers, in one array. A node for each of hundreds of thousands of pairs would
// cost more time and memory than everything else about them.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace isolang {

class PairSet {
 public:
  // Adds the pair, whose numbers are not negative. Returns false if the set already contains it.
  bool insert(std::int32_t a, std::int32_t b) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    std::uint64_t& slot = find(code(a, b));
    if (slot != kFree) return false;
    slot = code(a, b);
    ++size_;
    return true;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static std::uint64_t code(std::int32_t a, std::int32_t b) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
  }
  // Returns the slot of the pair, or the free slot where it belongs.
  std::uint64_t& find(std::uint64_t pair) {
    const std::size_t mask = slots_.size() - 1;
    // Fibonacci hashing, which distributes pairs best over the high half of the product.
    std::size_t i = idx((pair ^ pair >> 32) * 0x9e3779b97f4a7c15ULL >> 32) & mask;
    while (slots_[i] != kFree && slots_[i] != pair) i = (i + 1) & mask;
    return slots_[i];
  }
  void grow() {
    std::vector<std::uint64_t> old(slots_.empty() ? 64 : 2 * slots_.size(), kFree);
    old.swap(slots_);
    for (const std::uint64_t pair : old)
      if (pair != kFree) find(pair) = pair;
  }

  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

}  // namespace isolang
