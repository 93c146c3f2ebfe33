// `prune` first compares the writers of a key, by chains or by rows of bits, and then the
// candidates of its open reads. It queries the clocks of nodes that are scattered in memory, so
// `fetch` prefetches the data of the next keys.
#include "engine/prune/key_pruner.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "core/bits.hpp"
#include "core/index.hpp"
#include "core/prefetch.hpp"
#include "core/required.hpp"

namespace isolang {
namespace {

// Returns only the first items, because the caches could not hold more until they are needed.
std::span<const std::int32_t> some(std::span<const std::int32_t> items) {
  constexpr std::size_t kMaxItems = 256;
  return items.first(std::min(items.size(), kMaxItems));
}

// Cuts nodes into chains: by column, and by position within a column.
template <typename Visit>
void cut_into_chains(std::vector<KeyPruner::OnChain>& nodes, Visit visit) {
  const auto column = [](const KeyPruner::OnChain& node) { return node.mark.column; };
  std::ranges::sort(nodes, {}, [](const KeyPruner::OnChain& node) {
    return std::pair(node.mark.column, node.mark.position);
  });
  for (auto first = nodes.begin(); first != nodes.end();) {
    const auto last = std::find_if(first, nodes.end(), [&](const KeyPruner::OnChain& node) {
      return column(node) != column(*first);
    });
    visit(std::vector(first, last));
    first = last;
  }
}

}  // namespace

bool orders_compose(const EventGraph& graph) {
  using enum Relation;
  bool compose = true;
  for (const Automaton& m : graph.automata)
    // mutant: orders-always-compose
    // ablation: compare-every-pair
    compose &=
        !m.splits() && m.implied_by(ww, {ww, ww}) && m.implied_by(rw, {rw, ww}) && m.implied_by(rw, {ww});
  return compose;
}

KeyPruner::KeyPruner(Pruner& pruner)
    : pruner_(pruner),
      graph_(pruner.graph),
      clocks_(pruner.clocks),
      pairs_(pruner.pairs_),
      orders_compose_(pruner.orders_compose_),
      starts_(clocks_),
      reader_(clocks_) {
  using enum Relation;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
    const auto check = static_cast<std::int32_t>(c);
    const Automaton& m = graph_.automata[c];
    for (std::size_t i = 0; m.judges && i < m.of(ww).size(); ++i) {
      const auto [q, r] = m.of(ww)[i];
      ww_rows_.push_back({check, q, target_of(check, r, m.by_operation()), m.of_step(ww, i)});
    }
    for (std::size_t i = 0; m.judges && i < m.of(rw).size(); ++i) {
      const auto [q, r] = m.of(rw)[i];
      rw_rows_.push_back(
          {check, q, target_of(check, r), m.of_step(rw, i)});
    }
    for (const auto& [q, r] : m.back.by_rw)
      rw_rows_.push_back({check, q, target_of(check, r), m.back.rw_pairs});
  }
  if (graph_.has_version_nodes()) ww_rows_.push_back({-1, 0, target_of(-1, 0), kAllPairs});
}

std::size_t KeyPruner::target_of(std::int32_t check, std::int32_t state, bool at_write) {
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (targets_[i].check == check && targets_[i].state == state &&
        targets_[i].at_write == at_write)
      return i;
  targets_.push_back({check, state, at_write, {}});
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
    if (pruner_.source[r] >= 0) continue;
    if (quiet && !every_read && pruner_.changed_[graph_.problem.read_txn[r]] == 0) continue;
    if (key_ != key) load(key);
    if (!prune_read(r)) return false;
  }
  return true;
}

