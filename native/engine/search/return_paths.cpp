// `closed` returns walks that a single rw closes. It sorts the product so that most reads come
// before the next version, and examines only the pairs that this order does not exclude
// (*suspects*). Waves of 512 writers decide the suspects.
#include "engine/search/return_paths.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "core/index.hpp"
#include "engine/graph/topological_order.hpp"

namespace isolang {
namespace {
// Each call finds at most so many violations, or one for so many transactions, if that is more.
constexpr std::size_t kAlwaysFound = 2000;
constexpr std::size_t kTransactionsEach = 8;
constexpr std::size_t kMaxOfRead = 16;     // maximum number of violations per read, check and call
constexpr std::size_t kSuspectsEach = 8;  // suspects per node at a time
constexpr std::size_t kMaxComponents = 100;  // maximum number of cycles per check and call

// Returns the strongly connected component of each node (Tarjan 1972), without recursion.
template <typename EdgesOf, typename TargetOf>
std::vector<std::int32_t> strong_components(std::int32_t nodes, EdgesOf edges_of,
                                            TargetOf target_of, Budget& budget) {
  std::vector<std::int32_t> component(idx(nodes), -1), number(idx(nodes), -1), low(idx(nodes)),
      stack;
  std::vector<std::pair<std::int32_t, std::size_t>> path;
  std::int32_t count = 0;
  for (std::int32_t root = 0; root < nodes; ++root) {
    if (number[root] >= 0) continue;
    path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [v, next] = path.back();
      if (next == 0) {
        budget.poll();
        number[v] = low[v] = count++;
        stack.push_back(v);
      }
      const auto edges = edges_of(v);
      if (next < edges.size()) {
        const std::int32_t w = target_of(edges[next++]);
        if (number[w] < 0)
          path.emplace_back(w, 0);
        else if (component[w] < 0)
          low[v] = std::min(low[v], number[w]);
        continue;
      }
      const std::int32_t done = v;
      path.pop_back();
      if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[done]);
      if (low[done] != number[done]) continue;
      for (std::int32_t w = -1; w != done;) {
        w = stack.back();
        stack.pop_back();
        component[w] = done;
      }
    }
  }
  return component;
}

}  // namespace

ReturnPaths::ReturnPaths(const Pruner& pruner, Budget& budget)
    : pruner_(pruner),
      graph_(pruner.graph),
      budget_(budget),
      max_found_(std::max(kAlwaysFound, idx(pruner.graph.problem.n) / kTransactionsEach)) {
  std::vector<std::uint8_t> wanted;
  for (const Automaton& m : graph_.automata) {
    wanted.push_back(m.of_product());
    product_ |= m.of_product();
    direct_ |= m.of_one_pair();
    components_ |= m.of_components();
    immediate_.push_back(m.repeats(Relation::ww));
    // SOUND BECAUSE if a later writer leads back, then the next writer also leads back, by a ww
    // step first.
    by_next_.push_back(std::ranges::all_of(m.back.by_rw, [&](const Automaton::Step& b) {
      return m.goes_on_by_ww(b.second);
    }));
  }
  if (!product_) return;
  const auto uses_choices = [](const Automaton& m) {
    return m.of_product() && !(m.of(Relation::ww).empty() && m.of(Relation::rw).empty());
  };
  // mutant: fixed-in-any-case
  fixed_ = std::ranges::none_of(graph_.automata, uses_choices) &&
           std::ranges::none_of(pruner.source, [](std::int32_t source) { return source < 0; }) &&
           std::ranges::all_of(pruner.inclusion, [](std::uint8_t one) {
             return one != static_cast<std::uint8_t>(Inclusion::optional);
           });
  local_.assign(idx(graph_.nodes()), -1);
  for (Node v = 0; v < graph_.nodes(); ++v)
    if (const std::int32_t check = graph_.check_of(v); check >= 0 && wanted[check])
      local_[v] = nodes_++;
  for (const Edge& e : graph_.edges)
    if (local_[e.from] >= 0 && e.relation != Relation::wr && e.relation != Relation::ww &&
        e.relation != Relation::rw)
      facts_.push_back(e);
}

