// `next_pass` expands one layer after another. States are stored in a hash table and compared in
// full. Each state stores its parent and the last event, from which `model` reconstructs the order.
#include "engine/hard/state_search.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "core/index.hpp"
#include "core/required.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kFirstWidth = 256, kWidening = 4;

std::uint64_t hash_of(const std::uint16_t* cells, std::size_t count) {
  std::uint64_t h = 0x9E3779B97F4A7C15ULL;
  for (; count >= 4; cells += 4, count -= 4) {
    std::uint64_t word;
    std::memcpy(&word, cells, sizeof word);
    h = (h ^ word) * 0xFF51AFD7ED558CCDULL;
    h ^= h >> 32;
  }
  for (; count > 0; ++cells, --count) h = (h ^ *cells) * 0xC4CEB9FE1A85EC53ULL;
  return h ^ (h >> 29);
}

}  // namespace

StateSearch::StateSearch(const Chains& chains, Budget& budget, std::size_t max_bytes)
    : width(kFirstWidth),
      chains_(chains),
      rules_(chains),
      budget_(budget),
      max_bytes_(max_bytes),
      cells_(rules_.cells()) {
  start_pass();
}

void StateSearch::insert(const State& s, std::uint32_t parent, std::int32_t chain) {
  Layer& layer = layers_[s.done];
  const std::size_t before = layer.bytes();
  if (layer.size() >= idx(4 * width)) keep_best(layer);
  if (2 * (layer.size() + 1) > layer.table.size()) {
    layer.table.assign(std::bit_ceil(std::max<std::size_t>(64, 4 * layer.size())), 0);
    for (std::size_t i = 0; i < layer.size(); ++i) {
      std::size_t slot = hash_of(layer.cells.data() + i * cells_, cells_);
      while (layer.table[slot &= layer.table.size() - 1] != 0) ++slot;
      layer.table[slot] = static_cast<std::int32_t>(i) + 1;
    }
  }
  std::size_t slot = hash_of(s.cells.data(), cells_);
  for (; layer.table[slot &= layer.table.size() - 1] != 0; ++slot)
    if (std::equal(
            s.cells.begin(), s.cells.end(),
            layer.cells.begin() + static_cast<std::ptrdiff_t>(idx(layer.table[slot] - 1) * cells_)))
      return;
  layer.table[slot] = static_cast<std::int32_t>(layer.size()) + 1;
  layer.cells.insert(layer.cells.end(), s.cells.begin(), s.cells.end());
  layer.promise.push_back(rules_.estimate_completions(s));
  layer.origin.push_back(static_cast<std::uint32_t>(trail_.size()));
  trail_.push_back({parent, chain});
  held_ += layer.bytes() - before;
  if (idx(s.done) == chains_.events.size()) goal_ = layer.origin.back();
}

void StateSearch::keep_best(Layer& layer) {
  if (layer.size() <= idx(width)) return;
  cut_ = true;
  std::vector<std::int32_t> order(layer.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + width, order.end(),
                   [&](std::int32_t a, std::int32_t b) {
                     const float x = layer.promise[a], y = layer.promise[b];
                     return x != y ? x > y : a < b;
                   });
  order.resize(idx(width));
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t from = idx(order[i]);
    std::copy_n(layer.cells.begin() + static_cast<std::ptrdiff_t>(from * cells_), cells_,
                layer.cells.begin() + static_cast<std::ptrdiff_t>(i * cells_));
    layer.promise[i] = layer.promise[from];
    layer.origin[i] = layer.origin[from];
  }
  layer.cells.resize(order.size() * cells_);
  layer.promise.resize(order.size());
  layer.origin.resize(order.size());
  layer.table.clear();
}

void StateSearch::release(Layer& layer) {
  held_ -= layer.bytes();
  layer = {};
}

void StateSearch::start_pass() {
  layers_.assign(chains_.events.size() + 1, {});
  held_ = 0;
  trail_.clear();
  layer_ = state_ = 0;
  cut_ = false;
  ++passes;
  if (rules_.first(parent_)) insert(parent_, 0, -1);
}

StateSearch::Answer StateSearch::next_pass() {
  if (!cut_) return Answer::refuted;
  width *= kWidening;
  if (idx(width) * cells_ * sizeof(Cell) > max_bytes_) return Answer::gave_up;
  start_pass();
  return Answer::open;
}

StateSearch::Answer StateSearch::run(std::int64_t expansions) {
  while (expansions > 0) {
    if (goal_) return Answer::found;
    if (layer_ >= layers_.size()) {
      if (const Answer answer = next_pass(); answer != Answer::open) return answer;
      continue;
    }
    Layer& layer = layers_[layer_];
    if (state_ == 0) {
      const std::size_t before = layer.bytes();
      keep_best(layer);
      layer.table = {};  // the layer gets no more states
      layer.cells.shrink_to_fit();
      held_ -= before - layer.bytes();
    }
    if (state_ >= layer.size()) {
      release(layer);
      ++layer_;
      state_ = 0;
      continue;
    }
    if (full()) return Answer::gave_up;
    if (expanded % 64 == 0) budget_.check();
    deepest = std::max(deepest, static_cast<std::int32_t>(layer_));
    rules_.load(parent_, layer.cells.data() + state_ * cells_, static_cast<std::int32_t>(layer_));
    const std::uint32_t origin = layer.origin[state_++];
    ++expanded;
    --expansions;
    if (rules_.has_stuck_event(parent_)) continue;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(chains_.count()); ++c) {
      if (!rules_.can_run(parent_, c)) continue;
      child_ = parent_;
      if (rules_.run(child_, c)) insert(child_, origin, c);
    }
  }
  return Answer::open;
}

std::optional<Model> StateSearch::model() {
  std::vector<std::int32_t> chosen;
  for (std::uint32_t at = required(goal_, "the goal of a state search"); trail_[at].chain >= 0; at = trail_[at].parent)
    chosen.push_back(trail_[at].chain);
  std::ranges::reverse(chosen);
  std::vector<std::int32_t> ran;  // the chains in the order in which their events ran
  rules_.trace = &ran;
  rules_.first(parent_);
  for (const std::int32_t c : chosen) rules_.run(parent_, c);
  rules_.trace = nullptr;
  // Each other node comes right after the last event that precedes it.
  const TotalOrder& total_order = chains_.total_order;
  std::vector<std::int32_t> last(idx(total_order.graph.nodes()), -1), at(chains_.count(), 0);
  for (std::size_t i = 0; i < ran.size(); ++i) {
    const auto c = idx(ran[i]);
    last[chains_.events[chains_.start[c] + at[c]++].node] = static_cast<std::int32_t>(i);
  }
  std::vector<std::uint8_t> event(last.size(), 0);
  for (const Chains::Event& e : chains_.events) event[e.node] = 1;
  std::vector<Node> order(total_order.pruner.order.begin(), total_order.pruner.order.end());
  for (const Node v : order)
    if (!event[v])
      for (const Node u : total_order.before.of(v)) last[v] = std::max(last[v], last[u]);
  std::ranges::stable_sort(order, [&](Node a, Node b) {
    if (last[a] != last[b]) return last[a] < last[b];
    return event[a] > event[b];
  });
  std::vector<std::int32_t> place(last.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int32_t>(i);
  std::vector<std::uint8_t> present(total_order.problem.inclusion.size(), 0);
  for (std::int32_t t = 0; t < total_order.problem.n; ++t) present[t] = total_order.usable(t);
  return total_order.model(place, present);
}

}  // namespace isolang
