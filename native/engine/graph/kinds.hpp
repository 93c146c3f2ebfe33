// The keys and the transactions of a history, sorted by what the names of a specification say of
// them: two keys are of one kind if every class of keys that is named has both or neither.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// Which pairs a step is about, as bits: of each kind of keys the pairs by item reads (and the orders
// of versions), and those by which a predicate read says that no matching row was there. Of a test of
// names: the kinds of transactions that pass it.
using Pairs = std::uint64_t;
inline constexpr Pairs kAllPairs = ~Pairs{0}, kItemPairs = 0x5555555555555555, kPredicatePairs = ~kItemPairs;

// A name in quotes: a class of keys, or the transactions that bear a label or a level.
struct NameClass {
  enum class Of : std::uint8_t { keys, labels, levels } of = Of::keys;
  std::vector<std::string> patterns;  // `*` is any text
  bool negated = false;
  bool operator==(const NameClass&) const = default;
};

struct Kinds {
  std::vector<std::uint8_t> of_key, of_transaction;
  std::vector<Pairs> members;  // of each class

  Pairs items(std::int32_t key) const { return Pairs{1} << (2 * of_key[idx(key)]); }
  Pairs transaction(std::int32_t t) const {
    return idx(t) < of_transaction.size() ? Pairs{1} << of_transaction[idx(t)] : 0;
  }
};

// Throws std::domain_error if there are more kinds than a word has bits for.
Kinds kinds_of(const History& history, std::span<const NameClass> classes);

}  // namespace isolang
