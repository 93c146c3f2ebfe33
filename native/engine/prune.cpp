#include "engine/prune.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int32_t kMaxPasses = 8;
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
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const std::int32_t first = p.key_start[idx(key)], last = p.key_start[idx(key) + 1];
    std::fill(key_of_.begin() + first, key_of_.begin() + last, key);
    const std::size_t need = idx(last - first) * ((idx(last - first) + 63) / 64);
    if (words + need > kMaxSettledWords) continue;
    settled_pairs_[idx(key)].assign(need, 0);
    words += need;
  }
  for (std::size_t c = 0; c < g.automata.size(); ++c) {
    const auto check = static_cast<std::int32_t>(c);
    for (const auto& [q, r] : g.automata[c].of(Relation::ww)) ww_rows_.push_back({check, q, target_of(check, r)});
    for (const auto* steps : {&g.automata[c].of(Relation::rw), &g.automata[c].back})
      for (const auto& [q, r] : *steps) rw_rows_.push_back({check, q, target_of(check, r)});
  }
  if (g.has_version_nodes()) ww_rows_.push_back({-1, 0, target_of(-1, 0)});
  find_own_writers();
  if (std::ranges::any_of(g.automata, &Automaton::direct)) find_session_writers();
  if (!g.uses_reads) return;
  for (std::int32_t r = 0; r < p.reads() && !p.impossible.empty(); ++r)
    for (auto i = static_cast<std::size_t>(p.candidate_start[idx(r)]); i < static_cast<std::size_t>(p.candidate_start[idx(r) + 1]); ++i)
      if (std::ranges::binary_search(p.impossible, p.writer_txn[idx(p.candidate[i])])) {
        alive[i] = 0;
        struck.push_back({r, p.candidate[i], std::nullopt});
      }
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (p.candidate_start[idx(r) + 1] - p.candidate_start[idx(r)] == 1 && included_reader(r) &&
        alive[static_cast<std::size_t>(p.candidate_start[idx(r)])])
      resolve(r, p.candidate[static_cast<std::size_t>(p.candidate_start[idx(r)])]);
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
    saturated = true;
    if (std::ranges::all_of(graph.automata, [](const Automaton& m) { return m.back.empty(); })) {
      if (!prune_direct() || !settle()) return false;
      clocks.build(group_by(graph.nodes(), 0, [](std::size_t) { return -1; }, [](std::size_t) { return -1; }), order, 0, budget_);
      return true;
    }
  }
  while (passes < kMaxPasses) {
    if (!pass()) return false;
    if (one_pass) return settle();
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
  const auto predecessors = group_by(
      graph.nodes(), edges.size(), [&](std::size_t i) { return edges[i].to; }, [&](std::size_t i) { return edges[i].from; });
  clocks.build(predecessors, order, max_clock_bytes_, budget_);
  epoch_ = edges.size();
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
  if (graph.uses_orders)
    for (std::int32_t key = 0; key < p.keys; ++key)
      if (!prune_key(key)) return false;
  if (graph.uses_reads)
    for (std::int32_t r = 0; r < p.reads(); ++r)
      if (source[idx(r)] < 0 && !prune_read(r)) return false;
  return true;
}

