// Functions on rows of bits, which represent sets of small numbers. Bit i is in word i / 64.
#pragma once
#include <cstddef>
#include <cstdint>

namespace isolang {

inline constexpr std::size_t kWordBits = 64;

constexpr std::size_t words_for(std::size_t bits) { return (bits + kWordBits - 1) / kWordBits; }
constexpr std::size_t word_of(std::size_t bit) { return bit / kWordBits; }
constexpr std::uint64_t mask_of(std::size_t bit) { return std::uint64_t{1} << (bit % kWordBits); }

// A row is any type that can be indexed by word.
template <typename Row>
constexpr bool has_bit(const Row& row, std::size_t bit) {
  return (row[word_of(bit)] & mask_of(bit)) != 0;
}
template <typename Row>
constexpr void set_bit(Row&& row, std::size_t bit) {
  row[word_of(bit)] |= mask_of(bit);
}
template <typename Row>
constexpr void clear_bit(Row&& row, std::size_t bit) {
  row[word_of(bit)] &= ~mask_of(bit);
}

}  // namespace isolang
