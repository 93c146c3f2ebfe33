// Decides simultaneously, for many pairs of nodes, whether a walk leads from the first node to the second. This is pure
// graph theory: nodes are numbers.
//
// Clocks know the past of every node, and their memory grows with the number of chains of the graph. If the pairs are
// known beforehand, clocks are not needed. A wave starts at a few hundred nodes, with one bit for each of them, and
// visits the nodes up to the last end of its pairs. Its cost is therefore proportional to the stretch of the order that
// it covers. A few pairs that are far apart would make all waves long, so they may have waves of their own (WavesBy).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "core/budget.hpp"
#include "core/index.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {

// Two positions in a topological order, the earlier one first.
struct PairOfPlaces {
  std::int32_t from, to;
};

// Groups pairs by the distance between their positions. The waves of a group visit all places once, and each wave also
// visits, after its last start, as many places as the longest distance of the group. Pairs of a longer distance
// therefore join a group unless its waves would then visit more places than an additional group does.
class WavesBy {
 public:
  WavesBy(std::span<const PairOfPlaces> pairs, std::size_t places, std::size_t starts_of_wave) {
    std::array<std::size_t, kDistances> count{};
    for (const PairOfPlaces& pair : pairs) ++count[distance(pair)];
    std::size_t members = 0;  // of the current group
    for (std::size_t d = 1; d < kDistances; ++d) {
      const bool joins = members << (d - 1) < starts_of_wave * places;
      group_[d] = group_[d - 1] + (joins ? 0 : 1);
      members = count[d] + (joins ? members : 0);
    }
  }
  std::int32_t group(const PairOfPlaces& pair) const { return group_[distance(pair)]; }

 private:
  static constexpr std::size_t kDistances = 33;  // powers of two
  static std::size_t distance(const PairOfPlaces& pair) {
    return idx(std::bit_width(static_cast<std::uint32_t>(pair.to - pair.from)));
  }
  std::array<std::int32_t, kDistances> group_{};
};

// Calls visit(i, reached) for each pair i. reached(place) returns true if a (possibly empty) walk
// leads from the first position of pairs[i] to position `place`, which must not be behind the
// second position of the pair. `successors` are lists of positions.
template <typename Visit>
void in_waves(const Adjacency& successors, std::span<const PairOfPlaces> pairs, Budget& budget,
              Visit visit) {
  constexpr std::size_t kWords = 8;  // a cache line
  using Bits = std::array<std::uint64_t, kWords>;
  std::vector<std::int32_t> turn(pairs.size());
  std::iota(turn.begin(), turn.end(), 0);
  const WavesBy waves(pairs, successors.start.size() - 1, kWords * 64);
  std::ranges::sort(turn, {}, [&](std::int32_t i) {
    return std::tuple(waves.group(pairs[i]), pairs[i].from, pairs[i].to, i);
  });
  std::vector<Bits> bits;
  for (auto first = turn.begin(); first != turn.end();) {
    const std::int32_t begin = pairs[*first].from;
    std::int32_t end = begin, start = -1;
    std::size_t starts = 0;
    auto last = first;
    for (; last != turn.end() && waves.group(pairs[*last]) == waves.group(pairs[*first]); ++last) {
      starts += static_cast<std::size_t>(pairs[*last].from != start);
      if (starts > kWords * 64) break;
      start = pairs[*last].from;
      end = std::max(end, pairs[*last].to);
    }
    bits.assign(idx(end - begin) + 1, Bits{});
    const auto at = [&](std::int32_t place) -> Bits& { return bits[idx(place - begin)]; };
    const auto each = [&](auto look) {  // the number of its first position, and the pair
      std::size_t number = 0;
      for (auto i = first; i != last; ++i) {
        if (i != first && pairs[*i].from != pairs[*(i - 1)].from) ++number;
        look(number, *i);
      }
    };
    each([&](std::size_t number, std::int32_t i) {
      at(pairs[i].from)[number / 64] |= std::uint64_t{1} << (number % 64);
    });
    for (std::int32_t place = begin; place < end; ++place) {
      budget.poll();
      const Bits here = at(place);
      if (here == Bits{}) continue;
      for (const std::int32_t next : successors.of(place)) {
        // mutant: wave-ends-early
        if (next > end) continue;
        Bits& there = at(next);
        for (std::size_t k = 0; k < kWords; ++k) there[k] |= here[k];
      }
    }
    each([&](std::size_t number, std::int32_t i) {
      visit(i, [&](std::int32_t place) {
        return place >= begin && (at(place)[number / 64] >> (number % 64) & 1) != 0;
      });
    });
    first = last;
  }
}

}  // namespace isolang
