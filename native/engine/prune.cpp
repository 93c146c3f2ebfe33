#include "engine/prune.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int32_t kMaxPasses = 8;
constexpr std::size_t kAhead = 3;  // writers whose rows are fetched before they are needed
constexpr std::size_t kMaxSettledWords = std::size_t{1} << 23;  // 64 MiB

}  // namespace

Pruner::Pruner(EventGraph& g, Budget& budget, std::size_t max_clock_bytes)
    : graph(g), budget_(budget), max_clock_bytes_(max_clock_bytes) {
  const Problem& p = g.problem;
  source.assign(idx(p.reads()), -1);
  alive.assign(p.candidate.size(), 1);
  inclusion = p.inclusion;
  included_by.assign(inclusion.size(), -1);
  key_of_.resize(p.writer_txn.size());
  std::size_t words = 0;
  settled_pairs_.resize(idx(p.keys));
  open_pairs_.assign(p.writer_txn.size(), std::numeric_limits<std::int32_t>::max());
  restless_.assign(idx(p.keys), 1);
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const std::int32_t first = p.key_start[idx(key)], last = p.key_start[idx(key) + 1];
    std::fill(key_of_.begin() + first, key_of_.begin() + last, key);
    const std::size_t need = idx(last - first) * ((idx(last - first) + 63) / 64);
    if (words + need > kMaxSettledWords) continue;
    settled_pairs_[idx(key)].assign(need, 0);
    words += need;
    if (g.forbids_ways_back) continue;  // a way back may close between writers whose order is known
    std::fill(open_pairs_.begin() + first, open_pairs_.begin() + last, last - first - 1);
  }
  for (std::size_t c = 0; c < g.automata.size(); ++c) {
    const auto check = static_cast<std::int32_t>(c);
    for (const auto& [q, r] : g.automata[c].of(Relation::ww))
      if (g.automata[c].judges) ww_rows_.push_back({check, q, target_of(check, r)});
    for (const auto* steps : {&g.automata[c].of(Relation::rw), &g.automata[c].back})
      for (const auto& [q, r] : *steps) rw_rows_.push_back({check, q, target_of(check, r)});
  }
  if (g.has_version_nodes()) ww_rows_.push_back({-1, 0, target_of(-1, 0)});
  find_own_writers();
  direct_ = std::ranges::any_of(g.automata, &Automaton::direct);
  if (direct_) find_session_writers();
  if (!g.uses_reads) return;
  for (std::int32_t r = 0; r < p.reads() && !p.impossible.empty(); ++r)
    for (auto i = static_cast<std::size_t>(p.candidate_start[idx(r)]); i < static_cast<std::size_t>(p.candidate_start[idx(r) + 1]); ++i)
      if (std::ranges::binary_search(p.impossible, p.writer_txn[idx(p.candidate[i])])) {
        alive[i] = 0;
        struck.push_back({r, p.candidate[i], -1});
      }
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (p.candidate_start[idx(r) + 1] - p.candidate_start[idx(r)] == 1 && included_reader(r) &&
        alive[static_cast<std::size_t>(p.candidate_start[idx(r)])])
      resolve(r, p.candidate[static_cast<std::size_t>(p.candidate_start[idx(r)])]);
  open_reads_ = group_by(
      p.keys, idx(p.reads()), [&](std::size_t r) { return source[r] < 0 ? p.read_key[r] : -1; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
}

bool Pruner::run() {
  const Problem& p = graph.problem;
  std::int64_t open = static_cast<std::int64_t>(p.candidate.size());
  // Without an ambiguous read, and without rw edges or ways back by ww, one pass finds all that follows, and every version
  // order that contains it will do. Direct checks do not even need the clocks.
  const bool fixed = std::ranges::none_of(source, [](std::int32_t s) { return s < 0; });
  const auto free_of_orders = [&](const Automaton& m) {
    return m.of(Relation::rw).empty() && (m.back.empty() || m.of(Relation::ww).empty());
  };
  const bool one_pass = graph.forbids_ways_back && fixed && std::ranges::all_of(graph.automata, free_of_orders);
  if (one_pass) {
    if (std::ranges::all_of(graph.automata, [](const Automaton& m) { return m.back.empty(); })) {
      if (!prune_direct() || !settle()) return false;
      clocks.build(group_by(graph.nodes(), 0, [](std::size_t) { return -1; }, [](std::size_t) { return -1; }), order, false, 0, budget_);
      return saturated = true;
    }
  }
  while (passes < kMaxPasses) {
    if (!pass()) return false;
    if (one_pass) {
      saturated = clocks.exact();  // else they may not have known of some way back
      return settle();
    }
    if (gained_ == 0) return true;
    if (passes >= 3 && gained_ * 50 < open) break;
    open = std::max<std::int64_t>(gained_, 1000);
  }
  return settle();
}

bool Pruner::settle() {
  const auto& edges = graph.edges;
  const auto successors = group_by(
      graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].from; }, [&](std::size_t i) { return edges[i].to; });
  std::vector<std::int32_t> priority(idx(graph.nodes()));
  for (Node v = 0; v < graph.nodes(); ++v) priority[idx(v)] = graph.priority(v);
  order = topological_order(successors, priority, budget_);
  if (order.size() < idx(graph.nodes())) {
    std::vector<std::uint8_t> sorted(idx(graph.nodes()), 0);
    for (const Node v : order) sorted[idx(v)] = 1;
    find_cycle(std::move(sorted));
    return false;
  }
  rank.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[idx(order[i])] = static_cast<std::int32_t>(i);
  return true;
}