// Prefetches what later keys need. In a large history this data is scattered, and each item is
// found through another item: a read, its transaction, the transaction's place in the clocks, the
// row. Each of these items is therefore fetched one key before the next item is needed.
void KeyPruner::fetch(std::span<const std::int32_t> keys) const {
  if (graph_.nodes() < kPrefetchFrom) return;
  const Problem& p = graph_.problem;
  if (keys.size() > 2) {
    each_reader(keys[2], [&](std::int32_t r) {
      prefetch(p.read_txn.data() + r);
      prefetch(pruner_.own_writer.data() + r);
    });
    for (const std::int32_t r : open_reads(keys[2])) {
      if (!p.candidate_start.all_ordinal()) prefetch(p.candidate_start.data() + r);
      prefetch(pruner_.source.data() + r);
    }
  }
  if (keys.size() > 1) {
    each_node(keys[1], [&](Node v) { clocks_.prefetch_place(v); });
    for (const std::int32_t r : open_reads(keys[1])) {
      prefetch(p.candidate.data() + p.candidate_start[r]);
      prefetch(pruner_.alive.data() + p.candidate_start[r]);
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
      return idx(pruner_.readers_.start[graph_.problem.key_start[k]]);
    };
    const auto readers =
        std::span(pruner_.readers_.item).subspan(start(key), start(key + 1) - start(key));
    std::ranges::for_each(some(readers), visit);
  }
  std::ranges::for_each(open_reads(key), visit);
}

template <typename Visit>
void KeyPruner::each_node(std::int32_t key, Visit visit) const {
  each_reader(key, [&](std::int32_t r) {
    for (const Row& row : rw_rows_)
      visit(graph_.read_node(idx(row.check), r, row.state));
  });
  for (const std::int32_t w : some(pairs_.writers(key)))
    for (const Target& target : targets_) visit(node_of(target, w));
}

void KeyPruner::load(std::int32_t key) {
  key_ = key;
  writers_ = pairs_.writers(key);
  for (auto* bits : {&forced_, &hidden_, &behind_}) bits->resize(pairs_.words(key));
  lowest_.assign(writers_.size(), std::numeric_limits<std::int32_t>::max());
  for (Target& target : targets_) {
    target.marks.resize(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      const Node node = node_of(target, writers_[i]);
      target.marks[i] = clocks_.mark(node);
      lowest_[i] = std::min(lowest_[i], clocks_.rank(node));
    }
  }
  for (std::size_t i = 1; i < lowest_.size(); ++i)
    lowest_[i] = std::min(lowest_[i], lowest_[i - 1]);
}

std::size_t KeyPruner::first_before(std::int32_t rank) const {
  const auto later = [&](std::int32_t least) { return least > rank; };
  return idx(std::ranges::partition_point(lowest_, later) - lowest_.begin());
}

std::uint64_t KeyPruner::writers_from(std::size_t first, std::size_t word) const {
  const std::size_t begin = word * 64, count = writers_.size() - begin;
  const std::uint64_t present = count < 64 ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
  return first > begin ? present & (~std::uint64_t{0} << (first - begin)) : present;
}

Node KeyPruner::node_of(std::int32_t check, std::int32_t state, std::int32_t writer) const {
  return check < 0 ? graph_.order_node(writer)
                   : graph_.writer_node(idx(check), writer, state);
}

Node KeyPruner::node_of(const Target& target, std::int32_t writer) const {
  return target.at_write ? graph_.written_node(idx(target.check), writer, target.state)
                         : node_of(target.check, target.state, writer);
}

// Pruning of version orders: a writer precedes another writer of its key if the reverse order would
// close a cycle of known edges.

// Returns an edge of "a before b" that goes against a known path and thus makes this order
// impossible.
std::optional<Edge> KeyPruner::closing_order(std::int32_t a, std::int32_t b) const {
  std::optional<Edge> found;
  const auto test = [&](const Edge& e) {
    if (!found && clocks_.reaches(e.to, e.from) &&
        (e.relation == Relation::closing || graph_.judges(e.from)))
      found = e;
  };
  graph_.ww_edges(a, b, test);
  if (found) return found;
  for (const std::int32_t r : pruner_.readers_.of(a)) {
    graph_.rw_closings(r, a, b, test);
    if (found) return found;
  }
  return found;
}

// Returns one bit for each of 64 marks: whether its node reaches a node that raised the row.
std::uint64_t KeyPruner::reaching(const std::int32_t* row, const std::vector<Clocks::Mark>& marks,
                                  std::size_t word) {
  const Clocks::Mark* const mark = marks.data() + word * 64;
  const std::size_t count = std::min<std::size_t>(64, marks.size() - word * 64);
  std::uint64_t bits = 0;
  // mutant: seen-early
  for (std::size_t i = 0; i < count; ++i)
    bits |= std::uint64_t{row[mark[i].column] >= mark[i].position} << i;
  return bits;
}

