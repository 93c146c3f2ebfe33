// `Pruner::advance` makes one pass: it computes the clocks of the known edges, has KeyPruner prune
// the keys that may have changed, and adds the conclusions as known edges. Passes end at a
// fixpoint, or when another pass is likely to gain little. Direct checks (RC, RA) need no clocks.
#include "engine/prune/pruner.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/index.hpp"
#include "core/parallel.hpp"
#include "core/prefetch.hpp"
#include "engine/graph/short_cycle.hpp"
#include "engine/graph/topological_order.hpp"
#include "engine/prune/key_pruner.hpp"

namespace isolang {
namespace {

// mutant: no-pass
constexpr std::int32_t kMaxPasses = 8;
constexpr int kSweeps = 8;  // a sweep over the graph costs much less than a pass
// How many edges a sweep visits at most. The cycles of the first one become the refutation, and are
// worth more effort than those that only say which assumed orders to withdraw.
constexpr std::int64_t kFirstSweep = 2'000'000, kOtherSweep = 100'000, kVisitsOfEdge = 16;
constexpr std::size_t kPrefetchedCandidates = 24;                  // number of candidates
constexpr std::int32_t kPrefetchedTransactions = 2;
// In a graph with more nodes than this, another pass must promise a conclusion per
// kNodesPerConclusion nodes.
constexpr std::int32_t kLargeGraph = 5000, kNodesPerConclusion = 20;
constexpr std::size_t kManyChains = 256;
// If a key has more writers than this, in total or for each chain, chains take less time than rows.
constexpr std::size_t kMaxWritersInRows = 8192, kWritersPerChain = 16;
constexpr std::size_t kMinPartWeight =
    2000;  // writers and reads: enough work to pay for a thread, but little enough to distribute
// From this many writes per read on, it takes less work to look up the keys of the reads among the
// writes.
constexpr std::size_t kWritesPerRead = 4;
// At first there is room for an edge of every read, and for one of every so many writers. Where most reads have one
// source, few more edges become known.
constexpr std::size_t kWritersPerEdge = 8;

}  // namespace

Pruner::Pruner(EventGraph& g, Budget& budget, std::size_t max_clock_bytes, std::size_t threads)
    : graph(g),
      budget_(budget),
      // ablation: no-clocks
      max_clock_bytes_(max_clock_bytes),
      threads_(threads),
      pairs_(g.problem),
      orders_compose_(orders_compose(g)),
      open_(static_cast<std::int64_t>(g.problem.candidate.size())) {
  const Problem& p = g.problem;
  source.assign(idx(p.reads()), -1);
  alive.assign(p.candidate.size(), 1);
  eliminated_by = Zeros<std::int32_t>(p.candidate.size());
  eliminated_in = Zeros<std::uint8_t>(p.candidate.size());
  resolved_in = Zeros<std::uint8_t>(idx(p.reads()));
  inclusion = p.inclusion;
  included_by.assign(inclusion.size(), -1);
  key_of_.resize(p.writer_txn.size());
  restless_.assign(idx(p.keys), 1);
  for (std::int32_t key = 0; key < p.keys; ++key)
    std::fill(key_of_.begin() + p.key_start[key], key_of_.begin() + p.key_start[key + 1], key);
  find_own_writers();
  first_read_.assign(idx(p.n) + 2, 0);
  for (const std::int32_t t : p.read_txn) ++first_read_[t + 1];
  std::partial_sum(first_read_.begin(), first_read_.end(), first_read_.begin());
  direct_ = std::ranges::any_of(g.automata, &Automaton::of_one_pair);
  if (direct_) find_session_writers();
  constexpr auto optional = static_cast<std::uint8_t>(Inclusion::optional);
  one_by_one_ = direct_ || std::ranges::find(inclusion, optional) != inclusion.end();
  if (!g.uses_reads) return;
  for (std::int32_t r = 0; r < p.reads() && !p.impossible.empty(); ++r)
    for (const std::size_t i : p.candidates(r))
      // mutant: impossible-candidate
      if (std::ranges::binary_search(p.impossible, p.writer_txn[p.candidate[i]])) {
        alive[i] = 0;  // kContradictory
      }
  std::size_t wr_steps = 0;
  for (const Automaton& m : g.automata) wr_steps += m.of(Relation::wr).size();
  g.edges.reserve(g.edges.size() + idx(p.reads()) * wr_steps + p.writer_txn.size() / kWritersPerEdge);
  // In a large history, writers are scattered in memory, so they are prefetched.
  const auto first_candidate = [&](std::int32_t r) { return idx(p.candidate_start[r]); };
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    if (const auto ahead = first_candidate(r) + kPrefetchedCandidates; ahead < p.candidate.size())
      prefetch(&p.writer_txn[p.candidate[ahead]]);
    const std::size_t first = first_candidate(r);
    if (first_candidate(r + 1) - first == 1 && included_reader(r) && alive[first])
      resolve(r, p.candidate[first], g.edges);
  }
  find_open_reads();
}

