#include "engine/dynamic_order.hpp"

#include <algorithm>

namespace isolang {

namespace {
constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

DynamicOrder::DynamicOrder(std::int32_t nodes, std::vector<std::int32_t> from, std::vector<std::int32_t> to,
                           std::vector<std::int32_t> rank)
    : permanent_(from.size()), from_(std::move(from)), to_(std::move(to)), rank_(std::move(rank)) {
  const auto number = [](std::size_t i) { return static_cast<std::int32_t>(i); };
  out_ = group_by(nodes, permanent_, [&](std::size_t i) { return from_[i]; }, number);
  in_ = group_by(nodes, permanent_, [&](std::size_t i) { return to_[i]; }, number);
  out_head_.assign(idx(nodes), -1);
  in_head_.assign(idx(nodes), -1);
  at_.resize(rank_.size());
  set_ranks(std::move(rank_));
  mark_.assign(idx(nodes), 0);
  moved_.assign(idx(nodes), 0);
  parent_.assign(idx(nodes), -1);
}

void DynamicOrder::set_ranks(std::vector<std::int32_t> rank) {
  rank_ = std::move(rank);
  for (std::size_t v = 0; v < rank_.size(); ++v) at_[idx(rank_[v])] = static_cast<std::int32_t>(v);
}

Adjacency DynamicOrder::successors() const {
  return group_by(
      static_cast<std::int32_t>(rank_.size()), from_.size(), [&](std::size_t i) { return from_[i]; },
      [&](std::size_t i) { return to_[i]; });
}

bool DynamicOrder::add(std::int32_t u, std::int32_t v) {
  if (u == v) {
    path.clear();
    return false;
  }
  if (rank(u) > rank(v)) {
    // The nodes that v reaches, up to u's rank: if u is one of them, a cycle.
    const std::int32_t upper = rank(u), lower = rank(v);
    bool cyclic = false;
    forward_.assign(1, v);
    mark_[idx(v)] = 1;
    for (std::size_t i = 0; i < forward_.size() && !cyclic; ++i)
      each_out(forward_[i], [&](std::int32_t e) {
        const std::int32_t w = to_[idx(e)];
        if (cyclic || mark_[idx(w)] || rank(w) > upper) return;
        parent_[idx(w)] = e;
        if (w == u) {
          cyclic = true;
          return;
        }
        mark_[idx(w)] = 1;
        forward_.push_back(w);
      });
    visited += static_cast<std::int64_t>(forward_.size());
    if (cyclic) {
      for (const std::int32_t w : forward_) mark_[idx(w)] = 0;
      path.clear();
      for (std::int32_t w = u; w != v; w = from_[idx(parent_[idx(w)])]) path.push_back(parent_[idx(w)]);
      std::ranges::reverse(path);
      return false;
    }
    // The nodes that reach u, down to v's rank; then both groups share their ranks, these first.
    backward_.assign(1, u);
    mark_[idx(u)] = 1;
    for (std::size_t i = 0; i < backward_.size(); ++i)
      each_in(backward_[i], [&](std::int32_t e) {
        const std::int32_t w = from_[idx(e)];
        if (mark_[idx(w)] || rank(w) < lower) return;
        mark_[idx(w)] = 1;
        backward_.push_back(w);
      });
    visited += static_cast<std::int64_t>(backward_.size());
    const auto by_rank = [&](std::int32_t w) { return rank(w); };
    std::ranges::sort(forward_, {}, by_rank);
    std::ranges::sort(backward_, {}, by_rank);
    slots_.clear();
    for (const std::int32_t w : backward_) slots_.push_back(rank(w));
    for (const std::int32_t w : forward_) slots_.push_back(rank(w));
    std::ranges::sort(slots_);
    std::size_t next = 0;
    for (const auto* group : {&backward_, &forward_})
      for (const std::int32_t w : *group) {
        set_rank(w, slots_[next++]);
        mark_[idx(w)] = 0;
      }
  }
  const auto e = static_cast<std::int32_t>(from_.size());
  from_.push_back(u);
  to_.push_back(v);
  out_next_.push_back(out_head_[idx(u)]);
  in_next_.push_back(in_head_[idx(v)]);
  out_head_[idx(u)] = in_head_[idx(v)] = e;
  return true;
}

void DynamicOrder::forget_moved() {
  for (const std::int32_t v : moved) moved_[idx(v)] = 0;
  moved.clear();
}

void DynamicOrder::shrink(std::size_t count) {
  while (from_.size() > count) {
    if (from_.back() >= 0) {
      out_head_[idx(from_.back())] = out_next_.back();
      in_head_[idx(to_.back())] = in_next_.back();
    }
    out_next_.pop_back();
    in_next_.pop_back();
    from_.pop_back();
    to_.pop_back();
  }
}

void DynamicOrder::remove(std::int32_t edge) {
  if (from_[idx(edge)] < 0) return;
  const auto unlink = [&](std::int32_t& head, std::vector<std::int32_t>& next) {
    std::int32_t* link = &head;
    while (*link != edge) link = &next[idx(*link) - permanent_];
    *link = next[idx(edge) - permanent_];
  };
  unlink(out_head_[idx(from_[idx(edge)])], out_next_);
  unlink(in_head_[idx(to_[idx(edge)])], in_next_);
  from_[idx(edge)] = to_[idx(edge)] = -1;
}

}  // namespace isolang
