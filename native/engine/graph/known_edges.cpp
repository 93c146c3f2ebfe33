// Derives the known edges from reads with a single candidate and from list reads. `short_cycles`
// then searches for short cycles within strongly connected components.
#include "engine/graph/known_edges.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

// The search follows anti-dependencies up to this many steps beyond the version read, and to this
// many versions in total, because a version with lost updates has several successors.
constexpr std::size_t kVersions = 4, kSuccessors = 8;

bool has(std::uint8_t set, KnownRelation relation) { return (set >> idx(relation) & 1) != 0; }

struct Successor {
  std::int32_t writer;
  std::vector<std::int64_t> shown;
};

// The writers that come soon after a writer.
class Versions {
 public:
  Versions(const Problem& p, std::int32_t low, std::int32_t high) : p_(p) {
    const auto near = [&](std::int32_t w) {
      const std::int32_t t = p.writer_txn[w];
      return (t >= low && t < high) || t == p.n;
    };
    for (std::size_t i = 0; i < p.vo_before.size(); ++i)
      if (near(p.vo_before[i]) && near(p.vo_after[i])) {
        put(p.vo_before[i], p.vo_after[i], -1);
        listed_.emplace(p.vo_before[i], true);
      }
    writers_ = room_by(high - low, p.writer_txn.size(), [&](std::size_t w) {
      const std::int32_t t = p.writer_txn[w];
      return t >= low && t < high ? t - low : -1;
    });
    Filling filling(writers_);
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(p.writer_txn.size()); ++w)
      if (const std::int32_t t = p.writer_txn[w]; t >= low && t < high) filling.put(t - low, w);
    low_ = low;
  }

  // Records that a transaction read a version and also writes the key: its write comes right after
  // that version.
  void overwritten(std::int32_t source, std::int32_t reader, std::int32_t key, std::int64_t op) {
    if (listed_.contains(source)) return;
    const auto own = writers_.of(reader - low_);
    const auto first = p_.key_start[key], last = p_.key_start[key + 1];
    const auto found = std::ranges::lower_bound(own, first);
    if (found != own.end() && *found < last) put(source, *found, op);
  }

  // Returns the versions that come right after the version of writer `w`, each with the read that
  // shows it. If a list shows the order, the read is -1, because anyone who uses the key reads its
  // lists.
  std::vector<std::pair<std::int32_t, std::int64_t>> next(std::int32_t w) const {
    if (const auto found = next_.find(w); found != next_.end()) return found->second;
    if (p_.writer_txn[w] != p_.n) return {};
    // If no version of a key is known to be the first, all versions come after T0's.
    const auto after = std::ranges::upper_bound(p_.key_start, w);
    std::vector<std::pair<std::int32_t, std::int64_t>> all;
    if (idx(*after - w - 1) <= kSuccessors)
      for (std::int32_t later = w + 1; later < *after; ++later) all.emplace_back(later, -1);
    return all;
  }

  // Returns the versions that come soon after this version, nearest first.
  std::vector<Successor> later(std::int32_t w) const {
    std::vector<Successor> found, front = {{w, {}}};
    const auto among = [](const std::vector<Successor>& some, std::int32_t one) {
      return std::ranges::any_of(some, [&](const Successor& s) { return s.writer == one; });
    };
    for (std::size_t i = 0; i < kVersions && found.size() < kSuccessors && !front.empty(); ++i) {
      std::vector<Successor> following;
      for (const Successor& one : front) {
        const auto direct = next(one.writer);
        for (std::size_t j = 0; j < std::min(direct.size(), kSuccessors); ++j) {
          const auto [to, op] = direct[j];
          if (to == w || among(found, to) || among(following, to)) continue;
          following.push_back({to, one.shown});
          if (op >= 0) following.back().shown.push_back(op);
        }
      }
      found.insert(found.end(), following.begin(), following.end());
      front = std::move(following);
    }
    if (found.size() > kSuccessors) found.resize(kSuccessors);
    return found;
  }

  // Returns the writers that have a version after them, ascending.
  std::vector<std::int32_t> all() const {
    std::vector<std::int32_t> found;
    for (const auto& [w, _] : next_) found.push_back(w);
    std::ranges::sort(found);
    return found;
  }

 private:
  const Problem& p_;
  std::int32_t low_ = 0;
  Adjacency writers_;  // per transaction, by key
  std::unordered_map<std::int32_t, std::vector<std::pair<std::int32_t, std::int64_t>>> next_;
  std::unordered_map<std::int32_t, bool> listed_;

  void put(std::int32_t before, std::int32_t later, std::int64_t op) {
    auto& list = next_[before];
    const auto there = std::ranges::find(list, later, [](const auto& one) { return one.first; });
    if (there == list.end())
      list.emplace_back(later, op);
    else
      there->second = op;
  }
};

}  // namespace