void Pruner::find_open_reads() {
  const Problem& p = graph.problem;
  open_reads_ = group_by(
      p.keys, idx(p.reads()),
      [&](std::size_t r) { return source[r] < 0 && !deferred(r) ? p.read_key[r] : -1; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
}

void Pruner::defer_predicate_reads() {
  deferring_ = graph.uses_reads && !graph.problem.read_predicate.empty();
  if (deferring_) find_open_reads();
}

void Pruner::take_up_predicate_reads() {
  if (!std::exchange(deferring_, false)) return;
  find_open_reads();
  every_read_ = true;
  done_ = false;
}

bool Pruner::advance() {
  if (!settle()) return false;
  if (!std::exchange(begun_, true) && begin_directly()) return true;
  if (!pass()) return false;
  // mutant: one-pass
  done_ = passes >= kMaxPasses || !worthwhile();
  return settle();
}

// Replaces the first pass if the search can begin without clocks. Direct checks need none. Without
// an ambiguous read, and without rw edges or return paths by ww, every version order that is free of
// closed return paths is correct, and the search finds the closed ones faster than clocks would: the
// order of the known edges already excludes most of them.
bool Pruner::begin_directly() {
  const auto free_of_orders = [](const Automaton& m) {
    return m.of(Relation::rw).empty() && (m.back.by_rw.empty() || m.of(Relation::ww).empty()) &&
           m.back.by_wr.empty() && !m.of_components();
  };
  const bool fixed = std::ranges::none_of(source, [](std::int32_t s) { return s < 0; });
  const bool of_product = std::ranges::any_of(graph.automata, &Automaton::of_product);
  if (!graph.forbids_return_paths || !std::ranges::all_of(graph.automata, free_of_orders) ||
      (of_product && !fixed))
    return false;
  const auto none = [](std::size_t) { return -1; };
  clocks.build(group_by(graph.nodes(), 0, none, none), nullptr, order, false, 0, budget_);
  done_ = fixed;
  // mutant: direct-saturated
  saturated = fixed && !of_product;
  return true;
}

// Returns true if another pass is likely to draw enough conclusions to be worth its cost.
bool Pruner::worthwhile() {
  if (gained_ == 0) return false;
  // Another pass over a large graph would take longer than the search takes for the same choices.
  const bool little =
      gained_ * 50 < open_ || (graph.nodes() > kLargeGraph && gained_ * kNodesPerConclusion < graph.nodes());
  if (passes >= 3 && little) return false;
  open_ = std::max<std::int64_t>(gained_, 1000);
  return true;
}

bool Pruner::settle() { return prune_direct() && sort(); }

bool Pruner::sort() {
  const auto& edges = graph.edges;
  // mutant: not-sorted-anew
  if (!order.empty() && sorted_ == edges.size()) return true;
  sorted_ = edges.size();
  successors_ = group_by(
      graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].from; },
      [&](std::size_t i) { return edges[i].to; });
  std::vector<std::int32_t> priority(idx(graph.nodes()));
  // A transaction that may have had no effect comes last, where it contradicts no read. Most of
  // those with an effect have a certain reader after the first pass.
  const auto optional = [&](std::int32_t t) {
    return t >= 0 && inclusion[t] == static_cast<std::uint8_t>(Inclusion::optional);
  };
  for (Node v = 0; v < graph.nodes(); ++v) {
    const std::int32_t w = graph.writer_of(v);
    const std::int32_t t = w >= 0 ? graph.problem.writer_txn[w] : graph.transaction_of(v);
    priority[v] = optional(t) ? graph.nodes() : graph.priority(v);
  }
  order = topological_order(successors_, priority, budget_);
  if (order.size() < idx(graph.nodes())) {
    find_cycles(1);
    return false;
  }
  rank.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int32_t>(i);
  return true;
}