// A short cycle among the nodes that Kahn's algorithm could not sort, after dropping those that lead to no cycle:
// breadth-first from one node after the other, never deeper than the best cycle so far, within a limit of effort.
void Pruner::find_cycle(std::vector<std::uint8_t> sorted) {
  const auto& edges = graph.edges;
  if (std::ranges::any_of(graph.automata, [](const Automaton& m) { return !m.judges; }))
    for (Node v = 0; v < graph.nodes(); ++v)
      if (!graph.judges(v)) sorted[idx(v)] = 1;  // its cycles are elsewhere, too
  const auto inside = [&](std::size_t i) { return !sorted[idx(edges[i].from)] && !sorted[idx(edges[i].to)]; };
  const auto number = [](std::size_t i) { return static_cast<std::int32_t>(i); };
  const auto incoming = group_by(graph.nodes(), edges.size(), [&](std::size_t i) { return inside(i) ? edges[i].to : -1; }, number);
  std::vector<std::int32_t> leaving(idx(graph.nodes()), 0);
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (inside(i)) ++leaving[idx(edges[i].from)];
  std::vector<Node> dead;
  for (Node v = 0; v < graph.nodes(); ++v)
    if (!sorted[idx(v)] && leaving[idx(v)] == 0) dead.push_back(v);
  while (!dead.empty()) {
    const Node v = dead.back();
    dead.pop_back();
    sorted[idx(v)] = 1;
    for (const std::int32_t e : incoming.of(v))
      if (--leaving[idx(edges[idx(e)].from)] == 0) dead.push_back(edges[idx(e)].from);
  }
  const auto outgoing = group_by(graph.nodes(), edges.size(), [&](std::size_t i) { return inside(i) ? edges[i].from : -1; }, number);
  std::vector<std::int32_t> via(idx(graph.nodes()), -1), stamp(idx(graph.nodes()), -1), depth(idx(graph.nodes()), 0);
  std::int64_t effort = 2'000'000;
  for (Node start = 0; start < graph.nodes() && (effort > 0 || cycle.empty()); ++start) {
    if (sorted[idx(start)]) continue;
    std::deque<Node> queue{start};
    stamp[idx(start)] = start;
    depth[idx(start)] = 0;
    bool closed = false;
    while (!queue.empty() && !closed) {
      const Node u = queue.front();
      queue.pop_front();
      if (!cycle.empty() && static_cast<std::size_t>(depth[idx(u)]) + 1 >= cycle.size()) break;
      for (const std::int32_t e : outgoing.of(u)) {
        --effort;
        const Node v = edges[idx(e)].to;
        if (v == start) {
          cycle.assign(1, e);
          for (Node w = u; w != start; w = edges[idx(via[idx(w)])].from) cycle.push_back(via[idx(w)]);
          std::ranges::reverse(cycle);
          closed = true;
          break;
        }
        if (stamp[idx(v)] == start) continue;
        stamp[idx(v)] = start;
        depth[idx(v)] = depth[idx(u)] + 1;
        via[idx(v)] = e;
        queue.push_back(v);
      }
    }
    budget_.poll();
  }
}

