// Stores what pruning has concluded about each pair of writers of a key: which writer comes first, and whether all
// consequences of this order are among the known edges. For a key with many writers, it stores only whether this is
// known for all pairs, because such keys are pruned by chains (see key_pruner.hpp) instead of rows of bits.
//
// Different keys share no data in this class, so different threads may change different keys.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/bits.hpp"
#include "core/index.hpp"
#include "core/problem.hpp"

namespace isolang {

class WriterPairs {
 public:
  explicit WriterPairs(const Problem& problem);

  // Allocates the rows of these keys, as long as there is room. Until then, no key has rows.
  void allocate_rows(std::span<const std::int32_t> keys);

  // Sorts the writers of each key by descending rank of their version nodes. This order stays
  // fixed: writers that precede many others come last.
  template <typename RankOf>
  void sort(RankOf rank_of);

  // Returns the key's writers, the latest first. A writer's position in this list is the number of
  // its bit in rows of bits.
  std::span<const std::int32_t> writers(std::int32_t key) const {
    return std::span(latest_).subspan(first(key), count(key));
  }
  std::size_t place(std::int32_t writer) const { return idx(place_[writer]); }
  std::size_t words(std::int32_t key) const { return words_for(count(key)); }  // of a row

  // Returns, for each of writers(key), a row of `words(key)` words with the writers that precede
  // it. The result is empty if the key has many writers.
  std::span<const std::uint64_t> precede(std::int32_t key) const { return precede_[key]; }
  // Records that the writers of a row precede `after`.
  void note(std::int32_t key, std::int32_t after, std::span<const std::uint64_t> row);
  // Returns a row of the writers whose orders may still lack edges. The edges of all other known
  // orders are known or implied. Those orders need no more work until the first writer of the pair
  // gets another reader.
  std::span<std::uint64_t> unsettled(std::int32_t key) { return unsettled_[key]; }
  void unsettle(std::int32_t key, std::int32_t writer);  // records that the writer has got another reader

  // Returns the number of other writers of the key whose order with this writer is unknown.
  std::int32_t open(std::int32_t writer) const { return open_[writer]; }
  bool has_rows(std::int32_t key) const { return !unsettled_[key].empty(); }
  // For a key without rows: records that the order of each pair is known, and that all its edges
  // are known or implied.
  void note_all(std::int32_t key) { decided_[key] = settled_[key] = 1; }
  bool decided(std::int32_t key) const;  // the order of each pair of the key is known
  // Returns true if all edges from the writers that are known to precede this writer are known or
  // implied.
  bool is_settled(std::int32_t key, std::int32_t writer) const;
  bool is_settled(std::int32_t key) const;  // the same for all writers of the key

 private:
  std::size_t first(std::int32_t key) const { return idx(problem_.key_start[key]); }
  std::size_t count(std::int32_t key) const {
    return idx(problem_.key_start[key + 1]) - first(key);
  }
  void number(std::int32_t key);

  const Problem& problem_;
  std::vector<std::int32_t> latest_, place_;
  std::vector<std::span<std::uint64_t>> precede_, unsettled_;  // per key
  std::vector<std::uint64_t> bits_;                            // storage of both
  std::vector<std::int32_t> open_;                             // per writer
  std::vector<std::uint8_t> decided_, settled_;                // per key without rows
};

template <typename RankOf>
void WriterPairs::sort(RankOf rank_of) {
  for (std::int32_t key = 0; key < problem_.keys; ++key) {
    std::ranges::sort(std::span(latest_).subspan(first(key), count(key)), std::ranges::greater(),
                      rank_of);
    number(key);
  }
}

}  // namespace isolang
