#include "engine/prune.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/parallel.hpp"
#include "core/prefetch.hpp"
#include "engine/key_pruner.hpp"
#include "engine/short_cycle.hpp"
#include "engine/topological_order.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int32_t kMaxPasses = 8;
constexpr std::size_t kAhead = 24;  // candidates
constexpr std::int32_t kLarge = 5000, kWorth = 20;  // nodes; nodes for each conclusion
constexpr std::size_t kManyChains = 256;
constexpr std::size_t kPart = 2000;  // writers and reads: long enough for a thread to pay, short enough to share out

}  // namespace

Pruner::Pruner(EventGraph& g, Budget& budget, std::size_t max_clock_bytes, std::size_t threads)
    : graph(g),
      budget_(budget),
      max_clock_bytes_(max_clock_bytes),
      threads_(threads),
      pairs_(g.problem),
      open_(static_cast<std::int64_t>(g.problem.candidate.size())) {
  const Problem& p = g.problem;
  source.assign(idx(p.reads()), -1);
  alive.assign(p.candidate.size(), 1);
  struck_by.assign(p.candidate.size(), kContradictory);
  struck_in.assign(p.candidate.size(), 0);
  resolved_in.assign(idx(p.reads()), 0);
  inclusion = p.inclusion;
  included_by.assign(inclusion.size(), -1);
  key_of_.resize(p.writer_txn.size());
  restless_.assign(idx(p.keys), 1);
  for (std::int32_t key = 0; key < p.keys; ++key)
    std::fill(key_of_.begin() + p.key_start[idx(key)], key_of_.begin() + p.key_start[idx(key) + 1], key);
  find_own_writers();
  first_read_.assign(idx(p.n) + 2, 0);
  for (const std::int32_t t : p.read_txn) ++first_read_[idx(t) + 1];
  std::partial_sum(first_read_.begin(), first_read_.end(), first_read_.begin());
  direct_ = std::ranges::any_of(g.automata, &Automaton::direct);
  if (direct_) find_session_writers();
  constexpr auto optional = static_cast<std::uint8_t>(Inclusion::optional);
  one_by_one_ = direct_ || std::ranges::find(inclusion, optional) != inclusion.end();
  if (!g.uses_reads) return;
  for (std::int32_t r = 0; r < p.reads() && !p.impossible.empty(); ++r)
    for (const std::size_t i : p.candidates(r))
      if (std::ranges::binary_search(p.impossible, p.writer_txn[idx(p.candidate[i])])) {
        alive[i] = 0;
        struck_by[i] = kContradictory;
      }
  std::size_t wr_steps = 0;
  for (const Automaton& m : g.automata) wr_steps += m.of(Relation::wr).size();
  g.edges.reserve(g.edges.size() + idx(p.reads()) * wr_steps + p.writer_txn.size());  // most of what there will be
  // Writers are far apart in a large history: fetched before they are needed.
  const auto first_candidate = [&](std::int32_t r) { return static_cast<std::size_t>(p.candidate_start[idx(r)]); };
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    if (const auto ahead = first_candidate(r) + kAhead; ahead < p.candidate.size())
      prefetch(&p.writer_txn[idx(p.candidate[ahead])]);
    const std::size_t first = first_candidate(r);
    if (first_candidate(r + 1) - first == 1 && included_reader(r) && alive[first])
      resolve(r, p.candidate[first], g.edges);
  }
  open_reads_ = group_by(
      p.keys, idx(p.reads()), [&](std::size_t r) { return source[r] < 0 ? p.read_key[r] : -1; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
}

bool Pruner::advance() {
  if (!settle()) return false;
  if (!std::exchange(begun_, true) && begin_directly()) return true;
  if (!pass()) return false;
  if (one_pass_) saturated = clocks.exact();  // else they may not have known of some way back
  done_ = one_pass_ || passes >= kMaxPasses || !worthwhile();
  return settle();
}

// Direct checks need no clocks, and a search may do without, too.
bool Pruner::begin_directly() {
  // Without an ambiguous read, and without rw edges or ways back by ww, one pass finds all that follows, and every
  // version order that contains it will do.
  const auto free_of_orders = [](const Automaton& m) {
    return m.of(Relation::rw).empty() && (m.back.empty() || m.of(Relation::ww).empty());
  };
  const bool fixed = std::ranges::none_of(source, [](std::int32_t s) { return s < 0; });
  const bool free = graph.forbids_ways_back && std::ranges::all_of(graph.automata, free_of_orders);
  one_pass_ = fixed && free;
  if (!free || std::ranges::any_of(graph.automata, [](const Automaton& m) { return !m.back.empty(); })) return false;
  const auto none = [](std::size_t) { return -1; };
  clocks.build(group_by(graph.nodes(), 0, none, none), nullptr, order, false, 0, budget_);
  done_ = saturated = one_pass_;
  return true;
}

// Whether another pass is likely to find enough.
bool Pruner::worthwhile() {
  if (gained_ == 0) return false;
  // Another pass over a large graph would take longer than the search will for what it would find.
  const bool little = gained_ * 50 < open_ || (graph.nodes() > kLarge && gained_ * kWorth < graph.nodes());
  if (passes >= 3 && little) return false;
  open_ = std::max<std::int64_t>(gained_, 1000);
  return true;
}

bool Pruner::settle() { return prune_direct() && sort(); }

bool Pruner::sort() {
  const auto& edges = graph.edges;
  if (!order.empty() && sorted_ == edges.size()) return true;
  sorted_ = edges.size();
  successors_ = group_by(
      graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].from; },
      [&](std::size_t i) { return edges[i].to; });
  std::vector<std::int32_t> priority(idx(graph.nodes()));
  for (Node v = 0; v < graph.nodes(); ++v) priority[idx(v)] = graph.priority(v);
  order = topological_order(successors_, priority, budget_);
  if (order.size() < idx(graph.nodes())) {
    std::vector<std::uint8_t> left_out(idx(graph.nodes()), 0);
    for (const Node v : order) left_out[idx(v)] = 1;
    for (Node v = 0; v < graph.nodes() && !graph.every_check_judges; ++v)
      left_out[idx(v)] |= static_cast<std::uint8_t>(!graph.judges(v));  // its cycles are elsewhere, too
    cycle = short_cycle(edges, left_out, budget_);
    return false;
  }
  rank.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[idx(order[i])] = static_cast<std::int32_t>(i);
  return true;
}