bool Pruner::pass() {
  if (!prune_direct() || !settle()) return false;
  ++passes;
  gained_ = 0;
  const Problem& p = graph.problem;
  const auto& edges = graph.edges;
  clocks.build(group_by(graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].to; },
                        [&](std::size_t i) { return edges[i].from; }),
               order, true, max_clock_bytes_, budget_);
  note_changes();
  epoch_ = static_cast<std::uint32_t>(edges.size());
  readers_ = group_by(
      static_cast<std::int32_t>(p.writer_txn.size()), source.size(), [&](std::size_t r) { return source[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
  // The latest reader first: its rw edge then covers those of most others.
  for (std::size_t w = 0; w < p.writer_txn.size(); ++w)
    if (const auto first = readers_.item.begin() + readers_.start[w], last = readers_.item.begin() + readers_.start[w + 1];
        last - first > 1)
      std::sort(first, last, [&](std::int32_t a, std::int32_t b) {
        return rank[idx(graph.node(0, p.read_txn[idx(a)], 0))] > rank[idx(graph.node(0, p.read_txn[idx(b)], 0))];
      });
  const bool every_read = std::exchange(every_read_, false) || direct_;  // what is direct needs no change of the clocks
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const auto reads = graph.uses_reads ? open_reads_.of(key) : std::span<const std::int32_t>();
    if (reads.empty() && (!graph.uses_orders || is_decided(key))) continue;
    const bool quiet = is_quiet(key);
    bool loaded = false;
    if (graph.uses_orders && !quiet) {
      load(key);
      loaded = true;
      if (!prune_key(key)) return false;
    }
    for (const std::int32_t r : reads) {
      if (source[idx(r)] >= 0 || (quiet && !every_read && changed_[idx(p.read_txn[idx(r)])] == 0)) continue;
      if (!std::exchange(loaded, true)) load(key);
      if (!prune_read(r)) return false;
    }
  }
  return true;
}

// What may have changed since the last pass, per transaction: the clocks of one of its nodes.
void Pruner::note_changes() {
  const Problem& p = graph.problem;
  changed_.assign(idx(p.n + 1), 0);
  for (Node v = 0; v < graph.nodes(); ++v)  // not by check and state: direct checks have no nodes
    if (clocks.changed(v))
      if (const std::int32_t t = graph.transaction_of(v); t >= 0) changed_[idx(t)] = 1;
  if (graph.has_version_nodes())
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(p.writer_txn.size()); ++w)
      changed_[idx(p.writer_txn[idx(w)])] |= static_cast<std::uint8_t>(clocks.changed(graph.order_node(w)));
}

bool Pruner::is_quiet_writer(std::int32_t writer) const {
  const Problem& p = graph.problem;
  return changed_[idx(p.writer_txn[idx(writer)])] == 0 &&
         std::ranges::all_of(readers_.of(writer), [&](std::int32_t r) { return changed_[idx(p.read_txn[idx(r)])] == 0; });
}

