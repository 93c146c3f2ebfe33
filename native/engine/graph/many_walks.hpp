// Decides simultaneously, for many pairs of nodes, whether a walk leads from the first node to the second. This is pure
// graph theory: nodes are numbers.
//
// Clocks know the past of every node, and their memory grows with the number of chains of the graph. If the pairs are
// known beforehand, clocks are not needed. A wave starts at a few hundred nodes, with one bit for each of them, and
// visits the nodes up to the last end of its pairs. Its cost is therefore proportional to the stretch of the order that
// it covers. Pairs of similar distance share waves, because otherwise a few pairs that are far apart would make all
// waves long.
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
  const auto distance = [&](std::int32_t i) {
    return std::bit_width(static_cast<std::uint32_t>(pairs[i].to - pairs[i].from));
  };
  std::ranges::sort(turn, {}, [&](std::int32_t i) {
    return std::tuple(distance(i), pairs[i].from, pairs[i].to, i);
  });
  std::vector<Bits> bits;
  for (auto first = turn.begin(); first != turn.end();) {
    const std::int32_t begin = pairs[*first].from;
    std::int32_t end = begin, start = -1;
    std::size_t starts = 0;
    auto last = first;
    for (; last != turn.end() && distance(*last) == distance(*first); ++last) {
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