void Pruner::find_cycles(std::size_t enough) {
  std::vector<std::uint8_t> left_out(idx(graph.nodes()), 0);
  for (const Node v : order) left_out[v] = 1;
  for (Node v = 0; v < graph.nodes() && !graph.every_check_judges; ++v)
    // The cycles of this node are cycles of other checks, too.
    left_out[v] |= static_cast<std::uint8_t>(!graph.judges(v));
  const auto leave_out = [&](const std::vector<std::int32_t>& cycle) {
    for (const std::int32_t e : cycle)
      if (const Node v = graph.edges[e].from; graph.transaction_of(v) >= 0) left_out[v] = 1;
  };
  std::ranges::for_each(cycles, leave_out);
  const bool assumes = std::ranges::any_of(
      graph.automata, [](const Automaton& m) { return m.so_is_assumed || m.rt_is_assumed; });
  for (; sweeps_ < kSweeps && cycles.size() < enough; ++sweeps_) {
    const std::int64_t effort = sweeps_ == 0 && !assumes
                                    ? kFirstSweep
                                    : kOtherSweep + kVisitsOfEdge * std::ssize(graph.edges);
    auto found = short_cycles(graph.edges, left_out, effort, budget_);
    if (found.empty()) break;
    for (auto& cycle : found) {
      leave_out(cycle);
      cycles.push_back(std::move(cycle));
    }
  }
}

bool Pruner::pass() {
  ++passes;
  gained_ = 0;
  const Problem& p = graph.problem;
  // Chains follow the edges that became known first: those of sessions. Once there are few chains,
  // no other cover is much better.
  std::optional<Adjacency> by_number;
  // ablation: late-chains
  if (passes <= 2 || clocks.chains() > kManyChains) {
    const auto& edges = graph.edges;
    by_number = group_by(
        graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].to; },
        [&](std::size_t i) { return edges[i].from; });
  }
  clocks.build(reversed(successors_, order), by_number ? &*by_number : nullptr, order, true,
               max_clock_bytes_, budget_);
  // ablation: no-middles
  if (graph.guesses_priorities()) graph.set_priorities(clocks.middles());
  note_changes();
  epochs.push_back(static_cast<std::uint32_t>(graph.edges.size()));
  readers_ = latest_readers();
  if (passes == 1) allocate_rows();
  if (passes == 1 && graph.uses_orders)
    pairs_.sort([&](std::int32_t w) { return rank[graph.order_node(w)]; });
  // Direct checks do not depend on changes of the clocks.
  const bool every_read =
      std::exchange(every_read_, false) || direct_;
  std::vector<std::int32_t> keys;
  for (std::int32_t key = 0; key < p.keys; ++key)
    if (left_to_do(key)) keys.push_back(key);
  return prune_keys(keys, every_read);
}

// Decides which keys are pruned by rows of bits, and which by chains. A row takes time and memory
// for each pair of writers, but it also shows quickly which sources of a read are overwritten.
void Pruner::allocate_rows() {
  const Problem& p = graph.problem;
  std::vector<std::uint8_t> ambiguous(idx(p.keys), 0);
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (source[r] < 0) ambiguous[p.read_key[r]] = 1;
  const std::size_t few = std::min(kMaxWritersInRows, clocks.chains() * kWritersPerChain);
  std::vector<std::int32_t> keys;
  for (std::int32_t key = 0; key < p.keys; ++key)
    if (pairs_.writers(key).size() <= (orders_compose_ && ambiguous[key] == 0 ? few : kMaxWritersInRows))
      keys.push_back(key);
  pairs_.allocate_rows(keys);
}

bool Pruner::left_to_do(std::int32_t key) const {
  if (graph.uses_reads && !open_reads_.of(key).empty()) return true;
  // If the order of every pair is known, only a cycle of known edges may remain to be found.
  return graph.uses_orders &&
         (restless_[key] != 0 || graph.forbids_return_paths || !pairs_.decided(key));
}

