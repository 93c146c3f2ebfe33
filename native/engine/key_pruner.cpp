#include "engine/key_pruner.hpp"

#include <algorithm>
#include <limits>

#include "core/prefetch.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

// The caches would not hold more until they are needed.
std::span<const std::int32_t> some(std::span<const std::int32_t> items) {
  constexpr std::size_t kMany = 256;
  return items.first(std::min(items.size(), kMany));
}

}  // namespace

KeyPruner::KeyPruner(Pruner& pruner)
    : pruner_(pruner),
      graph_(pruner.graph),
      clocks_(pruner.clocks),
      pairs_(pruner.pairs_),
      starts_(clocks_),
      reader_(clocks_) {
  using enum Relation;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
    const auto check = static_cast<std::int32_t>(c);
    const Automaton& m = graph_.automata[c];
    orders_compose_ &= m.implied_by(ww, {ww, ww}) && m.implied_by(rw, {rw, ww}) && m.implied_by(rw, {ww});
    for (const auto& [q, r] : m.of(ww))
      if (m.judges) ww_rows_.push_back({check, q, target_of(check, r)});
    for (const auto* steps : {&m.of(rw), &m.back})
      for (const auto& [q, r] : *steps) rw_rows_.push_back({check, q, target_of(check, r)});
  }
  if (graph_.has_version_nodes()) ww_rows_.push_back({-1, 0, target_of(-1, 0)});
}

std::size_t KeyPruner::target_of(std::int32_t check, std::int32_t state) {
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (targets_[i].check == check && targets_[i].state == state) return i;
  targets_.push_back({check, state, {}});
  return targets_.size() - 1;
}

bool KeyPruner::prune(std::int32_t key, bool every_read, Budget& budget, Findings& findings) {
  budget_ = &budget;
  findings_ = &findings;
  key_ = -1;
  const bool quiet = pruner_.is_quiet(key);
  if (graph_.uses_orders && !quiet) {
    load(key);
    if (!prune_orders()) return false;
  }
  if (!graph_.uses_reads) return true;
  for (const std::int32_t r : pruner_.open_reads_.of(key)) {
    if (pruner_.source[idx(r)] >= 0) continue;
    if (quiet && !every_read && pruner_.changed_[idx(graph_.problem.read_txn[idx(r)])] == 0) continue;
    if (key_ != key) load(key);
    if (!prune_read(r)) return false;
  }
  return true;
}

// In a large history what a key needs lies all over it, and one thing says where the next one is: a read, its
// transaction, the place of that in the clocks, its row. So each of these is fetched a key before the next is asked.
void KeyPruner::fetch(std::span<const std::int32_t> keys) const {
  if (graph_.nodes() < kFarApart) return;
  const Problem& p = graph_.problem;
  if (keys.size() > 2) {
    each_reader(keys[2], [&](std::int32_t r) {
      prefetch(p.read_txn.data() + r);
      prefetch(pruner_.own_writer.data() + r);
    });
    for (const std::int32_t r : open_reads(keys[2])) {
      prefetch(p.candidate_start.data() + r);
      prefetch(pruner_.source.data() + r);
    }
  }
  if (keys.size() > 1) {
    each_node(keys[1], [&](Node v) { clocks_.prefetch_place(v); });
    for (const std::int32_t r : open_reads(keys[1])) {
      prefetch(p.candidate.data() + p.candidate_start[idx(r)]);
      prefetch(pruner_.alive.data() + p.candidate_start[idx(r)]);
    }
  }
  if (!keys.empty()) each_node(keys[0], [&](Node v) { clocks_.prefetch_row(v); });
}

std::span<const std::int32_t> KeyPruner::open_reads(std::int32_t key) const {
  return graph_.uses_reads ? some(pruner_.open_reads_.of(key)) : std::span<const std::int32_t>();
}

template <typename Visit>
void KeyPruner::each_reader(std::int32_t key, Visit visit) const {
  if (graph_.uses_orders) {
    const auto start = [&](std::int32_t k) {
      return static_cast<std::size_t>(pruner_.readers_.start[idx(graph_.problem.key_start[idx(k)])]);
    };
    const auto readers = std::span(pruner_.readers_.item).subspan(start(key), start(key + 1) - start(key));
    std::ranges::for_each(some(readers), visit);
  }
  std::ranges::for_each(open_reads(key), visit);
}

template <typename Visit>
void KeyPruner::each_node(std::int32_t key, Visit visit) const {
  each_reader(key, [&](std::int32_t r) {
    for (const Row& row : rw_rows_)
      visit(graph_.node(idx(row.check), graph_.problem.read_txn[idx(r)], row.state));
  });
  for (const std::int32_t w : some(pairs_.writers(key)))
    for (const Target& target : targets_) visit(node_of(target.check, target.state, w));
}

void KeyPruner::load(std::int32_t key) {
  key_ = key;
  writers_ = pairs_.writers(key);
  for (auto* bits : {&forced_, &hidden_, &behind_}) bits->resize(pairs_.words(key));
  lowest_.assign(writers_.size(), std::numeric_limits<std::int32_t>::max());
  for (Target& target : targets_) {
    target.marks.resize(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      const Node node = node_of(target.check, target.state, writers_[i]);
      target.marks[i] = clocks_.mark(node);
      lowest_[i] = std::min(lowest_[i], clocks_.rank(node));
    }
  }
  for (std::size_t i = 1; i < lowest_.size(); ++i) lowest_[i] = std::min(lowest_[i], lowest_[i - 1]);
}

std::size_t KeyPruner::first_before(std::int32_t rank) const {
  const auto later = [&](std::int32_t least) { return least > rank; };
  return static_cast<std::size_t>(std::ranges::partition_point(lowest_, later) - lowest_.begin());
}

std::uint64_t KeyPruner::writers_from(std::size_t first, std::size_t word) const {
  const std::size_t begin = word * 64, count = writers_.size() - begin;
  const std::uint64_t present = count < 64 ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
  return first > begin ? present & (~std::uint64_t{0} << (first - begin)) : present;
}

Node KeyPruner::node_of(std::int32_t check, std::int32_t state, std::int32_t writer) const {
  return check < 0 ? graph_.order_node(writer) : graph_.node(idx(check), graph_.problem.writer_txn[idx(writer)], state);
}

}  // namespace isolang