// Finds the start nodes of the edges that would order `writer` before another writer, each with its
// target.
void KeyPruner::find_starts(std::int32_t writer) {
  starts_.begin(targets_.size());
  // mutant: versions-force-nothing
  for (const Row& row : ww_rows_)
    // mutant: versions-of-other-keys-force
    if ((row.pairs & graph_.pairs_of_writer(writer)) != 0)
      starts_.add(row.target, node_of(row.check, row.state, writer));
  for (const std::int32_t r : pruner_.readers_.of(writer))
    // mutant: readers-force-nothing
    for (const Row& row : rw_rows_)
      // mutant: predicate-reads-force-as-items
      if ((row.pairs & graph_.pairs_of_read(r)) != 0)
        starts_.add(row.target, graph_.read_node(idx(row.check), r, row.state));
}

// Sets bit i of forced_ if writers_[i] precedes `after`, because the reverse order would close a
// cycle.
void KeyPruner::mark_forced(std::int32_t after) {
  find_starts(after);
  std::ranges::fill(forced_, 0);
  for (std::size_t t = 0; t < targets_.size(); ++t)
    for (std::size_t word = 0; word < forced_.size(); ++word)
      forced_[word] |= reaching(starts_.row(t), targets_[t].marks, word);
  const auto clear = [&](std::int32_t writer) { clear_bit(forced_, pairs_.place(writer)); };
  clear(after);
  // rw leaves out the reader itself. A writer that has read from `after` may have its bit only
  // because of its own row.
  for (const std::int32_t r : pruner_.readers_.of(after))
    // mutant: own-write-overwrites
    if (const std::int32_t w = pruner_.own_writer[r];
        w >= 0 && is_forced(w) && !impossible_order(after, w))
      clear(w);
}

// Returns true if writers_[at] reaches a reader of `after` only because it is that reader itself,
// which rw leaves out.
bool KeyPruner::reached_only_as_reader(std::int32_t after, std::size_t at) const {
  const auto reads_and_overwrites = [&](std::int32_t r) {
    return pruner_.own_writer[r] == writers_[at];
  };
  return std::ranges::any_of(pruner_.readers_.of(after), reads_and_overwrites) &&
         !impossible_order(after, writers_[at]);
}

// Does the same as mark_forced, but leaves out each writer whose order before another forced writer
// is settled. The pair of the other writer and `after` then settles the pair of the omitted writer
// and `after`. The latest writers come first, so nearly all other writers are left out. A node of a
// higher rank than all starts reaches no start.
template <std::size_t kWords>
void KeyPruner::mark_latest_forced(std::size_t self) {
  const std::int32_t after = writers_[self];
  find_starts(after);
  const std::size_t words = kWords > 0 ? kWords : forced_.size();
  const std::uint64_t* const settled = settled_.data();
  std::uint64_t *const forced = forced_.data(), *const hidden = hidden_.data();
  std::fill_n(forced, words, 0);
  std::fill_n(hidden, words, 0);
  set_bit(hidden, self);
  const std::size_t first = first_before(starts_.top());
  for (std::size_t word = word_of(first); word < words; ++word) {
    std::uint64_t left = writers_from(first, word) & ~hidden[word];
    while (left != 0) {
      const std::size_t at = word * kWordBits + idx(std::countr_zero(left));
      left &= left - 1;
      const bool reached = starts_.reached([&](std::size_t t) { return targets_[t].marks[at]; });
      // mutant: owes-itself
      if (!reached || reached_only_as_reader(after, at)) continue;
      set_bit(forced, at);
      for (std::size_t k = word; k < words; ++k) hidden[k] |= settled[at * words + k];
      left &= ~hidden[word];
    }
  }
}