bool Pruner::pass() {
  ++passes;
  gained_ = 0;
  const Problem& p = graph.problem;
  // Chains go by the edges known first, which are those of sessions; once there are few, no cover will be much better.
  std::optional<Adjacency> by_number;
  if (passes <= 2 || clocks.chains() > kManyChains) {
    const auto& edges = graph.edges;
    by_number = group_by(
        graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].to; },
        [&](std::size_t i) { return edges[i].from; });
  }
  clocks.build(reversed(successors_, order), by_number ? &*by_number : nullptr, order, true, max_clock_bytes_, budget_);
  if (graph.guesses_priorities()) graph.set_priorities(clocks.middles());
  note_changes();
  epochs.push_back(static_cast<std::uint32_t>(graph.edges.size()));
  readers_ = latest_readers();
  if (passes == 1 && graph.uses_orders) pairs_.sort([&](std::int32_t w) { return rank[idx(graph.order_node(w))]; });
  const bool every_read = std::exchange(every_read_, false) || direct_;  // what is direct needs no change of the clocks
  std::vector<std::int32_t> keys;
  for (std::int32_t key = 0; key < p.keys; ++key)
    if (left_to_do(key)) keys.push_back(key);
  return prune_keys(keys, every_read);
}

bool Pruner::left_to_do(std::int32_t key) const {
  if (graph.uses_reads && !open_reads_.of(key).empty()) return true;
  // Where the order of every pair is known, all that might still be found out is a cycle of known edges.
  return graph.uses_orders && (restless_[idx(key)] != 0 || graph.forbids_ways_back || !pairs_.decided(key));
}

