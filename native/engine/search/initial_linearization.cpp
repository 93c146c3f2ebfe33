// `initial_linearization` starts from an order in which each reader comes right after its source,
// and then relaxes the times of transactions for a fixed number of sweeps.
#include "engine/search/initial_linearization.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/index.hpp"
#include "engine/graph/topological_order.hpp"

namespace isolang {
namespace {

constexpr int kTooShort =
    8;  // number of transactions; sessions this short do not keep their transactions together
constexpr int kSpringSweeps = 24;
// In this many of the sweeps, only reads with a single source count.
constexpr int kSingleSourceSweeps = 14;
// The time from a write to a read of it, as a share of the time between two writes of the key.
constexpr double kReadDelay = 0.1;
constexpr double kDamping = 0.3;  // the share of the old time that remains after a sweep

}  // namespace

std::vector<std::int32_t> rank_along(std::span<const Node> linearization,
                                     const Adjacency& successors, Budget& budget) {
  std::vector<std::int32_t> place(successors.start.size() - 1, -1), rank(place.size());
  for (std::size_t i = 0; i < linearization.size(); ++i)
    place[linearization[i]] = static_cast<std::int32_t>(i);
  const auto order = topological_order(successors, place, budget);
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int32_t>(i);
  return rank;
}

// Places each transaction that becomes ready as late as possible: a reader comes right after its
// source, before another writer overwrites the version.
std::vector<std::int32_t> rank_behind_sources(const Adjacency& successors, Budget& budget) {
  const std::size_t nodes = successors.start.size() - 1;
  std::vector<std::int32_t> incoming(nodes, 0), ready, rank(nodes);
  for (const std::int32_t v : successors.item) ++incoming[v];
  for (std::size_t v = nodes; v-- > 0;)
    if (incoming[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
  for (std::int32_t place = 0; !ready.empty(); ++place) {
    budget.poll();
    const std::int32_t v = ready.back();
    ready.pop_back();
    rank[v] = place;
    for (const std::int32_t w : successors.of(v))
      if (--incoming[w] == 0) ready.push_back(w);
  }
  return rank;
}

bool has_short_sessions(const Problem& p) { return p.sessions * kTooShort > p.n; }

// Models the times as springs, relaxed by Jacobi's method. A spring pulls each read to a time
// shortly after its source, more strongly if its key is written more often. A spring also pulls
// each transaction to its neighbours in the session, at the distance usual in that session. Springs
// of sessions are long and weak, but many reads connect any few hundred transactions. The guess is
// therefore soon close to the real time, except for the overall pace, which does not matter.
std::vector<Node> initial_linearization(const Pruner& pruner, Budget& budget) {
  const EventGraph& graph = pruner.graph;
  const Problem& p = graph.problem;
  if (has_short_sessions(p) || graph.automata[0].direct() || graph.walks_parts())
    return {};
  const auto n = idx(p.n);
  std::vector<std::int32_t> order(n), last(idx(p.sessions), -1), previous(n, -1),
      length(idx(p.sessions), 0);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t t) { return pruner.rank[graph.node(0, t, 0)]; });
  std::vector<double> time(n), sum(n), weight(n), first(idx(p.sessions)), gap(idx(p.sessions));
  for (std::size_t i = 0; i < n; ++i) time[order[i]] = static_cast<double>(i);
  for (std::int32_t t = 0; t < p.n; ++t) {
    const auto session = idx(p.session[t]);
    if (++length[session] > 1) previous[t] = last[session];
    last[session] = t;
  }
  for (std::int32_t t = 0; t < p.n; ++t)
    if (previous[t] < 0) first[p.session[t]] = time[t];
  const auto pull = [&](std::int32_t before, std::int32_t after, double distance, double strength) {
    sum[after] += strength * (time[before] + distance);
    sum[before] += strength * (time[after] - distance);
    weight[after] += strength;
    weight[before] += strength;
  };
  // Returns the transaction of the only source or of the nearest one, or -1 for T0.
  const auto source = [&](std::int32_t r) {
    const auto txn = [&](std::int32_t w) { return p.writer_txn[w] == p.n ? -1 : p.writer_txn[w]; };
    if (pruner.source[r] >= 0) return txn(pruner.source[r]);
    const double when = time[p.read_txn[r]];
    std::int32_t best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t i : p.candidates(r)) {
      const std::int32_t t = txn(p.candidate[i]);
      if (!pruner.alive[i] || t < 0 || std::abs(when - time[t]) >= least) continue;
      best = t;
      least = std::abs(when - time[t]);
    }
    return best;
  };
  for (int sweep = 0; sweep < kSpringSweeps; ++sweep) {
    budget.check();
    std::ranges::fill(sum, 0.0);
    std::ranges::fill(weight, 0.0);
    for (std::size_t s = 0; s < gap.size(); ++s)
      if (length[s] > 1) gap[s] = std::max(1.0, (time[last[s]] - first[s]) / (length[s] - 1));
    for (std::int32_t t = 0; t < p.n; ++t)
      if (previous[t] >= 0) {
        const double distance = gap[p.session[t]];
        pull(previous[t], t, distance, 1 / (distance * distance));
      }
    for (std::int32_t r = 0; r < p.reads(); ++r) {
      if (sweep < kSingleSourceSweeps && pruner.source[r] < 0) continue;
      const std::int32_t key = p.read_key[r];
      const double between = static_cast<double>(p.n) / (p.key_start[key + 1] - p.key_start[key]);
      if (const std::int32_t writer = source(r); writer >= 0)
        pull(writer, p.read_txn[r], kReadDelay * between, 1 / (between * between));
    }
    for (std::size_t t = 0; t < n; ++t)
      if (weight[t] > 0) time[t] = kDamping * time[t] + (1 - kDamping) * sum[t] / weight[t];
  }
  std::ranges::sort(order, {}, [&](std::int32_t t) { return time[t]; });
  std::vector<Node> linearization;
  for (const std::int32_t t : order)
    for (std::size_t c = 0; c < graph.automata.size(); ++c)
      for (std::int32_t q = 0; q < graph.automata[c].states && !graph.automata[c].direct(); ++q)
        linearization.push_back(graph.node(c, t, q));
  return linearization;
}

}  // namespace isolang