// Adds an edge to a node of the current writer, unless the clocks, or the edges just added to that
// node, imply it.
bool KeyPruner::keep_unless_implied(const Edge& e) {
  // ablation: no-reduction
  if (clocks_.reaches(e.from, e.to)) return false;
  auto cover = std::ranges::find(covered_, e.to, &Covered::node);
  if (cover == covered_.end()) cover = covered_.insert(cover, {e.to});
  if (cover->sources < Covered::kMaxSources) {
    const auto sources = std::span(cover->source).first(cover->sources);
    if (std::ranges::any_of(sources, [&](Node v) { return clocks_.reaches(e.from, v); }))
      return false;
    cover->source[cover->sources++] = e.from;
    findings_->edges.push_back(e);
    return true;
  }
  const std::size_t columns = clocks_.columns();
  if (cover_rows_.size() < covered_.size() * columns) cover_rows_.resize(covered_.size() * columns);
  const auto at = idx(cover - covered_.begin());
  const auto row = std::span(cover_rows_).subspan(at * columns, columns);
  if (cover->sources == Covered::kMaxSources) {
    std::ranges::fill(row, -1);
    for (const Node v : cover->source) clocks_.raise(row, v);
    budget_->spend(cover->source.size() * clocks_.polls_of_row());
    ++cover->sources;
  }
  const Clocks::Mark mark = clocks_.mark(e.from);
  // mutant: edge-skipped-early
  if (row[mark.column] >= mark.position) return false;
  clocks_.raise(row, e.from);
  budget_->spend(clocks_.polls_of_row());
  findings_->edges.push_back(e);
  return true;
}

// T0 precedes every writer, so no path may lead back to its readers. Returns false if one does.
bool KeyPruner::close_behind_initial(std::int32_t initial) {
  if (!graph_.forbids_return_paths || pruner_.readers_.of(initial).empty()) return true;
  mark_forced(initial);
  const auto closed_by =
      std::ranges::find_if(writers_, [&](std::int32_t w) { return is_forced(w); });
  if (closed_by == writers_.end()) return true;
  findings_->closed = pruner_.because(required(closing_order(initial, *closed_by), "pruning: the order that closes a path"));
  return false;
}

bool KeyPruner::prune_orders() {
  const bool restless = std::exchange(pruner_.restless_[key_], std::uint8_t{0}) != 0;
  if (writers_.size() < 2) return true;
  if (orders_compose_ && !pairs_.has_rows(key_)) {
    if (!close_behind_initial(graph_.problem.key_start[key_])) return false;
    order_by_chains();
    return true;
  }
  load_settled();
  // The earliest writer comes first, because the predecessors of later writers then already have
  // their predecessors settled.
  for (std::size_t self = writers_.size(); self-- > 0;) {
    const std::int32_t after = writers_[self];
    if (pruner_.initial(after)) {
      if (!close_behind_initial(after)) return false;
      continue;
    }
    // SOUND BECAUSE it only leaves out what would be found a second time: if the reverse of a known
    // order is impossible, then a known path goes against one of its edges, and the edges of the
    // known order close a cycle with that path. This does not hold if a return path may close
    // between writers whose order is known.
    const bool ordered = pairs_.open(after) == 0 && !graph_.forbids_return_paths;
    if (!restless && (ordered || pruner_.is_quiet_writer(after))) continue;
    // mutant: settled-unseen
    if (ordered && pairs_.is_settled(key_, after)) continue;
    budget_->poll();
    const bool latest = orders_compose_ && !settled_.empty();
    if (latest && forced_.size() == 1) {  // nearly every key
      mark_latest_forced<1>(self);
      order_behind<1>(self);
      continue;
    }
    if (latest)
      mark_latest_forced<0>(self);
    else
      mark_forced(after);
    order_behind<0>(self);
  }
  note_unsettled();
  return true;
}