std::vector<std::vector<Edge>> ReturnPaths::closed(const Choice& choice,
                                                   std::vector<std::uint8_t>& changed) {
  const Problem& p = graph_.problem;
  std::vector<std::vector<Edge>> found;
  if (pruner_.saturated) return found;
  for (std::size_t c = 0; components_ && c < graph_.automata.size(); ++c)
    if (graph_.automata[c].of_components()) components(choice, c, found);
  std::int32_t clean = -1;  // the current transaction, as long as nothing has been found about it
  for (std::int32_t r = 0; r < p.reads() && found.size() < max_found_; ++r) {
    const std::int32_t reader = p.read_txn[r];
    if (!product_ && changed[reader] == 0) continue;
    if (r == 0 || reader != p.read_txn[r - 1]) clean = reader;
    const std::size_t before = found.size();
    if (choice.source[r] >= 0 && choice.in[reader]) {
      budget_.poll();
      if (direct_) direct(choice, r, found);
    }
    if (found.size() > before) clean = -1;
    if (r + 1 == p.reads() || reader != p.read_txn[r + 1])
      if (clean >= 0) changed[clean] = 0;
  }
  if (product_) by_product(choice, found);
  return found;
}

void ReturnPaths::build(const Choice& choice) {
  const Problem& p = graph_.problem;
  edges_ = facts_;
  const auto add = [&](const Edge& e) {
    if (idx(e.from) < local_.size() && local_[e.from] >= 0) edges_.push_back(e);
  };
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (choice.source[r] >= 0 && choice.in[p.read_txn[r]])
      graph_.wr_edges(r, choice.source[r], add);
  const auto in = [&](std::int32_t w) { return choice.in[p.writer_txn[w]] != 0; };
  add_overwrites(choice);
  for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
    const Automaton& m = graph_.automata[c];
    const auto& steps = m.of(Relation::ww);
    if (steps.empty() || !m.of_product()) continue;
    const auto ww = [&](std::int32_t a, std::int32_t b) {
      for (std::size_t s = 0; s < steps.size(); ++s)
        // mutant: return-path-of-other-keys
        if (const auto [q, r] = steps[s]; (m.of_step(Relation::ww, s) & graph_.pairs_of_writer(a)) != 0)
          edges_.push_back({graph_.writer_node(c, a, q), graph_.written_node(c, b, r), Relation::ww,
                          -1, a, b});
    };
    for (std::int32_t key = 0; key < p.keys; ++key)
      for (std::int32_t i = p.key_start[key], last = p.key_start[key + 1]; i < last; ++i) {
        if (!in(choice.writers[i])) continue;
        budget_.poll();
        for (std::int32_t j = i + 1; j < last; ++j) {
          if (!in(choice.writers[j])) continue;
          ww(choice.writers[i], choice.writers[j]);
          // mutant: next-version-only
          if (immediate_[c]) break;
        }
      }
  }
  const auto from = [&](std::size_t i) { return local_[edges_[i].from]; };
  const auto to = [&](std::size_t i) { return local_[edges_[i].to]; };
  std::vector<std::int32_t> priority(idx(nodes_));
  for (Node v = 0; v < graph_.nodes(); ++v)
    if (local_[v] >= 0) priority[local_[v]] = graph_.priority(v);
  const auto successors = group_by(nodes_, edges_.size(), from, to);
  const Adjacency wanted = wishes(choice);
  order_ = topological_order(successors, priority, budget_, &wanted);
  if (order_.size() < idx(nodes_))
    throw std::logic_error("return paths: the chosen relations have a cycle that no check forbids");
  rank_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = static_cast<std::int32_t>(i);
  successors_ = group_by(
      nodes_, edges_.size(), [&](std::size_t i) { return rank_[from(i)]; },
      [&](std::size_t i) { return rank_[to(i)]; });
  incoming_ = {};
  via_.assign(idx(nodes_), -1);
  lowest_.assign(choice.writers.size(), std::numeric_limits<std::int32_t>::max());
  for (std::int32_t key = 0; key < p.keys; ++key) note_lowest(choice, key);
}