KnownGraph::KnownGraph(const Problem& p, std::int32_t low, std::int32_t high, std::int64_t effort,
                       Budget& budget)
    : low_(low), nodes_(high - low) {
  const auto inside = [&](std::int32_t txn) {
    return txn >= low && txn < high && p.inclusion[txn] == static_cast<std::uint8_t>(Inclusion::in);
  };
  const auto bound = [&](std::int32_t txn) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(p.read_txn, txn) -
                                     p.read_txn.begin());
  };
  std::int32_t first = bound(low), last = bound(high);
  if (last - first > effort) {
    last = first + static_cast<std::int32_t>(effort);
    complete_ = false;
  }
  const auto source_of = [&](std::int32_t r) {  // -1 unless there is exactly one candidate
    const auto one = p.candidate_start[r];
    return p.candidate_start[r + 1] - one == 1 ? p.candidate[one] : -1;
  };
  Versions versions(p, low, high);
  for (std::int32_t r = first; r < last; ++r)
    if (const std::int32_t source = source_of(r); source >= 0)
      versions.overwritten(source, p.read_txn[r], p.read_key[r], p.read_op[r]);
  for (std::int32_t r = first; r < last; ++r) {
    budget.poll();
    const std::int32_t source = source_of(r), reader = p.read_txn[r], key = p.read_key[r];
    if (source < 0 || !inside(reader)) continue;
    const std::int32_t writer = p.writer_txn[source];
    if (inside(writer))
      edges_.push_back({KnownRelation::wr, writer, reader, key, p.read_op[r]});
    for (Successor& later : versions.later(source)) {
      const std::int32_t over = p.writer_txn[later.writer];
      if (over != reader && inside(over))
        edges_.push_back({KnownRelation::rw, reader, over, key, p.read_op[r], writer,
                          std::move(later.shown)});
    }
  }
  for (const std::int32_t before : versions.all()) {
    const std::int32_t a = p.writer_txn[before];
    if (!inside(a)) continue;
    const auto key = static_cast<std::int32_t>(std::ranges::upper_bound(p.key_start, before) -
                                               p.key_start.begin() - 1);
    for (const auto& [later, op] : versions.next(before))
      if (const std::int32_t b = p.writer_txn[later]; inside(b)) {
        edges_.push_back({KnownRelation::ww, a, b, key});
        if (op >= 0) edges_.back().shown.push_back(op);
      }
  }
  std::unordered_map<std::int32_t, std::int32_t> before;  // per session, its previous transaction
  for (std::int32_t t = low; t < high; ++t) {
    if (!inside(t)) continue;
    const auto [there, is_first] = before.try_emplace(p.session[t], -1);
    if (!is_first && there->second >= 0)
      edges_.push_back({KnownRelation::so, there->second, t});
    if (p.unfinished[t] == 0) there->second = t;
  }
  // Keeps the first of parallel edges with the same relation and key.
  const auto ends = [](const KnownEdge& e) { return std::tuple(e.from, e.relation, e.to, e.key); };
  std::ranges::stable_sort(edges_, {}, ends);
  const auto same = std::ranges::unique(edges_, {}, ends);
  edges_.erase(same.begin(), same.end());
  outgoing_ = group_by(
      nodes_, edges_.size(), [&](std::size_t e) { return node(edges_[e].from); },
      [](std::size_t e) { return static_cast<std::int32_t>(e); });
}

// Returns the strongly connected component of each node, by Tarjan's algorithm with an explicit
// stack; -1 for a node alone in its component.
std::vector<std::int32_t> KnownGraph::components(std::uint8_t relations, Budget& budget) const {
  std::vector<std::int32_t> component(idx(nodes_), -1), found(idx(nodes_), -1),
      lowest(idx(nodes_), 0), open;
  std::vector<std::uint8_t> is_open(idx(nodes_), 0);
  std::vector<std::pair<std::int32_t, std::size_t>> path;
  std::int32_t count = 0, number = 0;
  const auto enter = [&](std::int32_t v) {
    found[v] = lowest[v] = count++;
    is_open[v] = 1;
    open.push_back(v);
    path.emplace_back(v, 0);
  };
  for (std::int32_t start = 0; start < nodes_; ++start) {
    if (found[start] >= 0) continue;
    enter(start);
    while (!path.empty()) {
      budget.poll();
      auto& [v, next] = path.back();
      const auto list = outgoing_.of(v);
      if (next < list.size()) {
        const KnownEdge& edge = edges_[list[next++]];
        if (!has(relations, edge.relation)) continue;
        const std::int32_t w = node(edge.to);
        if (found[w] < 0)
          enter(w);
        else if (is_open[w] != 0)
          lowest[v] = std::min(lowest[v], found[w]);
        continue;
      }
      const std::int32_t done = v;
      path.pop_back();
      if (!path.empty())
        lowest[path.back().first] = std::min(lowest[path.back().first], lowest[done]);
      if (lowest[done] != found[done]) continue;
      const bool alone = open.back() == done;
      for (std::int32_t w = -1; w != done;) {
        w = open.back();
        open.pop_back();
        is_open[w] = 0;
        component[w] = alone ? -1 : number;
      }
      number += alone ? 0 : 1;
    }
  }
  return component;
}