// Prunes the keys in small parts, on several threads. The findings are joined in the order of the
// keys, because neither edges nor contradictions may depend on the order in which threads found
// them.
bool Pruner::prune_keys(std::span<const std::int32_t> keys, bool every_read) {
  const auto work = [&](std::size_t i) {
    const std::int32_t key = keys[i];
    return 1 + pairs_.writers(key).size() + (graph.uses_reads ? open_reads_.of(key).size() : 0);
  };
  // mutant: dependent-keys-shared
  const std::size_t least = one_by_one_ ? std::numeric_limits<std::size_t>::max() : kMinPartWeight;
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
    graph.edges.append(found.edges);
    found.edges = {};
    gained_ += found.gained;
    forced_orders += found.forced_orders;
    eliminated_sources += found.eliminated_sources;
    closed = found.closed;
    read_without_candidates = found.read_without_candidates;
  }
  // mutant: part-contradiction-forgotten
  return failed == parts;
}

// Marks the transactions for which something may have changed since the last pass, because the
// clocks of one of their nodes may have changed.
void Pruner::note_changes() {
  const Problem& p = graph.problem;
  changed_.assign(idx(p.n + 1), 0);
  for (Node v = 0; v < graph.end_of_places(); ++v)
    changed_[graph.transaction_of(v)] |= static_cast<std::uint8_t>(clocks.changed(v));
  if (graph.has_version_nodes())
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(p.writer_txn.size()); ++w)
      changed_[p.writer_txn[w]] |= static_cast<std::uint8_t>(clocks.changed(graph.order_node(w)));
}

bool Pruner::is_quiet_writer(std::int32_t writer) const {
  const Problem& p = graph.problem;
  return changed_[p.writer_txn[writer]] == 0 &&
         std::ranges::all_of(readers_.of(writer),
                             [&](std::int32_t r) { return changed_[p.read_txn[r]] == 0; });
}

// Returns true if nothing about the key's writers and their readers has changed. Pruning the key
// again would then find nothing.
bool Pruner::is_quiet(std::int32_t key) const {
  if (restless_[key] != 0) return false;
  for (std::int32_t w = graph.problem.key_start[key]; w < graph.problem.key_start[key + 1]; ++w)
    if (!is_quiet_writer(w)) return false;
  return true;
}

Impossible Pruner::because(const Edge& closing, const std::optional<Edge>& back) {
  if (!back) return {closing, epoch()};
  backs.push_back(*back);
  return {closing, epoch(), static_cast<std::int32_t>(backs.size()) - 1};
}

void Pruner::resolve(std::int32_t r, std::int32_t writer, Growing<Edge>& added) {
  source[r] = writer;
  if (passes > 0) resolved_in[r] = static_cast<std::uint8_t>(passes);
  if (direct_) resolved_txn_[graph.problem.read_txn[r]] = 1;
  // mutant: reader-adds-no-rw
  if (passes > 0) {  // before the first pass nothing is settled, and every key is restless
    restless_[key_of(writer)] = 1;
    pairs_.unsettle(key_of(writer), writer);
  }
  graph.wr_edges(r, writer, [&](const Edge& e) { added.push_back(e); });
  const std::int32_t txn = graph.problem.writer_txn[writer];
  if (inclusion[txn] == static_cast<std::uint8_t>(Inclusion::optional)) {
    // mutant: source-not-included
    inclusion[txn] = static_cast<std::uint8_t>(Inclusion::in);
    included_by[txn] = r;
    gained_ = std::max<std::int64_t>(gained_, 1);
    every_read_ = true;  // the next pass must examine the transaction's own reads
  }
}

bool Pruner::settled(std::int32_t key) const {
  return restless_[key] == 0 && pairs_.decided(key) && pairs_.is_settled(key);
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
  if (graph.forbids_return_paths) keys_by_txn_.resize(writers_by_txn_.item.size());
  for (std::size_t i = 0; i < keys_by_txn_.size(); ++i)
    keys_by_txn_[i] = key_of_[writers_by_txn_.item[i]];
  // For each key, the last transaction below that writes it, and its writer.
  std::vector<std::pair<std::int32_t, std::int32_t>> last(idx(p.keys), {-1, -1});
  std::int32_t reader = -1;
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    if (const std::int32_t t = p.read_txn[r]; t != reader) {
      reader = t;
      for (const std::int32_t w : writers_by_txn_.of(t)) last[key_of_[w]] = {t, w};
    }
    const auto [txn, writer] = last[p.read_key[r]];
    if (txn == reader) own_writer[r] = writer;
  }
}