// Orders many writers by the clock chains that contain their nodes. A writer precedes the later
// writers of its chain. If a target node reaches some node, the earlier nodes on its chain reach it
// too. It is therefore enough to know, for each chain, the last position from which a path leads to
// the current writer. This position only grows while the current writer advances along its own
// chain. The time taken is thus proportional to the number of writers times the number of chains,
// not to the number of pairs of writers.
//
// SOUND BECAUSE orders compose. An order of a and c is omitted if a path leads from a to b, and the
// edges of "b before c" exist. The edges of "a before b" also exist, or were omitted for the same
// reason with a writer between a and b, unless the known edges now have a cycle.
void KeyPruner::order_by_chains() {
  find_chains();
  std::vector<std::size_t> before(chain_start_.size() - 1), reached(strands_.size()), latest, met;
  std::int64_t pairs = 0;
  for (std::size_t own = 0; own + 1 < chain_start_.size(); ++own) {
    // For each other chain, how many of its writers precede the current writer.
    for (const std::size_t chain : met) before[chain] = 0;
    met.clear();
    std::ranges::fill(reached, std::size_t{0});  // on each strand, the number of nodes that reach the current writer
    std::size_t preceding = 0;
    for (std::size_t i = chain_start_[own]; i < chain_start_[own + 1]; ++i) {
      const bool first = i == chain_start_[own];
      const std::size_t self = on_chains_[i];
      const std::int32_t after = writers_[self];
      budget_->poll();
      find_starts(after);
      latest.clear();
      // mutant: chain-forgets-its-own
      if (!first) latest.push_back(on_chains_[i - 1]);
      for (std::size_t s = 0; s < strands_.size(); ++s) {
        const auto& [target, strand] = strands_[s];
        const std::size_t known = reached[s];
        for (std::size_t k = known; k < strand.size() && starts_.reached(target, strand[k].mark);
             ++k)
          // mutant: chain-owes-itself
          if (strand[k].at != self && !reached_only_as_reader(after, strand[k].at)) reached[s] = k + 1;
        if (reached[s] == known) continue;
        const std::size_t at = strand[reached[s] - 1].at, place = place_on_chains_[at];
        const std::size_t chain = chain_[at], count = place - chain_start_[chain] + 1;
        if (chain == own ? place < i : count <= before[chain]) continue;
        latest.push_back(at);
        if (chain == own) continue;
        met.push_back(chain);
        preceding += count - std::exchange(before[chain], count);
      }
      order_behind(latest, after, first);
      pairs += static_cast<std::int64_t>(preceding + i - chain_start_[own]);
    }
  }
  const auto count = static_cast<std::int64_t>(on_chains_.size());
  if (pairs >= count * (count - 1) / 2) pairs_.note_all(key_);
}

void KeyPruner::find_chains() {
  strands_.clear();
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    std::vector<OnChain> nodes;
    nodes.reserve(writers_.size());
    for (std::size_t at = 0; at < writers_.size(); ++at)
      if (clocks_.on_chain(node_of(targets_[t], writers_[at])) &&
          !pruner_.initial(writers_[at]))
        nodes.push_back({targets_[t].marks[at], at});
    cut_into_chains(nodes, [&](std::vector<OnChain> chain) {
      strands_.push_back({t, std::move(chain)});
    });
  }
  chain_.resize(writers_.size());
  place_on_chains_.resize(writers_.size());
  on_chains_.clear();
  chain_start_.assign(1, 0);
  const auto put = [&](std::size_t at) {
    chain_[at] = chain_start_.size() - 1;
    place_on_chains_[at] = on_chains_.size();
    on_chains_.push_back(at);
  };
  std::vector<OnChain> nodes;
  for (std::size_t at = 0; at < writers_.size(); ++at) {
    const Node node = graph_.order_node(writers_[at]);
    if (pruner_.initial(writers_[at])) continue;
    if (clocks_.on_chain(node)) {
      nodes.push_back({clocks_.mark(node), at});
    } else {
      put(at);
      chain_start_.push_back(on_chains_.size());
    }
  }
  cut_into_chains(nodes, [&](const std::vector<OnChain>& chain) {
    for (const OnChain& writer : chain) put(writer.at);
    chain_start_.push_back(on_chains_.size());
  });
}

// Adds the edges from the latest writers, and from T0 if requested, to the current writer. Leaves
// out the edges that a later writer implies.
void KeyPruner::order_behind(std::vector<std::size_t>& latest, std::int32_t after,
                             bool initial_too) {
  const std::size_t known = findings_->edges.size();
  const auto node = [&](std::size_t at) { return graph_.order_node(writers_[at]); };
  covered_.clear();
  const auto rank = [&](std::size_t at) { return clocks_.rank(node(at)); };
  while (!latest.empty()) {
    const std::size_t last = *std::ranges::max_element(latest, {}, rank);
    add_order(writers_[last], after);
    std::erase_if(latest, [&](std::size_t at) {
      return at == last || clocks_.reaches(node(at), node(last));
    });
  }
  if (initial_too) add_order(graph_.problem.key_start[key_], after);
  findings_->gained += static_cast<std::int64_t>(findings_->edges.size() - known);
}