void ReturnPaths::note_lowest(const Choice& choice, std::int32_t key) {
  const auto& start = graph_.problem.key_start;
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t i = start[idx(key) + 1]; i-- > start[key];) {
    each_start(choice, i, [&](std::int32_t node) { least = std::min(least, rank_[node]); });
    lowest_[i] = least;
  }
}

// Builds the product for the choice, unless every choice has the same product, and marks the keys
// whose reads must be examined.
void ReturnPaths::renew(const Choice& choice) {
  const Problem& p = graph_.problem;
  if (!fixed_ || looked_at_.empty()) {
    if (!fixed_ || order_.empty()) build(choice);
    changed_key_.assign(idx(p.keys), 1);
  }
  if (!fixed_) return;
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const auto first = p.key_start[key], last = p.key_start[idx(key) + 1];
    if (!looked_at_.empty())
      changed_key_[key] = static_cast<std::uint8_t>(
          !std::equal(choice.writers.begin() + first, choice.writers.begin() + last, looked_at_.begin() + first));
    if (changed_key_[key] != 0) note_lowest(choice, key);
  }
  looked_at_ = choice.writers;
}

// Visits, for each check, the nodes from which no walk may lead to a read of an earlier version.
template <typename Visit>
void ReturnPaths::each_start(const Choice& choice, std::int32_t place, Visit visit) const {
  const std::int32_t b = choice.writers[place];
  if (!choice.in[graph_.problem.writer_txn[b]]) return;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, start] : graph_.automata[c].back.by_rw)
      visit(local_[graph_.writer_node(c, b, start)]);
}

// Returns the edges of an order without suspects: a read comes before the next version, and a
// version before the next one.
Adjacency ReturnPaths::wishes(const Choice& choice) const {
  const Problem& p = graph_.problem;
  std::vector<std::pair<std::int32_t, std::int32_t>> found;
  const auto next = [&](std::int32_t place, std::int32_t key, std::int32_t reader) {
    const std::int32_t last = p.key_start[idx(key) + 1];
    const auto skipped = [&](std::int32_t i) {
      const std::int32_t txn = p.writer_txn[choice.writers[i]];
      return !choice.in[txn] || txn == reader;
    };
    do ++place;
    while (place < last && skipped(place));
    return place < last ? place : -1;
  };
  for (std::int32_t key = 0; key < p.keys; ++key)
    for (std::int32_t i = p.key_start[key]; i < p.key_start[idx(key) + 1]; ++i)
      if (const std::int32_t then = next(i, key, -1); then >= 0)
        each_start(choice, i, [&](std::int32_t from) {
          each_start(choice, then, [&](std::int32_t to) { found.emplace_back(from, to); });
        });
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t a = choice.source[r], reader = p.read_txn[r];
    if (a < 0 || !choice.in[reader]) continue;
    budget_.poll();
    const std::int32_t then = next(choice.place[a], p.read_key[r], reader);
    for (std::size_t c = 0; then >= 0 && c < graph_.automata.size(); ++c)
      for (const auto& [q, start] : graph_.automata[c].back.by_rw)
        found.emplace_back(local_[graph_.read_node(c, r, q)],
                           local_[graph_.writer_node(c, choice.writers[then], start)]);
  }
  return group_by(
      nodes_, found.size(), [&](std::size_t i) { return found[i].first; },
      [&](std::size_t i) { return found[i].second; });
}