std::int32_t Pruner::write_of(std::int32_t txn, std::int32_t key) const {
  const auto keys = keys_written_by(txn);  // ascending, as writers are numbered key by key
  const auto it = std::ranges::lower_bound(keys, key);
  return it != keys.end() && *it == key ? writers_of(txn)[idx(it - keys.begin())] : -1;
}

std::size_t Pruner::candidates_left(std::int32_t read) const {
  std::size_t count = 0;
  for (const std::size_t i : graph.problem.candidates(read)) count += alive[i];
  return count;
}

std::size_t Pruner::open_candidates() const {
  std::size_t count = 0;
  for (std::int32_t r = 0; r < graph.problem.reads(); ++r)
    if (source[r] < 0 && !deferred(idx(r))) count += candidates_left(r);
  return count;
}

// Lists the latest reader of each writer first, because its rw edge covers those of most other
// readers. Entries in this order are also stored close to each other.
Adjacency Pruner::latest_readers() const {
  const auto ranked = std::ranges::find_if_not(
      graph.automata, [](const Automaton& m) { return m.direct() || m.of_one_key(); });
  if (ranked == graph.automata.end()) return readers();  // no reader has a node
  const auto check = idx(ranked - graph.automata.begin());
  const Problem& p = graph.problem;
  Adjacency latest = room_by(static_cast<std::int32_t>(p.writer_txn.size()), source.size(),
                             [&](std::size_t r) { return source[r]; });
  Filling filling(latest);
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::int32_t t = graph.transaction_of(order[i]);
    // mutant: readers-forgotten
    if (t < 0 || t == p.n || graph.node(check, t, 0) != order[i]) continue;
    for (const std::int32_t r : reads_of(t))
      if (source[r] >= 0) filling.put(source[r], r);
  }
  return latest;
}