// Adds the edges of "`before` before `after`", where `after` is the current writer.
void KeyPruner::add_order(std::int32_t before, std::int32_t after) {
  bool fresh = false;
  const auto add = [&](const Edge& e) { fresh |= keep_unless_implied(e); };
  graph_.ww_edges(before, after, add);
  // mutant: forced-no-rw
  for (const std::int32_t r : pruner_.readers_.of(before)) graph_.rw_edges(r, before, after, add);
  findings_->forced_orders += static_cast<std::int64_t>(fresh);
}

void KeyPruner::load_settled() {
  const auto precede = pairs_.precede(key_);
  const std::span<const std::uint64_t> unsettled = pairs_.unsettled(key_);
  settled_.resize(precede.size());
  for (std::size_t i = 0; i < precede.size(); i += unsettled.size())
    for (std::size_t k = 0; k < unsettled.size(); ++k)
      settled_[i + k] = precede[i + k] & ~unsettled[k];
}

void KeyPruner::note_unsettled() {
  const auto precede = pairs_.precede(key_);
  const auto unsettled = pairs_.unsettled(key_);
  for (std::size_t k = 0; k < unsettled.size(); ++k) {
    std::uint64_t word = 0;
    for (std::size_t i = k; i < precede.size(); i += unsettled.size())
      word |= precede[i] & ~settled_[i];
    unsettled[k] = word;
  }
}

// Adds the edges of "`before` before `after`" for every forced writer.
template <std::size_t kWords>
void KeyPruner::order_behind(std::size_t self) {
  const std::int32_t after = writers_[self];
  const std::size_t words = kWords > 0 ? kWords : forced_.size(), known = findings_->edges.size();
  const bool settles = kWords > 0 || !settled_.empty(), composes = kWords > 0 || orders_compose_;
  std::uint64_t *const forced = forced_.data(), *const behind = behind_.data(),
                       *const settled = settled_.data();
  const std::size_t initial = pairs_.place(graph_.problem.key_start[key_]);
  // mutant: initial-not-first
  set_bit(forced, initial);
  covered_.clear();
  std::fill_n(behind, words, 0);
  // The latest predecessors come first, because their edges imply the edges of most earlier
  // predecessors.
  for (std::size_t word = 0; word < words; ++word)
    while (const std::uint64_t left = forced[word] & ~behind[word]) {
      const std::size_t at = word * kWordBits + idx(std::countr_zero(left));
      const std::uint64_t bit = left & -left;
      behind[word] |= bit;
      if (settles) {
        for (std::size_t k = 0; k < words && composes; ++k) behind[k] |= settled[at * words + k];
        if ((settled[self * words + word] & bit) != 0) continue;
      }
      add_order(writers_[at], after);
    }
  if (settles) {
    for (std::size_t k = 0; k < words; ++k) settled[self * words + k] |= behind[k];
    pairs_.note(key_, after, behind_);
  }
  findings_->gained += static_cast<std::int64_t>(findings_->edges.size() - known);
}

void KeyPruner::list_pairs(std::int32_t key, Budget& budget, Pruner::Pairs& pairs) {
  load(key);
  std::vector<std::vector<std::uint64_t>> precede;  // per position j, the bits forced_ of writers_[j]
  for (const std::int32_t writer : writers_) {
    budget.poll();
    mark_forced(writer);
    precede.push_back(forced_);
  }
  for (std::size_t i = 0; i < writers_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (pruner_.initial(writers_[i]) || pruner_.initial(writers_[j])) continue;
      const bool up = has_bit(precede[j], i), down = has_bit(precede[i], j);
      auto& list = up || down ? pairs.settled : pairs.open;
      const bool i_first = up || (!down && writers_[i] < writers_[j]);
      list.push_back(writers_[i_first ? i : j]);
      list.push_back(writers_[i_first ? j : i]);
    }
}

// Pruning of reads with several candidate sources. A candidate is eliminated if its wr edge closes
// a cycle, or if another writer that the reader cannot have missed is known to follow the
// candidate.