// Finds the reads that may close a return path. For a key with very many suspects, one pass over
// the product finds the latest writer that leads to each node. A read is not a suspect if no writer
// after its source leads to it.
void ReturnPaths::find_suspects(const Choice& choice) {
  const Problem& p = graph_.problem;
  suspect_.assign(idx(p.reads()), 1);
  if (std::ranges::none_of(by_next_, [](std::uint8_t by_next) { return by_next == 0; })) return;
  const auto chosen = [&](std::int32_t r) {
    return choice.source[r] >= 0 && choice.in[p.read_txn[r]] != 0 && changed_key_[p.read_key[r]] != 0;
  };
  std::vector<std::int64_t> pairs(idx(p.keys), 0);
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (chosen(r)) pairs[p.read_key[r]] += suspects_end(choice, r) - choice.place[choice.source[r]];
  const auto pass = static_cast<std::int64_t>(edges_.size()) + nodes_;
  if (std::ranges::none_of(pairs, [&](std::int64_t count) { return count > pass; })) return;
  const auto reads = group_by(
      p.keys, idx(p.reads()), [&](std::size_t r) { return p.read_key[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
  // For each rank: the writer of its node if the node is a start, and the latest writer that leads
  // to the node.
  std::vector<std::int32_t> own, latest;
  for (std::int32_t key = 0; key < p.keys; ++key) {
    if (pairs[key] <= pass) continue;
    for (const std::int32_t r : reads.of(key)) suspect_[r] = 0;
    own.assign(idx(nodes_), -1);
    latest.assign(idx(nodes_), -1);
    for (std::int32_t i = p.key_start[key]; i < p.key_start[idx(key) + 1]; ++i)
      each_start(choice, i, [&](std::int32_t start) { own[rank_[start]] = i; });
    for (std::int32_t v = 0; v < nodes_; ++v) {
      budget_.poll();
      const std::int32_t place = std::max(own[v], latest[v]);
      if (place < 0) continue;
      for (const std::int32_t to : successors_.of(v)) latest[to] = std::max(latest[to], place);
    }
    for (std::size_t c = 0; c < graph_.automata.size(); ++c)
      for (const auto& [q, start] : graph_.automata[c].back.by_rw)
        for (const std::int32_t r : reads.of(key))
          if (chosen(r) &&
              latest[rank_[local_[graph_.read_node(c, r, q)]]] > choice.place[choice.source[r]])
            suspect_[r] = 1;
  }
}

// Returns the position in the version order from which all writers come after the read.
std::int32_t ReturnPaths::suspects_end(const Choice& choice, std::int32_t r) const {
  const Problem& p = graph_.problem;
  std::int32_t latest = -1;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, start] : graph_.automata[c].back.by_rw)
      latest = std::max(latest, rank_[local_[graph_.read_node(c, r, q)]]);
  const auto begin = lowest_.begin();
  const auto end = std::partition_point(begin + choice.place[choice.source[r]] + 1,
                                        begin + p.key_start[idx(p.read_key[r]) + 1],
                                        [&](std::int32_t least) { return least < latest; });
  return static_cast<std::int32_t>(end - begin);
}

void ReturnPaths::add_overwrites(const Choice& choice) {
  const Problem& p = graph_.problem;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
    const Automaton& m = graph_.automata[c];
    if (m.of(Relation::rw).empty() || !m.of_product()) continue;
    // SOUND BECAUSE the next writer other than the reader leads on to all later writers by ww.
    const bool next_only =
        !m.splits() && m.implied_by(Relation::rw, {Relation::rw, Relation::ww});
    for (std::int32_t r = 0; r < p.reads(); ++r) {
      const std::int32_t a = choice.source[r], reader = p.read_txn[r];
      if (a < 0 || !choice.in[reader]) continue;
      const auto is_of_step = [&](std::size_t i) {
        return (m.of_step(Relation::rw, i) & graph_.pairs_of_read(r)) != 0;
      };
      budget_.poll();
      for (std::int32_t i = choice.place[a] + 1; i < p.key_start[idx(p.read_key[r]) + 1]; ++i) {
        const std::int32_t b = choice.writers[i];
        if (!choice.in[p.writer_txn[b]] || p.writer_txn[b] == reader) continue;
        for (std::size_t s = 0; s < m.of(Relation::rw).size(); ++s) {
          const auto [q, t] = m.of(Relation::rw)[s];
          // mutant: overwrites-of-all-reads
          if (is_of_step(s))
            edges_.push_back({graph_.read_node(c, r, q), graph_.writer_node(c, b, t), Relation::rw,
                              r, a, b});
        }
        // mutant: next-overwrite-only
        if (next_only) break;
      }
    }
  }
}

