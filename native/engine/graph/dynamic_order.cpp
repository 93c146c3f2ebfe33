// `DynamicOrder::add` inserts an edge u → v. If v comes before u, it visits the nodes between the
// two that v reaches, and those that reach u, and permutes the ranks of only these nodes. If v
// reaches u, it returns false and leaves the cycle in `path`.
#include "engine/graph/dynamic_order.hpp"

#include <algorithm>

namespace isolang {
namespace {

// Shifting this many ranks takes about as long as visiting one node. If a search visits more than a
// few nodes and takes longer than a shift would, the shift replaces it.
constexpr std::int32_t kShiftsPerVisit = 16;
constexpr std::size_t kFewVisits = 64;

}  // namespace

void DynamicOrder::begin(std::vector<std::int32_t> rank) {
  out_head_.assign(rank.size(), -1);
  in_head_.assign(rank.size(), -1);
  at_.resize(rank.size());
  mark_.assign(rank.size(), 0);
  moved_.assign(rank.size(), 0);
  parent_.resize(rank.size());
  set_ranks(std::move(rank));
}

void DynamicOrder::set_ranks(std::vector<std::int32_t> rank) {
  rank_ = std::move(rank);
  for (std::size_t v = 0; v < rank_.size(); ++v) at_[rank_[v]] = static_cast<std::int32_t>(v);
}

Adjacency DynamicOrder::successors() const {
  Adjacency all;
  all.start.assign(rank_.size() + 1, 0);
  all.item.reserve(edges());
  for (std::size_t v = 0; v < rank_.size(); ++v) {
    each_out(static_cast<std::int32_t>(v), [&](std::int32_t w, Place) { all.item.push_back(w); });
    all.start[v + 1] = static_cast<std::uint32_t>(all.item.size());
  }
  return all;
}

bool DynamicOrder::add(std::int32_t u, std::int32_t v) {
  if (u == v) {
    path.clear();
    return false;
  }
  if (rank(u) > rank(v)) {
    // Finds the nodes that v reaches, up to the rank of u. If u is among them, there is a cycle.
    const std::int32_t upper = rank(u), lower = rank(v);
    bool cyclic = false;
    forward_.assign(1, v);
    mark_[v] = 1;
    // ablation: deep-first
    for (std::size_t i = 0; i < forward_.size() && !cyclic; ++i) {
      // ablation: deep-first-next
      const std::int32_t at = forward_[i];
      each_out(at, [&](std::int32_t w, Place edge) {
        // mutant: upper-end-missed
        if (cyclic || rank(w) > upper || mark_[w]) return;
        parent_[w] = {at, edge};
        if (w == u) {
          cyclic = true;
          return;
        }
        mark_[w] = 1;
        // ablation: deep-first-push
        forward_.push_back(w);
      });
    }
    visited += static_cast<std::int64_t>(forward_.size());
    if (cyclic) {
      for (const std::int32_t w : forward_) mark_[w] = 0;
      path.clear();
      for (std::int32_t w = u; w != v; w = parent_[w].node)
        path.push_back(number_of(parent_[w].edge));
      std::ranges::reverse(path);
      return false;
    }
    const auto by_rank = [&](std::int32_t w) { return rank(w); };
    std::ranges::sort(forward_, {}, by_rank);
    if (find_backward(u, lower, std::max(kFewVisits, idx((upper - lower) / kShiftsPerVisit)))) {
      std::ranges::sort(backward_, {}, by_rank);
      slots_.resize(backward_.size() + forward_.size());
      std::ranges::merge(backward_, forward_, slots_.begin(), {}, by_rank, by_rank);
      std::ranges::transform(slots_, slots_.begin(), by_rank);
      std::size_t next = 0;
      // mutant: groups-swapped
      for (const auto* group : {&backward_, &forward_})
        for (const std::int32_t w : *group) {
          set_rank(w, slots_[next++]);
          mark_[w] = 0;
        }
    } else {
      shift_forward(lower, upper);
    }
  }
  const auto e = static_cast<std::int32_t>(from_.size());
  from_.push_back(u);
  to_.push_back(v);
  out_next_.push_back(out_head_[u]);
  in_next_.push_back(in_head_[v]);
  out_head_[u] = in_head_[v] = e;
  return true;
}

// Finds the nodes that reach u, down to this rank. Together with the nodes that v reaches, they then redistribute their
// ranks, and get the lower ones. Returns false if there are more than `most` such nodes.
bool DynamicOrder::find_backward(std::int32_t u, std::int32_t lower, std::size_t most) {
  backward_.assign(1, u);
  mark_[u] = 1;
  for (std::size_t i = 0; i < backward_.size() && backward_.size() <= most; ++i)
    each_in(backward_[i], [&](std::int32_t w) {
      // mutant: lower-end-stays
      if (rank(w) < lower || mark_[w]) return;
      mark_[w] = 1;
      backward_.push_back(w);
    });
  visited += static_cast<std::int64_t>(backward_.size());
  if (backward_.size() <= most) return true;
  for (const std::int32_t w : backward_) mark_[w] = 0;
  return false;
}

// Moves the nodes that v reaches behind all others of the ranks lower … upper. The result is a
// topological order, because what these nodes reach has a higher rank or moves with them. An
// unfinished transaction, for example, may move far: it precedes few others, but most of those it
// passes precede the one behind which it ends up.
void DynamicOrder::shift_forward(std::int32_t lower, std::int32_t upper) {
  std::int32_t next = lower;
  for (std::int32_t rank = lower; rank <= upper; ++rank) {
    const std::int32_t w = at_[rank];
    if (mark_[w] == 0) set_rank(w, next++);
  }
  for (const std::int32_t w : forward_) {
    set_rank(w, next++);
    mark_[w] = 0;
  }
  visited += (upper - lower) / kShiftsPerVisit;
}

void DynamicOrder::forget_moved() {
  for (const std::int32_t v : moved) moved_[v] = 0;
  moved.clear();
}

void DynamicOrder::shrink(std::size_t count) {
  while (edges() > count) {
    if (from_.back() >= 0) {
      out_head_[from_.back()] = out_next_.back();
      in_head_[to_.back()] = in_next_.back();
    }
    out_next_.pop_back();
    in_next_.pop_back();
    from_.pop_back();
    to_.pop_back();
  }
}

void DynamicOrder::remove(std::int32_t edge) {
  const std::int32_t added = edge - static_cast<std::int32_t>(permanent_);
  if (from_[added] < 0) return;
  const auto unlink = [&](std::int32_t& head, std::vector<std::int32_t>& next) {
    std::int32_t* link = &head;
    while (*link != added) link = &next[*link];
    *link = next[added];
  };
  unlink(out_head_[from_[added]], out_next_);
  unlink(in_head_[to_[added]], in_next_);
  from_[added] = to_[added] = -1;
}

}  // namespace isolang