// Finds the latest writers that certainly precede the reader in the sense of rw, so that it cannot
// have missed them. An earlier writer that precedes one of these adds nothing. `overwritten_` gets
// the writers that precede them.
void KeyPruner::find_seen(std::int32_t r) {
  seen_.clear();
  overwritten_.assign(words_for(writers_.size()), 0);
  const auto see = [&](const Seen& seen) {
    seen_.push_back(seen);
    const auto known = pairs_.precede(key_);
    if (known.empty()) mark_forced(seen.writer);
    const std::span<const std::uint64_t> row =
        known.empty()
            ? forced_
            : known.subspan(pairs_.place(seen.writer) * overwritten_.size(), overwritten_.size());
    std::ranges::transform(overwritten_, row, overwritten_.begin(), std::bit_or());
  };
  pruner_.direct_return_paths(
      r, [&](std::int32_t other) { return pruner_.source[other]; }, return_paths_);
  for (const auto& [b, rw, back] : return_paths_) see({b, rw, back});
  reader_.begin(targets_.size());
  for (const Row& row : rw_rows_)
    if ((row.pairs & graph_.pairs_of_read(r)) != 0)
      reader_.add(row.target, graph_.read_node(idx(row.check), r, row.state));
  const std::size_t first = first_before(reader_.top());
  for (std::size_t word = word_of(first); word < overwritten_.size(); ++word) {
    std::uint64_t left = writers_from(first, word);
    for (; (left &= ~overwritten_[word]) != 0; left &= left - 1) {  // the latest first
      const std::size_t at = word * kWordBits + idx(std::countr_zero(left));
      if (!reader_.reached([&](std::size_t t) { return targets_[t].marks[at]; })) continue;
      const std::int32_t b = writers_[at];
      if (pruner_.initial(b) || b == pruner_.own_writer[r]) continue;
      std::optional<Edge> closing;
      graph_.rw_closings(r, -1, b, [&](const Edge& e) {
        if (!closing && clocks_.reaches(e.to, e.from)) closing = e;
      });
      if (closing) see({b, *closing, std::nullopt});
    }
  }
}

// Returns a seen writer that follows this candidate, or null.
const KeyPruner::Seen* KeyPruner::overwritten_by(std::int32_t a) {
  const bool first = pruner_.initial(a);
  if (seen_.empty() || (!first && !has_bit(overwritten_, pairs_.place(a)))) return nullptr;
  for (const Seen& seen : seen_) {
    // mutant: overwritten-by-itself
    if (seen.writer == a) continue;
    if (first) return &seen;
    if (impossible_order(seen.writer, a)) return &seen;
  }
  return nullptr;
}

bool KeyPruner::prune_read(std::int32_t r) {
  const Problem& p = graph_.problem;
  find_seen(r);
  std::int32_t left = 0, only = -1;
  for (const std::size_t i : p.candidates(r)) {
    if (!pruner_.alive[i]) continue;
    budget_->poll();
    const std::int32_t a = p.candidate[i];
    // mutant: overwritten-source-kept
    const Seen* const seen = overwritten_by(a);
    bool closes = false;
    if (seen == nullptr)
      graph_.wr_edges(r, a, [&](const Edge& e) {
        // mutant: preceded-source-kept
        closes = closes || (clocks_.reaches(e.to, e.from) && graph_.judges(e.from));
      });
    if (!closes && seen == nullptr) {
      ++left;
      only = a;
      continue;
    }
    pruner_.alive[i] = 0;
    ++findings_->eliminated_sources;
    ++findings_->gained;
    pruner_.eliminated_in[i] = static_cast<std::uint8_t>(pruner_.passes);
    pruner_.eliminated_by[i] = closes ? Pruner::kClosesCycle : 1 + seen->writer;
    if (closes || !seen->back) continue;
    pruner_.eliminated_by[i] = Pruner::kReason - static_cast<std::int32_t>(pruner_.reasons.size());
    Edge closing = seen->closing;
    closing.a = a;
    pruner_.reasons.push_back(pruner_.because(closing, seen->back));
  }
  // mutant: optional-settled
  if (!pruner_.included_reader(r))
    return true;  // without a source its transaction is out: the search has a clause for this
  if (left == 0) {
    findings_->read_without_candidates = r;
    return false;
  }
  if (left == 1) {
    pruner_.resolve(r, only, findings_->edges);
    ++findings_->gained;
  }
  return true;
}

}  // namespace isolang