// In parts of a few keys each, by several threads. What they find is put together in the order of the keys, so that
// neither edges nor contradictions depend on who found them when.
bool Pruner::prune_keys(std::span<const std::int32_t> keys, bool every_read) {
  const auto work = [&](std::size_t i) {
    const std::int32_t key = keys[i];
    return 1 + pairs_.writers(key).size() + (graph.uses_reads ? open_reads_.of(key).size() : 0);
  };
  const std::size_t least = one_by_one_ ? std::numeric_limits<std::size_t>::max() : kPart;
  const auto cuts = cut_into_parts(keys.size(), least, work);
  const std::size_t parts = cuts.size() - 1;
  std::vector<KeyPruner> workers(std::min(threads_, parts), KeyPruner(*this));
  std::vector<Findings> findings(parts);
  const auto prune = [&](std::size_t worker, std::size_t part, Budget& budget) {
    for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) {
      workers[worker].fetch(keys.subspan(i + 1));
      if (!workers[worker].prune(keys[i], every_read, budget, findings[part])) return false;
    }
    return true;
  };
  const std::size_t failed = in_parts(parts, workers.size(), budget_, prune);
  findings.resize(std::min(parts, failed + 1));
  std::size_t fresh = 0;
  for (const Findings& found : findings) fresh += found.edges.size();
  graph.edges.reserve(graph.edges.size() + fresh);
  for (Findings& found : findings) {
    graph.edges.insert(graph.edges.end(), found.edges.begin(), found.edges.end());
    found.edges = {};
    gained_ += found.gained;
    forced_orders += found.forced_orders;
    struck_sources += found.struck_sources;
    closed = found.closed;
    orphan = found.orphan;
  }
  return failed == parts;
}

// What may have changed since the last pass, per transaction: the clocks of one of its nodes.
void Pruner::note_changes() {
  const Problem& p = graph.problem;
  changed_.assign(idx(p.n + 1), 0);
  for (std::size_t c = 0; c < graph.automata.size(); ++c) {
    if (graph.automata[c].direct()) continue;  // no nodes
    for (std::int32_t t = 0; t <= p.n; ++t)
      for (std::int32_t q = 0; q < graph.automata[c].states; ++q)
        changed_[idx(t)] |= static_cast<std::uint8_t>(clocks.changed(graph.node(c, t, q)));
  }
  if (graph.has_version_nodes())
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(p.writer_txn.size()); ++w)
      changed_[idx(p.writer_txn[idx(w)])] |= static_cast<std::uint8_t>(clocks.changed(graph.order_node(w)));
}

bool Pruner::is_quiet_writer(std::int32_t writer) const {
  const Problem& p = graph.problem;
  return changed_[idx(p.writer_txn[idx(writer)])] == 0 && std::ranges::all_of(readers_.of(writer), [&](std::int32_t r) {
           return changed_[idx(p.read_txn[idx(r)])] == 0;
         });
}

// Nothing about the key's writers and their readers has changed: another look at them would find nothing.
bool Pruner::is_quiet(std::int32_t key) const {
  if (restless_[idx(key)] != 0) return false;
  for (std::int32_t w = graph.problem.key_start[idx(key)]; w < graph.problem.key_start[idx(key) + 1]; ++w)
    if (!is_quiet_writer(w)) return false;
  return true;
}

Impossible Pruner::because(const Edge& closing, const std::optional<Edge>& back) {
  if (!back) return {closing, epoch()};
  backs.push_back(*back);
  return {closing, epoch(), static_cast<std::int32_t>(backs.size()) - 1};
}

