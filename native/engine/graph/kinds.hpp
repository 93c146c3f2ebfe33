// Kinds of keys and of transactions, by the names in a specification: two keys are of the same kind
// if every named class of keys contains both or neither of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// The pairs to which a step applies, as bits. Each kind of keys has one bit for the pairs by item
// reads (and for version orders), and one bit for the pairs in which a predicate read found no
// matching row. For a test of names, the bits are the kinds of transactions that pass it.
using Pairs = std::uint64_t;
inline constexpr Pairs kAllPairs = ~Pairs{0}, kItemPairs = 0x5555555555555555, kPredicatePairs = ~kItemPairs;
// The pairs of the reads that are apart (AssumedOrders::apart). The bit is the last one of
// kPredicatePairs. Without names, it has no other meaning.
inline constexpr Pairs kApartPairs = Pairs{1} << 63;
// The pairs of item reads whose transaction also writes the key, if some check tells them apart from
// those of other item reads. The bit is the last one of kItemPairs. With names, it has another
// meaning, and no check tells these reads apart.
inline constexpr Pairs kWriterPairs = Pairs{1} << 62;
// Returns true if a check with these pairs tells the item reads of writers from other item reads.
constexpr bool tells_writers(Pairs pairs) {
  return (pairs & kItemPairs) != 0 && (pairs & kItemPairs) == (kItemPairs & ~kWriterPairs);
}

// A name in quotes: a class of keys, or the transactions with a label or a level.
struct NameClass {
  enum class Of : std::uint8_t { keys, labels, levels } of = Of::keys;
  std::vector<std::string> patterns;  // in a pattern, `*` matches any text
  bool negated = false;
  bool operator==(const NameClass&) const = default;
};

struct Kinds {
  std::vector<std::uint8_t> of_key, of_transaction;
  std::vector<Pairs> members;  // per class

  Pairs items(std::int32_t key) const { return Pairs{1} << (2 * of_key[idx(key)]); }
  Pairs transaction(std::int32_t t) const {
    return idx(t) < of_transaction.size() ? Pairs{1} << of_transaction[idx(t)] : 0;
  }
};

// Throws std::domain_error if there are more kinds than a word has bits.
Kinds kinds_of(const History& history, std::span<const NameClass> classes);

}  // namespace isolang