// Finds the closing pairs on a cycle: a pair is on a cycle if and only if both its ends are in one
// strongly connected component.
void ReturnPaths::components(const Choice& choice, std::size_t c,
                             std::vector<std::vector<Edge>>& found) {
  const Problem& p = graph_.problem;
  const Automaton& m = graph_.automata[c];
  const auto has = [&](Relation r) { return m.component[idx(r)] != 0; };
  std::vector<Edge> edges;
  std::vector<std::int32_t> first, second;  // the transactions of each edge
  // No relation leads to T0.
  const auto add = [&](Relation relation, std::int32_t from, std::int32_t to, std::int32_t read,
                       std::int32_t a, std::int32_t b) {
    if (from == p.n) return;
    edges.push_back({graph_.label(c, from), graph_.label(c, to), relation, read, a, b});
    first.push_back(from);
    second.push_back(to);
  };
  const auto in = [&](std::int32_t w) { return choice.in[p.writer_txn[w]] != 0; };
  for (std::int32_t key = 0; has(Relation::ww) && key < p.keys; ++key) {
    std::int32_t last = -1;
    for (std::int32_t i = p.key_start[key]; i < p.key_start[key + 1]; ++i) {
      const std::int32_t w = choice.writers[i];
      if (!in(w)) continue;
      if (last >= 0) add(Relation::ww, p.writer_txn[last], p.writer_txn[w], -1, last, w);
      last = w;
    }
  }
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t a = choice.source[r], reader = p.read_txn[r];
    if (a < 0 || !choice.in[reader]) continue;
    budget_.poll();
    const Pairs kind = graph_.pairs_of_read(r);
    // mutant: component-no-sources
    if ((m.component[idx(Relation::wr)] & kind) != 0)
      add(Relation::wr, p.writer_txn[a], reader, r, a, -1);
    // mutant: component-of-all-reads
    if ((m.component[idx(Relation::rw)] & kind) == 0) continue;
    for (std::int32_t i = choice.place[a] + 1; i < p.key_start[idx(p.read_key[r]) + 1]; ++i) {
      const std::int32_t b = choice.writers[i];
      // mutant: component-own-version
      if (!in(b) || p.writer_txn[b] == reader) continue;
      add(Relation::rw, reader, p.writer_txn[b], r, a, b);
      if (has(Relation::ww)) break;  // the next writer leads on to all later ones
    }
  }
  const auto grouped_by = [&](const std::vector<std::int32_t>& end) {
    return group_by(
        p.n + 1, edges.size(), [&](std::size_t i) { return end[i]; },
        [](std::size_t i) { return static_cast<std::int32_t>(i); });
  };
  // Forward and backward search: the edges of each transaction, where they lead, by which edge the
  // search has come to a transaction, and the transactions that it has come to.
  const std::array<Adjacency, 2> steps{grouped_by(first), grouped_by(second)};
  const std::array<const std::vector<std::int32_t>*, 2> ends{&second, &first};
  std::array<std::vector<std::int32_t>, 2> via, queue;
  for (auto& one : via) one.assign(idx(p.n), -1);
  const auto component = strong_components(
      p.n, [&](std::int32_t t) { return steps[0].of(t); },
      [&](std::int32_t e) { return second[idx(e)]; }, budget_);
  std::vector<std::uint8_t> on_a_cycle(edges.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& e = edges[i];
    const std::int32_t from = first[i], to = second[i];
    const Pairs kind = e.read < 0 ? kAllPairs : graph_.pairs_of_read(e.read);
    // mutant: component-unclosed
    if ((m.closing[idx(e.relation)] & kind) == 0 || component[from] != component[to]) continue;
    if (on_a_cycle[i] != 0) continue;
    if (++count > kMaxComponents || found.size() >= max_found_) break;
    queue = {std::vector{to}, std::vector{from}};
    via[0][to] = via[1][from] = static_cast<std::int32_t>(i);
    std::array<std::size_t, 2> at{};
    std::int32_t meeting = -1;
    while (meeting < 0) {
      budget_.poll();
      const std::size_t side = queue[0].size() - at[0] <= queue[1].size() - at[1] ? 0 : 1;
      for (const std::int32_t step : steps[side].of(queue[side][at[side]++]))
        if (const std::int32_t t = (*ends[side])[idx(step)];
            via[side][t] == -1 && component[t] == component[to]) {
          via[side][t] = step;
          queue[side].push_back(t);
          if (via[1 - side][t] == -1) continue;
          meeting = t;
          break;
        }
    }
    std::vector<Edge> cycle;
    const auto add_edges = [&](std::size_t side, std::int32_t end) {
      for (std::int32_t t = meeting; t != end; t = (*ends[1 - side])[idx(via[side][t])]) {
        on_a_cycle[via[side][t]] = 1;
        cycle.push_back(edges[via[side][t]]);
      }
    };
    add_edges(0, to);
    cycle.push_back(e);
    std::ranges::reverse(cycle);
    add_edges(1, from);
    found.push_back(std::move(cycle));
    for (std::size_t side : {0, 1})
      for (const std::int32_t t : queue[side]) via[side][t] = -1;
  }
}