KnownCycles KnownGraph::short_cycles(const CycleSearch& search, Budget& budget) const {
  KnownCycles found;
  const auto component = components(search.back | search.closing, budget);
  std::vector<std::int32_t> closers;
  for (std::int32_t e = 0; e < static_cast<std::int32_t>(edges_.size()); ++e)
    if (const std::int32_t c = component[node(edges_[e].from)];
        c >= 0 && c == component[node(edges_[e].to)] && has(search.closing, edges_[e].relation))
      closers.push_back(e);
  const auto relation = [&](std::int32_t e) { return edges_[e].relation; };
  std::ranges::stable_sort(closers, {}, relation);

  std::int64_t effort = search.effort;
  const auto full = [&] { return found.cycles.size() >= search.most; };
  const auto add = [&](std::vector<std::int32_t> cycle) {
    const std::int32_t in = component[node(edges_[cycle.front()].from)];
    found.cycles.push_back({std::move(cycle), in});
  };

  // Cycles of two edges: simpler cycles come first, and two updates of one version come before
  // updates of different keys.
  using Weight = std::tuple<int, bool, std::size_t>;
  std::vector<std::tuple<Weight, std::int32_t, std::int32_t>> pairs;
  std::vector<std::int32_t> left;
  for (const std::int32_t e : closers) {
    const KnownEdge& edge = edges_[e];
    bool paired = false;
    for (const std::int32_t o : outgoing_.of(node(edge.to))) {
      budget.poll();
      const KnownEdge& other = edges_[o];
      if (other.to != edge.from || !has(search.back, other.relation)) continue;
      paired = true;
      // If either edge may close the cycle, it is found twice.
      if (other.relation > edge.relation ||
          (other.relation == edge.relation && o < e && has(search.closing, other.relation)))
        continue;
      const int anti = (edge.relation == KnownRelation::rw) + (other.relation == KnownRelation::rw);
      pairs.emplace_back(
          Weight{anti, edge.key != other.key, idx(edge.relation) + idx(other.relation)}, e, o);
    }
    if (!paired) left.push_back(e);
  }
  std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return std::get<0>(pair); });
  for (const auto& [_, e, o] : pairs) {
    if (full()) return found.complete = false, found;
    add({e, o});
  }

  // Longer cycles: a breadth-first search for a shortest path back. Of several such paths, it
  // prefers one with simpler edges.
  std::vector<std::int32_t> via(idx(nodes_), -1), stamp(idx(nodes_), -1), front, following;
  std::int32_t round = 0;
  const auto path = [&](const KnownEdge& closer, std::size_t longest) {
    const std::int32_t start = node(closer.to), end = node(closer.from);
    std::vector<std::int32_t> back;
    stamp[start] = ++round;
    front.assign(1, start);
    for (std::size_t length = 1; length <= longest && !front.empty(); ++length) {
      following.clear();
      for (const std::int32_t u : front)
        for (const std::int32_t e : outgoing_.of(u)) {
          --effort;
          const std::int32_t v = node(edges_[e].to);
          if (!has(search.back, edges_[e].relation) || component[v] != component[start] ||
              stamp[v] == round)
            continue;
          stamp[v] = round;
          via[v] = e;
          if (v == end) {
            for (std::int32_t w = v; w != start; w = node(edges_[via[w]].from))
              back.push_back(via[w]);
            std::ranges::reverse(back);
            return back;
          }
          following.push_back(v);
        }
      front.swap(following);
    }
    return back;
  };
  for (std::size_t length = 3; length <= search.longest && !left.empty(); ++length) {
    std::vector<std::int32_t> open;
    for (const std::int32_t e : left) {
      budget.poll();
      if (full() || effort <= 0) return found.complete = false, found;
      auto cycle = path(edges_[e], length - 1);
      if (cycle.empty()) {
        open.push_back(e);
        continue;
      }
      cycle.insert(cycle.begin(), e);
      add(std::move(cycle));
    }
    left = std::move(open);
  }
  return found;
}

}  // namespace isolang