Adjacency Pruner::readers() const {
  return group_by(
      static_cast<std::int32_t>(graph.problem.writer_txn.size()), source.size(),
      [&](std::size_t r) { return source[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
}

// Direct checks: a single rw must not close a return path of one pair. They need no clocks, because
// the return paths to a read are among the other reads of its transaction and the writers before it
// in its session. This takes time linear in the reads, except for transactions of many reads
// (AWDIT: Møldrup, Pavlogiannis et al., PLDI 2025, who show the bound for RC and RA).

void Pruner::find_session_writers() {
  const Problem& p = graph.problem;
  resolved_txn_.assign(idx(p.n), 0);
  last_read_.assign(idx(p.keys), {-1, -1});
  read_before_.assign(idx(p.reads()), -1);
  if (std::ranges::none_of(graph.automata, [](const Automaton& m) { return m.back.so; })) return;
  session_writer_.assign(idx(p.reads()), -1);
  session_before_.assign(p.writer_txn.size(), -1);
  const auto by_session = group_by(
      p.sessions, idx(p.n), [&](std::size_t t) { return p.session[t]; },
      [](std::size_t t) { return static_cast<std::int32_t>(t); });
  std::vector<std::int32_t> last(idx(p.keys), -1), session_of(idx(p.keys), -1);
  for (std::int32_t session = 0; session < p.sessions; ++session)
    for (const std::int32_t t : by_session.of(session)) {
      if (p.inclusion[t] == static_cast<std::uint8_t>(Inclusion::out)) continue;
      const auto before = [&](std::int32_t key) {
        return session_of[key] == session ? last[key] : -1;
      };
      for (const std::int32_t r : reads_of(t)) session_writer_[r] = before(p.read_key[r]);
      if (p.unfinished[t] != 0) continue;  // it precedes nothing
      for (const std::int32_t w : writers_by_txn_.of(t)) {
        const std::int32_t key = key_of_[w];
        session_before_[w] = before(key);
        last[key] = w;
        session_of[key] = session;
      }
    }
}

// Orders writers for direct checks: for each read with a known source, the writers with a known
// return path to the read precede that source.
bool Pruner::prune_direct() {
  if (!direct_) return true;
  for (std::int32_t t = 0; t < graph.problem.n; ++t) {
    fetch_sources(t);
    if (std::exchange(resolved_txn_[t], std::uint8_t{0}) != 0 && !prune_direct(t)) return false;
  }
  return true;
}

// Prefetches the keys that the writers read by later transactions have written. They may be anywhere
// in memory, and each is found through another item, which is fetched first.
void Pruner::fetch_sources(std::int32_t txn) const {
  const Problem& p = graph.problem;
  const auto each_source = [&](std::int32_t distance, auto visit) {
    if (txn >= p.n - distance) return;
    for (const std::int32_t r : reads_of(txn + distance))
      if (source[r] >= 0) visit(source[r]);
  };
  each_source(3 * kPrefetchedTransactions, [&](std::int32_t w) { prefetch(&p.writer_txn[w]); });
  each_source(2 * kPrefetchedTransactions, [&](std::int32_t w) { prefetch(&writers_by_txn_.start[p.writer_txn[w]]); });
  each_source(kPrefetchedTransactions, [&](std::int32_t w) {
    const auto at = idx(writers_by_txn_.start[p.writer_txn[w]]);
    prefetch(keys_by_txn_.data() + at);
    prefetch(writers_by_txn_.item.data() + at);
  });
}

bool Pruner::prune_direct(std::int32_t txn) {
  const Problem& p = graph.problem;
  budget_.poll();
  for (const std::int32_t r : reads_of(txn)) last_read_[p.read_key[r]] = {-1, txn};
  for (const std::int32_t r : reads_of(txn))
    read_before_[r] = std::exchange(last_read_[p.read_key[r]].first, r);
  for (std::size_t c = 0; c < graph.automata.size(); ++c) {
    const Automaton& m = graph.automata[c];
    if (!m.direct()) continue;
    const Node here = graph.label(c, txn);
    const auto order = [&](std::int32_t r, std::int32_t b, Relation relation, std::int32_t other,
                           std::int32_t seen) {
      const Node there = graph.label(c, p.writer_txn[b]);
      return order_behind_source(b, {here, there, Relation::closing, r, source[r], b},
                                 {there, here, relation, other, seen, -1});
    };
    for (const std::int32_t other : reads_of(txn)) {
      const std::int32_t seen = source[other];
      if (m.back.so && seen >= 0)
        for (std::int32_t b = session_writer_[other]; b >= 0; b = session_before_[b]) {
          if (!order(other, b, Relation::so, -1, -1)) return false;
          if (graph.sessions_order_versions) break;  // this writer follows the ones before it
        }
      if (seen < 0 || initial(seen) || !(m.back.wr || m.back.earlier_wr)) continue;
      // The transaction's reads of this writer's keys returned what the writer wrote, or something
      // later.
      const auto binds = [&](std::int32_t r) {
        // mutant: later-read-binds
        return source[r] >= 0 && r != other && (m.back.wr || p.reads_first(other, r));
      };
      const auto written = writers_by_txn_.of(p.writer_txn[seen]);
      // The writer may write many more keys than the reader reads, for example if it fills a table.
      if (written.size() > kWritesPerRead * reads_of(txn).size()) {
        for (const std::int32_t r : reads_of(txn)) {
          const std::int32_t b = write_of(p.writer_txn[seen], p.read_key[r]);
          if (b >= 0 && binds(r) && !order(r, b, Relation::wr, other, seen)) return false;
        }
        continue;
      }
      const auto keys = keys_written_by(p.writer_txn[seen]);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto [last, of] = last_read_[keys[i]];
        for (std::int32_t r = of == txn ? last : -1; r >= 0; r = read_before_[r])
          if (binds(r) && !order(r, written[i], Relation::wr, other, seen)) return false;
      }
    }
  }
  return true;
}

// Orders the writer before the source of a read. `closing` is the rw pair from the read to the
// writer, and `back` is the return path from the writer.
bool Pruner::order_behind_source(std::int32_t writer, Edge closing, const Edge& back) {
  const Problem& p = graph.problem;
  const std::int32_t a = closing.a;
  if (writer == a || p.writer_txn[writer] == p.read_txn[closing.read]) return true;
  if (initial(a)) {
    closed = because(closing, back);
    return false;
  }
  if (!ordered_behind_.insert(writer, a)) return true;
  orders.push_back(
      {writer, a, static_cast<std::uint32_t>(graph.edges.size()), because(closing, back)});
  graph.ww_edges(writer, a, [&](const Edge& e) { graph.edges.push_back(e); });
  ++forced_orders;
  return true;
}

}  // namespace isolang