void ReturnPaths::direct(const Choice& choice, std::int32_t r,
                         std::vector<std::vector<Edge>>& found) {
  const std::int32_t a = choice.source[r];
  pruner_.direct_return_paths(r, [&](std::int32_t other) { return choice.source[other]; }, ways_);
  for (auto& [b, closing, back] : ways_) {
    if (choice.place[b] <= choice.place[a] || !choice.in[graph_.problem.writer_txn[b]]) continue;
    closing.a = a;
    found.push_back({back, closing});
    if (pruner_.source[r] >= 0) return;
    // The other candidates that `b` follows are impossible as well, and the next choice would take
    // one of them.
    const Problem& p = graph_.problem;
    for (const std::size_t i : p.candidates(r)) {
      const std::int32_t other = p.candidate[i];
      if (!pruner_.alive[i] || other == a || choice.place[other] >= choice.place[b]) continue;
      closing.a = other;
      found.push_back({back, closing});
    }
    return;
  }
}

// Visits the walks that are forbidden and that the order does not exclude.
template <typename Visit>
void ReturnPaths::each_suspect(const Choice& choice, std::int32_t r, Visit visit) const {
  const Problem& p = graph_.problem;
  const std::int32_t a = choice.source[r], reader = p.read_txn[r];
  const auto look = [&](std::size_t c, std::int32_t place, std::int32_t start, Node from, Node to) {
    const PairOfPlaces pair{rank_[local_[from]], rank_[local_[to]]};
    if (pair.from < pair.to)
      visit(Suspect{pair, r, static_cast<std::int32_t>(c), place, start, from, to});
  };
  const std::int32_t end = suspect_[r] != 0 ? suspects_end(choice, r) : 0;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
    // mutant: predicate-reads-close
    if ((graph_.automata[c].back.rw_pairs & graph_.pairs_of_read(r)) == 0) continue;
    for (std::int32_t i = choice.place[a] + 1; i < end; ++i) {
      const std::int32_t b = choice.writers[i], txn = p.writer_txn[b];
      if (!choice.in[txn] || txn == reader) continue;
      for (const auto& [q, start] : graph_.automata[c].back.by_rw)
        look(c, i, start, graph_.writer_node(c, b, start), graph_.read_node(c, r, q));
      if (by_next_[c]) break;
    }
  }
  // mutant: reads-its-own-future
  if (p.writer_txn[a] == p.n) return;  // no relation leads to T0
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, start] : graph_.automata[c].back.by_wr)
      look(c, -1, start, graph_.read_node(c, r, start), graph_.writer_node(c, a, q));
}