void Pruner::resolve(std::int32_t r, std::int32_t writer, std::vector<Edge>& added) {
  source[idx(r)] = writer;
  resolved_in[idx(r)] = static_cast<std::uint8_t>(passes);
  if (direct_) resolved_txn_[idx(graph.problem.read_txn[idx(r)])] = 1;
  if (passes > 0) {  // nothing is settled before, and every key is restless
    restless_[idx(key_of(writer))] = 1;
    pairs_.unsettle(key_of(writer), writer);
  }
  graph.wr_edges(r, writer, [&](const Edge& e) { added.push_back(e); });
  const std::int32_t txn = graph.problem.writer_txn[idx(writer)];
  if (inclusion[idx(txn)] == static_cast<std::uint8_t>(Inclusion::optional)) {
    inclusion[idx(txn)] = static_cast<std::uint8_t>(Inclusion::in);
    included_by[idx(txn)] = r;
    gained_ = std::max<std::int64_t>(gained_, 1);
    every_read_ = true;  // in the next pass, as its own reads are to be judged now
  }
}

bool Pruner::settled(std::int32_t key) const {
  return restless_[idx(key)] == 0 && pairs_.decided(key) && pairs_.is_settled(key);
}

Pruner::Pairs Pruner::pairs() {
  Pairs found;
  KeyPruner worker(*this);
  for (std::int32_t key = 0; graph.uses_orders && key < graph.problem.keys; ++key)
    worker.list_pairs(key, budget_, found);
  return found;
}

void Pruner::find_own_writers() {
  const Problem& p = graph.problem;
  own_writer.assign(idx(p.reads()), -1);
  writers_by_txn_ = group_by(
      p.n + 1, p.writer_txn.size(), [&](std::size_t w) { return p.writer_txn[w]; },
      [](std::size_t w) { return static_cast<std::int32_t>(w); });
  for (std::int32_t r = 0; r < p.reads(); ++r) own_writer[idx(r)] = write_of(p.read_txn[idx(r)], p.read_key[idx(r)]);
}

std::int32_t Pruner::write_of(std::int32_t txn, std::int32_t key) const {
  const auto written = writers_of(txn);  // ascending, hence by key
  const auto it = std::ranges::lower_bound(written, key, {}, [&](std::int32_t w) { return key_of(w); });
  return it != written.end() && key_of(*it) == key ? *it : -1;
}

std::size_t Pruner::candidates_left(std::int32_t read) const {
  std::size_t count = 0;
  for (const std::size_t i : graph.problem.candidates(read)) count += alive[i];
  return count;
}

std::size_t Pruner::open_candidates() const {
  std::size_t count = 0;
  for (std::int32_t r = 0; r < graph.problem.reads(); ++r)
    if (source[idx(r)] < 0) count += candidates_left(r);
  return count;
}

// The latest reader of each writer first: its rw edge then covers those of most others. What is put down in the order
// in which it happened is near to what is put down next.
Adjacency Pruner::latest_readers() const {
  const auto ranked = std::ranges::find_if_not(graph.automata, &Automaton::direct);
  if (ranked == graph.automata.end()) return readers();  // no reader has a node
  const auto check = static_cast<std::size_t>(ranked - graph.automata.begin());
  const Problem& p = graph.problem;
  Adjacency latest = room_by(static_cast<std::int32_t>(p.writer_txn.size()), source.size(),
                             [&](std::size_t r) { return source[r]; });
  Filling filling(latest);
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::int32_t t = graph.transaction_of(order[i]);
    if (t < 0 || t == p.n || graph.node(check, t, 0) != order[i]) continue;
    for (const std::int32_t r : reads_of(t))
      if (source[idx(r)] >= 0) filling.put(source[idx(r)], r);
  }
  return latest;
}

Adjacency Pruner::readers() const {
  return group_by(
      static_cast<std::int32_t>(graph.problem.writer_txn.size()), source.size(),
      [&](std::size_t r) { return source[r]; }, [](std::size_t r) { return static_cast<std::int32_t>(r); });
}

}  // namespace isolang
