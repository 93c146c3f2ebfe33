// What pruning knows about each pair of writers of a key: which comes first, and whether all that
// follows from it is among the known edges. Of a key with many writers only whether that is known
// of all pairs: such keys are pruned by chains (see key_pruner.hpp), not by rows of bits.
//
// Different keys have nothing in common here: each may be changed by a thread of its own.
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

  // Of each key by descending rank of their version nodes, which stays so: what precedes much comes
  // last.
  template <typename RankOf>
  void sort(RankOf rank_of);

  // The key's writers, the latest first, and each one's place among them, which numbers its bit in
  // rows of bits.
  std::span<const std::int32_t> writers(std::int32_t key) const {
    return std::span(latest_).subspan(first(key), count(key));
  }
  std::size_t place(std::int32_t writer) const { return idx(place_[writer]); }
  std::size_t words(std::int32_t key) const { return words_for(count(key)); }  // of a row

  // Rows of `words(key)`, one for each of writers(key): those that precede it. Empty if a key has
  // many writers.
  std::span<const std::uint64_t> precede(std::int32_t key) const { return precede_[key]; }
  // The writers of a row precede `after`.
  void note(std::int32_t key, std::int32_t after, std::span<const std::uint64_t> row);
  // A row: the writers whose orders may still lack edges. The edges of all other known orders are
  // known or implied: nothing is left to do for them until the first of the pair gets another
  // reader.
  std::span<std::uint64_t> unsettled(std::int32_t key) { return unsettled_[key]; }
  void unsettle(std::int32_t key, std::int32_t writer);  // it got another reader

  // Others of its key of which neither order with the writer is known.
  std::int32_t open(std::int32_t writer) const { return open_[writer]; }
  bool has_rows(std::int32_t key) const { return !unsettled_[key].empty(); }
  // Of a key without rows: each pair's order is known, and so are all edges of it, or implied.
  void note_all(std::int32_t key) { decided_[key] = settled_[key] = 1; }
  bool decided(std::int32_t key) const;  // the order of each pair of the key is known
  // The edges of all that is known to precede the writer are known or implied.
  bool is_settled(std::int32_t key, std::int32_t writer) const;
  bool is_settled(std::int32_t key) const;  // those of all its writers

 private:
  std::size_t first(std::int32_t key) const { return idx(problem_.key_start[key]); }
  std::size_t count(std::int32_t key) const {
    return idx(problem_.key_start[key + 1]) - first(key);
  }
  void number(std::int32_t key);

  const Problem& problem_;
  std::vector<std::int32_t> latest_, place_;
  std::vector<std::span<std::uint64_t>> precede_, unsettled_;  // per key
  std::vector<std::uint64_t> bits_;                            // of both
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