void ReturnPaths::by_product(const Choice& choice, std::vector<std::vector<Edge>>& found) {
  renew(choice);
  find_suspects(choice);
  const Problem& p = graph_.problem;
  std::vector<Suspect> suspects, closed;
  const auto examine = [&] {
    const std::vector<PairOfPlaces> pairs = pairs_of(suspects);
    std::vector<std::uint8_t> led(pairs.size(), 0);
    in_waves(successors_, pairs, budget_, [&](std::int32_t i, auto reached) {
      led[i] = reached(pairs[i].to);
    });
    for (std::size_t i = 0; i < suspects.size(); ++i)
      if (led[i] != 0) add_closed(suspects[i], closed);
    suspects.clear();
  };
  std::int32_t r = 0;
  for (; r < p.reads() && found.size() + closed.size() < max_found_; ++r) {
    if (choice.source[r] < 0 || !choice.in[p.read_txn[r]] || changed_key_[p.read_key[r]] == 0)
      continue;
    budget_.poll();
    each_suspect(choice, r, [&](const Suspect& one) { suspects.push_back(one); });
    if (suspects.size() > kSuspectsEach * idx(nodes_)) examine();
  }
  examine();
  if (r < p.reads() || found.size() + closed.size() > max_found_) looked_at_.clear();
  if (!closed.empty()) add_violations(choice, closed, found);
}

std::vector<PairOfPlaces> ReturnPaths::pairs_of(const std::vector<Suspect>& suspects) {
  std::vector<PairOfPlaces> pairs;
  pairs.reserve(suspects.size());
  for (const Suspect& one : suspects) pairs.push_back(one.pair);
  return pairs;
}

// Adds a walk that was found, unless enough walks have been found for the same read and check. If
// the read may have another source, one walk is enough, because the search may then take the other
// source.
void ReturnPaths::add_closed(const Suspect& one, std::vector<Suspect>& closed) const {
  const bool one_is_enough = one.place < 0 || pruner_.source[one.read] < 0;
  std::size_t same = 0;
  for (std::size_t i = closed.size(); i-- > 0 && closed[i].read == one.read;)
    same += static_cast<std::size_t>(closed[i].check == one.check &&
                                     (closed[i].place < 0) == (one.place < 0));
  if (same < (one_is_enough ? 1 : kMaxOfRead)) closed.push_back(one);
}

void ReturnPaths::add_violations(const Choice& choice, const std::vector<Suspect>& closed,
                                 std::vector<std::vector<Edge>>& found) {
  const std::size_t count = std::min(closed.size(), max_found_);
  const auto closing = [&](const Suspect& one) {
    const std::int32_t a = choice.source[one.read];
    return one.place < 0 ? Edge{one.to, one.from, Relation::wr, one.read, a, -1}
                         : Edge{one.to, one.from, Relation::closing, one.read, a, choice.writers[one.place]};
  };
  // All edges of the walks are known, so a proof can find them.
  if (fixed_) {
    for (std::size_t i = 0; i < count; ++i) found.push_back({closing(closed[i])});
    return;
  }
  incoming_ = group_by(
      nodes_, edges_.size(), [&](std::size_t i) { return rank_[local_[edges_[i].to]]; },
      [](std::size_t i) { return static_cast<std::int32_t>(i); });
  std::vector<PairOfPlaces> pairs = pairs_of(closed);
  pairs.resize(count);
  std::vector<std::vector<Edge>> walks(count);
  in_waves(successors_, pairs, budget_,
           [&](std::int32_t i, auto reached) { walks[i] = path(pairs[i], reached); });
  for (std::size_t i = 0; i < count; ++i) {
    const Suspect& one = closed[i];
    found.push_back(std::move(walks[i]));
    found.back().push_back(closing(one));
    if (one.place < 0) continue;
    const auto check = idx(one.check);
    shorten(choice, check, one.start, found.back());
    // mutant: one-source-a-round
    add_other_sources(check, one.start, found);
  }
}