// Every pair of the key's writers is ordered by known edges: what else might be found out about them is a cycle of those.
bool Pruner::is_decided(std::int32_t key) const {
  const auto first = open_pairs_.begin() + graph.problem.key_start[idx(key)], last = open_pairs_.begin() + graph.problem.key_start[idx(key) + 1];
  return first != last && std::all_of(first + 1, last, [](std::int32_t open) { return open == 0; });  // the first is T0
}

// Nothing about the key's writers and their readers has changed: another look at them would find nothing.
bool Pruner::is_quiet(std::int32_t key) const {
  if (restless_[idx(key)] != 0) return false;
  for (std::int32_t w = graph.problem.key_start[idx(key)]; w < graph.problem.key_start[idx(key) + 1]; ++w)
    if (!is_quiet_writer(w)) return false;
  return true;
}

Impossible Pruner::because(const Edge& closing, const std::optional<Edge>& back) {
  if (!back) return {closing, epoch_};
  backs.push_back(*back);
  return {closing, epoch_, static_cast<std::int32_t>(backs.size()) - 1};
}

// "a before b" is impossible if one of its edges goes against a known path.
std::optional<Edge> Pruner::closing_order(std::int32_t a, std::int32_t b) const {
  std::optional<Edge> found;
  const auto test = [&](const Edge& e) {
    if (!found && clocks.reaches(e.to, e.from) && (e.relation == Relation::rw || graph.judges(e.from))) found = e;
  };
  graph.ww_edges(a, b, test);
  if (found) return found;
  for (const std::int32_t r : readers_.of(a)) {
    graph.rw_closings(r, a, b, test);
    if (found) return found;
  }
  return found;
}

std::size_t Pruner::target_of(std::int32_t check, std::int32_t state) {
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (targets_[i].check == check && targets_[i].state == state) return i;
  targets_.push_back({check, state, {}});
  return targets_.size() - 1;
}

void Pruner::find_own_writers() {
  const Problem& p = graph.problem;
  own_writer.assign(idx(p.reads()), -1);
  writers_by_txn_ = group_by(
      p.n + 1, p.writer_txn.size(), [&](std::size_t w) { return p.writer_txn[w]; },
      [](std::size_t w) { return static_cast<std::int32_t>(w); });
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const auto own = writers_by_txn_.of(p.read_txn[idx(r)]);  // ascending, hence by key
    const auto it = std::ranges::lower_bound(own, p.read_key[idx(r)], {}, [&](std::int32_t w) { return key_of_[idx(w)]; });
    if (it != own.end() && key_of_[idx(*it)] == p.read_key[idx(r)]) own_writer[idx(r)] = *it;
  }
}

void Pruner::unsettle(std::int32_t writer) {
  const std::int32_t key = key_of_[idx(writer)], first = graph.problem.key_start[idx(key)];
  restless_[idx(key)] = 1;
  auto& bits = settled_pairs_[idx(key)];
  if (bits.empty()) return;
  const std::int32_t count = graph.problem.key_start[idx(key) + 1] - first;
  const std::size_t words = (idx(count) + 63) / 64;
  const auto self = idx(writer - first);
  for (std::size_t word = 0; word < words; ++word)
    for (std::uint64_t left = bits[self * words + word]; left != 0; left &= left - 1) {
      const std::size_t other = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if ((bits[other * words + self / 64] >> (self % 64) & 1) == 0) note_pair(writer, first + static_cast<std::int32_t>(other), 1);
    }
  std::fill_n(bits.begin() + static_cast<std::ptrdiff_t>(idx(writer - first) * words), words, 0);
}

void Pruner::note_pair(std::int32_t a, std::int32_t b, std::int32_t opened) {
  if (graph.forbids_ways_back) return;
  open_pairs_[idx(a)] += opened;
  open_pairs_[idx(b)] += opened;
}

Node Pruner::node_of(std::int32_t check, std::int32_t state, std::int32_t writer) const {
  return check < 0 ? graph.order_node(writer) : graph.node(idx(check), graph.problem.writer_txn[idx(writer)], state);
}