// "a before b" is impossible if one of its edges goes against a known path.
std::optional<Edge> Pruner::closing_order(std::int32_t a, std::int32_t b) const {
  std::optional<Edge> found;
  const auto test = [&](const Edge& e) {
    if (!found && clocks.reaches(e.to, e.from)) found = e;
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
  auto& bits = settled_pairs_[idx(key)];
  if (bits.empty()) return;
  const std::size_t words = (idx(graph.problem.key_start[idx(key) + 1] - first) + 63) / 64;
  std::fill_n(bits.begin() + static_cast<std::ptrdiff_t>(idx(writer - first) * words), words, 0);
}

// forced_[i]: writers_[i] precedes `after`, because the reverse order would close a cycle. One clock row at a time
// against the marks of all writers of the key.
void Pruner::mark_forced(std::int32_t after, std::size_t self) {
  const Problem& p = graph.problem;
  const std::size_t count = writers_.size();
  std::ranges::fill(forced_, 0);
  const auto test = [&](const std::int32_t* row, const std::vector<Clocks::Mark>& marks) {
    for (std::size_t i = 0; i < count; ++i) forced_[i] |= row[marks[i].column] >= marks[i].position;
  };
  const std::int32_t txn = p.writer_txn[idx(after)];
  for (const Row& row : ww_rows_) {
    const Node node = row.check < 0 ? graph.order_node(after) : graph.node(idx(row.check), txn, row.state);
    test(clocks.row(node), targets_[row.target].marks);
  }
  const std::int32_t first = p.key_start[idx(key_of_[idx(after)])];
  for (const std::int32_t r : readers_.of(after)) {
    // rw leaves out the reader itself
    const std::size_t own = own_writer[idx(r)] < 0 ? count : idx(local_[idx(own_writer[idx(r)] - first)]);
    const std::uint8_t before = own < count ? forced_[own] : 0;
    for (const Row& row : rw_rows_)
      test(clocks.row(graph.node(idx(row.check), p.read_txn[idx(r)], row.state)), targets_[row.target].marks);
    if (own < count) forced_[own] = before;
  }
  forced_[self] = 0;
}

// Adds an edge to one of the nodes of the writer at hand, unless the clocks or the edges just added to that node imply
// it: the node's row, raised by the rows of the new predecessors, answers that in one comparison.
bool Pruner::keep_unless_implied(const Edge& e) {
  if (clocks.reaches(e.from, e.to)) return false;
  auto cover = std::ranges::find(covered_, e.to, &Cover::node);
  if (cover == covered_.end()) {
    const std::int32_t* const row = clocks.row(e.to);
    covered_.push_back({e.to, {row, row + clocks.columns()}});
    cover = covered_.end() - 1;
  }
  const Clocks::Mark mark = clocks.mark(e.from);
  if (cover->row[idx(mark.column)] >= mark.position) return false;
  const std::int32_t* const row = clocks.row(e.from);
  for (std::size_t c = 0; c < cover->row.size(); ++c) cover->row[c] = std::max(cover->row[c], row[c]);
  graph.edges.push_back(e);
  return true;
}

bool Pruner::prune_key(std::int32_t key) {
  const Problem& p = graph.problem;
  const std::int32_t first = p.key_start[idx(key)], last = p.key_start[idx(key) + 1];
  if (last - first < 2) return true;
  writers_.resize(idx(last - first));
  std::iota(writers_.begin(), writers_.end(), first);
  std::ranges::sort(writers_, std::greater<>(), [&](std::int32_t w) { return rank[idx(graph.order_node(w))]; });
  local_.resize(writers_.size());
  for (std::size_t i = 0; i < writers_.size(); ++i) local_[idx(writers_[i] - first)] = static_cast<std::int32_t>(i);
  for (Target& target : targets_) {
    target.marks.resize(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i)
      target.marks[i] = clocks.mark(target.check < 0 ? graph.order_node(writers_[i])
                                                     : graph.node(idx(target.check), p.writer_txn[idx(writers_[i])], target.state));
  }
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
      graph.edges.push_back(*closing_order(after, writers_[static_cast<std::size_t>(closed_by - forced_.begin())]));
      return settle();
    }
    budget_.poll();
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
      }
      bool fresh = false;
      const auto add = [&](const Edge& e) { fresh |= keep_unless_implied(e); };
      graph.ww_edges(before, after, add);
      for (const std::int32_t r : readers_.of(before)) graph.rw_edges(r, before, after, add);
      if (!fresh) continue;
      ++forced_orders;
      if (!initial(before)) orders.push_back({before, after, {*closing_order(after, before), epoch_}});
    }
    gained_ += static_cast<std::int64_t>(graph.edges.size() - known);
  }
  return true;
}

bool Pruner::prune_read(std::int32_t r) {
  const Problem& p = graph.problem;
  const std::int32_t key = p.read_key[idx(r)];
  // Writers that certainly precede the reader in the sense of rw: the reader cannot have missed them.
  struct Seen {
    std::int32_t writer;
    Edge rw;
    std::optional<Edge> back;
  };
  std::vector<Seen> seen;
  direct_ways_back(r, [&](std::int32_t other) { return source[idx(other)]; }, ways_back_);
  for (const auto& [b, rw, back] : ways_back_) seen.push_back({b, rw, back});
  for (std::int32_t b = p.key_start[idx(key)]; b < p.key_start[idx(key) + 1]; ++b) {
    if (initial(b)) continue;
    bool found = false;
    graph.rw_closings(r, -1, b, [&](const Edge& e) {
      if (found || !clocks.reaches(e.to, e.from)) return;
      found = true;
      seen.push_back({b, e, std::nullopt});
    });
  }
  std::ranges::sort(seen, std::greater<>(), [&](const auto& s) { return rank[idx(graph.order_node(s.writer))]; });
  std::int32_t left = 0, only = -1;
  for (auto i = static_cast<std::size_t>(p.candidate_start[idx(r)]); i < static_cast<std::size_t>(p.candidate_start[idx(r) + 1]); ++i) {
    if (!alive[i]) continue;
    const std::int32_t a = p.candidate[i];
    std::optional<Edge> closing, back;
    graph.wr_edges(r, a, [&](const Edge& e) {
      if (!closing && clocks.reaches(e.to, e.from)) closing = e;
    });
    if (!closing) {
      for (const auto& [b, rw, way] : seen) {
        budget_.poll();
        if (b == a) continue;
        if (!initial(a)) {
          const auto reverse = closing_order(b, a);
          if (!reverse) continue;
          orders.push_back({a, b, {*reverse, epoch_}});
        }
        closing = rw;
        closing->a = a;
        back = way;
        break;
      }
    }
    if (closing) {
      alive[i] = 0;
      ++struck_sources;
      ++gained_;
      struck.push_back({r, a, Impossible{*closing, epoch_, back}});
    } else {
      ++left;
      only = a;
    }
  }
  if (!included_reader(r)) return true;  // without a source left its transaction is out: a clause of the search
  if (left == 0) {
    orphan = r;
    return false;
  }
  if (left == 1) {
    resolve(r, only);
    ++gained_;
  }
  return true;
}

void Pruner::resolve(std::int32_t r, std::int32_t writer) {
  source[idx(r)] = writer;
  unsettle(writer);
  graph.wr_edges(r, writer, [&](const Edge& e) { graph.edges.push_back(e); });
  const std::int32_t txn = graph.problem.writer_txn[idx(writer)];
  if (inclusion[idx(txn)] == static_cast<std::uint8_t>(Inclusion::optional)) {
    inclusion[idx(txn)] = static_cast<std::uint8_t>(Inclusion::in);
    included_by[idx(txn)] = r;
    gained_ = std::max<std::int64_t>(gained_, 1);  // its own reads are to be judged now
  }
}

}  // namespace isolang