// Starts the walk at the last version on it that is later than the source. The read also missed
// that version, and the shorter walk needs fewer edges.
void ReturnPaths::shorten(const Choice& choice, std::size_t check, std::int32_t start,
                          std::vector<Edge>& walk) {
  const Problem& p = graph_.problem;
  Edge& closing = walk.back();
  for (std::size_t first = walk.size() - 2; first > 0; --first) {
    const std::int32_t t = graph_.transaction_of(walk[first].from);
    if (t < 0 || t == p.read_txn[closing.read] || !choice.in[t]) continue;
    const std::int32_t w = pruner_.write_of(t, p.read_key[closing.read]);
    if (w < 0 || choice.place[w] <= choice.place[closing.a]) continue;
    if (walk[first].from != graph_.writer_node(check, w, start)) continue;
    closing.b = w;
    closing.to = walk[first].from;
    walk.erase(walk.begin(), walk.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
}

bool ReturnPaths::is_open_set_read(std::int32_t r) const {
  const auto& predicate = graph_.problem.read_predicate;
  return r >= 0 && pruner_.source[r] < 0 && !predicate.empty() && predicate[idx(r)] != 0;
}

// Applies the walk found last to the other sources of a set-read. A set-read has as many candidates
// as its key has versions, and the walk refutes most of them too; without this, each candidate
// would take a separate round. If the closing read is the set-read, the walk refutes its other
// sources. If the walk begins with the set-read, its other sources are refuted as the `b` that the
// closing read misses.
void ReturnPaths::add_other_sources(std::size_t check, std::int32_t start,
                                    std::vector<std::vector<Edge>>& found) {
  const Problem& p = graph_.problem;
  const std::vector<Edge> walk = found.back();
  const Edge first = walk.front(), closing = walk.back();
  const auto each_other = [&](std::int32_t r, auto visit) {
    for (const std::size_t i : p.candidates(r))
      if (const std::int32_t w = p.candidate[i]; pruner_.alive[i] && w != closing.a && w != closing.b)
        visit(w);
  };
  if (is_open_set_read(closing.read)) {
    each_other(closing.read, [&](std::int32_t w) {
      found.push_back(walk);
      found.back().back().a = w;
    });
    return;
  }
  if (first.relation != Relation::wr || !is_open_set_read(first.read)) return;
  // mutant: walk-from-another-key
  if (first.a != closing.b) return;
  each_other(first.read, [&](std::int32_t w) {
    const std::int32_t txn = p.writer_txn[w];
    if (txn == p.n || txn == p.read_txn[closing.read]) return;  // no rw leads to these
    graph_.wr_edges(first.read, w, [&](const Edge& e) {
      if (e.to != first.to || e.from != graph_.writer_node(check, w, start)) return;
      found.push_back(walk);
      found.back().front() = e;
      found.back().back().b = w;
      found.back().back().to = e.from;
    });
  });
}

// Returns a shortest walk from the first position of the pair to the second. Visits only nodes that
// the first position leads to.
template <typename Reached>
std::vector<Edge> ReturnPaths::path(const PairOfPlaces& pair, Reached reached) {
  std::vector<std::int32_t> queue{pair.to};
  via_[pair.to] = -2;
  for (std::size_t at = 0; at < queue.size() && via_[pair.from] == -1; ++at) {
    budget_.poll();
    for (const std::int32_t e : incoming_.of(queue[at])) {
      const std::int32_t from = rank_[local_[edges_[e].from]];
      if (via_[from] != -1 || !reached(from)) continue;
      via_[from] = e;
      queue.push_back(from);
    }
  }
  std::vector<Edge> edges;
  for (std::int32_t at = pair.from; at != pair.to; at = rank_[local_[edges.back().to]])
    edges.push_back(edges_[via_[at]]);
  for (const std::int32_t at : queue) via_[at] = -1;
  return edges;
}

}  // namespace isolang