// Raises the row of a target by that of a node: what reaches one of the nodes is then one comparison away.
void Pruner::raise(std::size_t target, Node node) {
  clocks.raise(std::span(combined_).subspan(target * clocks.columns(), clocks.columns()), node);
}

// By the nodes from which edges of "`writer` before another" start.
void Pruner::raise_by(std::int32_t writer) {
  const Problem& p = graph.problem;
  for (const Row& row : ww_rows_)
    raise(row.target, node_of(row.check, row.state, writer));
  for (const std::int32_t r : readers_.of(writer))
    for (const Row& row : rw_rows_) raise(row.target, graph.node(idx(row.check), p.read_txn[idx(r)], row.state));
}

// The rows that raise_by will want: of a large history they are far apart.
void Pruner::prefetch_by(std::int32_t writer) const {
  for (const Row& row : ww_rows_) clocks.prefetch(node_of(row.check, row.state, writer));
  for (const std::int32_t r : readers_.of(writer))
    for (const Row& row : rw_rows_) clocks.prefetch(graph.node(idx(row.check), graph.problem.read_txn[idx(r)], row.state));
}

// forced_[i]: writers_[i] precedes `after`, because the reverse order would close a cycle. The rows that tell are combined
// first, so that there is one comparison per writer and target.
void Pruner::mark_forced(std::int32_t after, std::size_t self) {
  combined_.assign(targets_.size() * clocks.columns(), -1);
  raise_by(after);
  std::ranges::fill(forced_, 0);
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const std::int32_t* const row = combined_.data() + t * clocks.columns();
    const std::vector<Clocks::Mark>& marks = targets_[t].marks;
    for (std::size_t i = 0; i < forced_.size(); ++i) forced_[i] |= row[marks[i].column] >= marks[i].position;
  }
  forced_[self] = 0;
  // rw leaves out the reader itself: a writer that has read from `after` may owe its mark to its own row.
  const std::int32_t first = graph.problem.key_start[idx(key_of_[idx(after)])];
  for (const std::int32_t r : readers_.of(after)) {
    if (own_writer[idx(r)] < 0) continue;
    std::uint8_t& mark = forced_[idx(local_[idx(own_writer[idx(r)] - first)])];
    if (mark != 0) mark = impossible_order(after, own_writer[idx(r)]) ? 1 : 0;
  }
}

// Adds an edge to one of the nodes of the writer at hand, unless the clocks or the edges just added to that node imply
// it: the node's row, raised by the rows of the new predecessors, answers that in one comparison.
bool Pruner::keep_unless_implied(const Edge& e) {
  if (clocks.reaches(e.from, e.to)) return false;
  auto cover = std::ranges::find(covered_, e.to, &Cover::node);
  if (cover == covered_.end()) {
    covered_.push_back({e.to, std::vector<std::int32_t>(clocks.columns(), -1)});
    cover = covered_.end() - 1;
    clocks.raise(cover->row, e.to);
  }
  const Clocks::Mark mark = clocks.mark(e.from);
  if (cover->row[idx(mark.column)] >= mark.position) return false;
  clocks.raise(cover->row, e.from);
  graph.edges.push_back(e);
  return true;
}

void Pruner::load(std::int32_t key) {
  const Problem& p = graph.problem;
  const std::int32_t first = p.key_start[idx(key)], last = p.key_start[idx(key) + 1];
  writers_.resize(idx(last - first));
  std::iota(writers_.begin(), writers_.end(), first);
  if (graph.uses_orders)
    std::ranges::sort(writers_, std::greater<>(), [&](std::int32_t w) { return rank[idx(graph.order_node(w))]; });
  local_.resize(writers_.size());
  for (std::size_t i = 0; i < writers_.size(); ++i) local_[idx(writers_[i] - first)] = static_cast<std::int32_t>(i);
  for (Target& target : targets_) {
    target.marks.resize(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i)
      target.marks[i] = clocks.mark(node_of(target.check, target.state, writers_[i]));
  }
}

