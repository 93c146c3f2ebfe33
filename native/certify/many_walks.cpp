// A wave starts at a few hundred nodes, with one bit for each of them, and visits the nodes up to the last end of its
// pairs. Its cost is therefore proportional to the stretch of the order that it covers. A few pairs that are far apart
// would make all waves long, so pairs of similar distance share waves.
#include "certify/many_walks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "core/index.hpp"

namespace isolang::certify {
namespace {

constexpr std::size_t kWords = 8;  // words of bits for each node, which fill a cache line
using Bits = std::array<std::uint64_t, kWords>;
using PairOfPlaces = std::pair<std::int32_t, std::int32_t>;

std::size_t bits_of_distance(const PairOfPlaces& pair) {
  return idx(std::bit_width(static_cast<std::uint32_t>(pair.second - pair.first)));
}

// Returns the kind of wave for each distance, by its number of bits. All waves of a kind together visit each node once,
// and each of them also visits as many nodes after its last start as the longest distance of the kind. A kind that
// costs less than `nodes` visits in this way also takes the pairs of the next distance.
std::array<int, 33> kinds_of_waves(std::span<const PairOfPlaces> pairs, std::size_t nodes) {
  std::array<std::size_t, 33> count{};
  for (const PairOfPlaces& pair : pairs) ++count[bits_of_distance(pair)];
  std::array<int, 33> kind{};
  std::size_t waves_of = 0;  // pairs of the kind
  for (std::size_t bits = 1; bits < kind.size(); ++bits) {
    kind[bits] = kind[bits - 1];
    if ((waves_of << (bits - 1)) / (kWords * 64) >= nodes) {
      ++kind[bits];
      waves_of = 0;
    }
    waves_of += count[bits];
  }
  return kind;
}

}  // namespace

bool any_walk(const ProductGraph& graph, std::span<const std::int32_t> order,
              std::vector<PairOfPlaces> pairs, Budget& budget) {
  const std::array<int, 33> kinds = kinds_of_waves(pairs, order.size());
  const auto kind = [&](const PairOfPlaces& pair) { return kinds[bits_of_distance(pair)]; };
  std::ranges::sort(pairs, {}, [&](const PairOfPlaces& pair) {
    return std::tuple(kind(pair), pair.first, pair.second);
  });
  std::vector<std::int32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int32_t>(i);
  std::vector<Bits> bits;
  for (std::size_t first = 0; first < pairs.size();) {
    // The pairs of this wave have no more first nodes than a node has bits.
    const std::int32_t begin = pairs[first].first;
    std::int32_t end = begin;
    std::size_t last = first, starts = 0;
    for (; last < pairs.size() && kind(pairs[last]) == kind(pairs[first]); ++last) {
      if (last == first || pairs[last].first != pairs[last - 1].first) ++starts;
      if (starts > kWords * 64) break;
      end = std::max(end, pairs[last].second);
    }
    bits.assign(idx(end - begin) + 1, Bits{});
    const auto bits_at = [&](std::int32_t at) -> Bits& { return bits[idx(at - begin)]; };
    const auto each = [&](auto visit) {  // visit receives the number of the first node, and the pair
      std::size_t number = 0;
      for (std::size_t i = first; i < last; ++i) {
        if (i > first && pairs[i].first != pairs[i - 1].first) ++number;
        visit(number, pairs[i]);
      }
    };
    each([&](std::size_t number, const auto& pair) {
      bits_at(pair.first)[number / 64] |= std::uint64_t{1} << (number % 64);
    });
    for (std::int32_t at = begin; at < end; ++at) {
      budget.poll();
      const Bits here = bits_at(at);
      if (here == Bits{}) continue;
      const std::int32_t v = order[at];
      for (std::int64_t e = graph.edge_start[v]; e < graph.edge_start[v + 1]; ++e)
        // mutant: checker-wave-ends-early
        if (const std::int32_t to = place[graph.edge_to[e]]; to <= end)
          for (std::size_t k = 0; k < kWords; ++k) bits_at(to)[k] |= here[k];
    }
    bool found = false;
    each([&](std::size_t number, const auto& pair) {
      found = found || (bits_at(pair.second)[number / 64] >> (number % 64) & 1) != 0;
    });
    if (found) return true;
    first = last;
  }
  return false;
}

}  // namespace isolang::certify
