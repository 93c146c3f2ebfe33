// Adjacency lists of graphs whose nodes are numbers. All lists of a graph are stored in one array.
#pragma once
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "core/index.hpp"

namespace isolang {

// Adjacency lists in one array: the neighbours of v are item[start[v]] … item[start[v+1]-1].
struct Adjacency {
  std::vector<std::uint32_t> start;
  std::vector<std::int32_t> item;
  std::span<const std::int32_t> of(std::int32_t v) const {
    const auto i = idx(v);
    return {item.data() + start[i], item.data() + start[i + 1]};
  }
};

// Throws if there are so many items that their numbers do not fit.
inline void check_count(std::size_t items) {
  if (items > std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
}

// Returns empty lists with room for one item for each number i in 0 … count-1, in the list
// key_of(i). `groups` is the number of lists. Numbers with a negative key get no room.
template <typename KeyOf>
Adjacency room_by(std::int32_t groups, std::size_t count, KeyOf key_of) {
  Adjacency g;
  check_count(count);
  g.start.assign(idx(groups) + 1, 0);
  for (std::size_t i = 0; i < count; ++i)
    if (const std::int32_t k = key_of(i); k >= 0) ++g.start[k + 1];
  for (std::size_t v = 0; v < idx(groups); ++v) g.start[v + 1] += g.start[v];
  g.item.resize(idx(g.start.back()));
  return g;
}

// Appends items to their lists, in the order of the calls.
class Filling {
 public:
  explicit Filling(Adjacency& lists)
      : lists_(lists), next_(lists.start.begin(), lists.start.end() - 1) {}
  // Returns the item's index in Adjacency::item.
  std::size_t put(std::int32_t key, std::int32_t item) {
    const auto place = idx(next_[key]++);
    lists_.item[place] = item;
    return place;
  }

 private:
  Adjacency& lists_;
  std::vector<std::uint32_t> next_;
};

// Groups item_of(i), for i in 0 … count-1, by key_of(i), preserving the order within each group.
template <typename KeyOf, typename ItemOf>
Adjacency group_by(std::int32_t groups, std::size_t count, KeyOf key_of, ItemOf item_of) {
  Adjacency g = room_by(groups, count, key_of);
  Filling filling(g);
  for (std::size_t i = 0; i < count; ++i)
    if (const std::int32_t k = key_of(i); k >= 0) filling.put(k, item_of(i));
  return g;
}

// Returns the reversed edges. The sources of each node are in descending order of their positions
// in `order`, which contains all nodes.
inline Adjacency reversed(const Adjacency& successors, std::span<const std::int32_t> order) {
  Adjacency r = room_by(static_cast<std::int32_t>(order.size()), successors.item.size(),
                        [&](std::size_t i) { return successors.item[i]; });
  Filling filling(r);
  for (std::size_t i = order.size(); i-- > 0;)
    for (const std::int32_t v : successors.of(order[i])) filling.put(v, order[i]);
  return r;
}

}  // namespace isolang