bool Pruner::prune_key(std::int32_t key) {
  const std::int32_t first = graph.problem.key_start[idx(key)];
  const bool restless = std::exchange(restless_[idx(key)], std::uint8_t{0}) != 0;
  if (writers_.size() < 2) return true;
  forced_.resize(writers_.size());
  auto& settled = settled_pairs_[idx(key)];
  const std::size_t words = (writers_.size() + 63) / 64;
  for (std::size_t self = 0; self < writers_.size(); ++self) {
    const std::int32_t after = writers_[self];
    if (initial(after)) {
      // T0 precedes every writer: no way may lead back to its readers.
      if (!graph.forbids_ways_back || readers_.of(after).empty()) continue;
      mark_forced(after, self);
      const auto closed_by = std::ranges::find(forced_, 1);
      if (closed_by == forced_.end()) continue;
      closed = because(*closing_order(after, writers_[static_cast<std::size_t>(closed_by - forced_.begin())]));
      return false;
    }
    // SOUND BECAUSE it only leaves out what would be found a second time: if the reverse of a known order is impossible, then
    // because a known path goes against one of its edges, and the edges of the known order close a cycle with that path.
    if (open_pairs_[idx(after)] == 0 || (!restless && is_quiet_writer(after))) continue;
    budget_.poll();
    if (self + kAhead < writers_.size() && open_pairs_[idx(writers_[self + kAhead])] != 0) prefetch_by(writers_[self + kAhead]);
    const std::size_t known = graph.edges.size();
    covered_.clear();
    mark_forced(after, self);
    // The latest predecessors first, so that the edges of most earlier ones are implied by those already kept.
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      const std::int32_t before = writers_[i];
      if (!forced_[i] && !initial(before)) continue;
      if (!settled.empty()) {
        std::uint64_t& word = settled[idx(before - first) * words + idx(after - first) / 64];
        const std::uint64_t bit = std::uint64_t{1} << (idx(after - first) % 64);
        if ((word & bit) != 0) continue;
        word |= bit;
        if ((settled[idx(after - first) * words + idx(before - first) / 64] >> (idx(before - first) % 64) & 1) == 0)
          note_pair(before, after, -1);
      }
      bool fresh = false;
      const auto add = [&](const Edge& e) { fresh |= keep_unless_implied(e); };
      graph.ww_edges(before, after, add);
      for (const std::int32_t r : readers_.of(before)) graph.rw_edges(r, before, after, add);
      if (!fresh) continue;
      ++forced_orders;
      if (!initial(before)) orders.push_back({before, after, because(*closing_order(after, before))});
    }
    gained_ += static_cast<std::int64_t>(graph.edges.size() - known);
  }
  return true;
}

Pruner::Pairs Pruner::pairs() {
  Pairs found;
  std::vector<std::uint8_t> precedes;  // [i * count + j]: writers_[i] precedes writers_[j]
  for (std::int32_t key = 0; graph.uses_orders && key < graph.problem.keys; ++key) {
    load(key);
    const std::size_t count = writers_.size();
    forced_.resize(count);
    precedes.assign(count * count, 0);
    for (std::size_t j = 0; j < count; ++j) {
      budget_.poll();
      mark_forced(writers_[j], j);
      for (std::size_t i = 0; i < count; ++i) precedes[i * count + j] = forced_[i];
    }
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (initial(writers_[i]) || initial(writers_[j])) continue;
        const bool up = precedes[i * count + j] != 0, down = precedes[j * count + i] != 0;
        auto& list = up || down ? found.settled : found.open;
        const bool i_first = up || (!down && writers_[i] < writers_[j]);
        list.push_back(writers_[i_first ? i : j]);
        list.push_back(writers_[i_first ? j : i]);
      }
  }
  return found;
}

}  // namespace isolang
