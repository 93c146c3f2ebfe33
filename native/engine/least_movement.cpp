// Which value the search tries first: the one for which least has to move in the order. Every choice overturned is a
// move, and whoever moves passes others, of which some have to be decided anew: with long ways that goes on for ever,
// with short ones it dies out. (On write-heavy histories the difference is between fifty thousand conflicts and one.)
#include <algorithm>
#include <limits>

#include "engine/search.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// How far down the order the edges of "a before b" go: a or a reader of it, or else b, has to move over so much.
std::int32_t Search::descent_of_order(std::int32_t a, std::int32_t b) const {
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  const auto fall = [&](const Edge& e) { most = std::max(most, rank(e.from) - rank(e.to)); };
  graph_.ww_edges(a, b, fall);
  for (const std::int32_t r : readers_.of(a)) graph_.rw_edges(r, a, b, fall);
  for (const std::int32_t s : sources_at_.of(a))
    if (sat_.value(Lit::positive(s)) > 0) graph_.rw_edges(meaning_[idx(s)].a, a, b, fall);
  return most;
}

// The same for a read of this candidate: the reader, or else the candidate, or the one of the writers between the two
// that is nearest to neither. (The writers stand as of the last inspection, which does for a guess.)
std::int32_t Search::descent_of_source(std::int32_t r, std::int32_t w) const {
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  Node reader = -1;
  graph_.wr_edges(r, w, [&](const Edge& e) {
    most = std::max(most, rank(e.from) - rank(e.to));
    if (reader < 0) reader = e.to;
  });
  if (most > 0 || reader < 0 || !graph_.uses_orders) return most;
  const std::int32_t low = rank(graph_.order_node(w)), high = rank(reader), own = pruner_.own_writer[idx(r)];
  most = 0;
  for (const std::int32_t o : orders_at_.of(w)) {
    const Meaning& pair = meaning_[idx(o)];
    const std::int32_t other = pair.a == w ? pair.b : pair.a;
    const int value = sat_.value(Lit::positive(o));
    if (other != own && (pair.a == w ? value > 0 : value < 0))
      most = std::max(most, high - rank(graph_.order_node(other)));
  }
  const auto between = [&](std::int32_t x) {
    const std::int32_t at = rank(graph_.order_node(x));
    if (x != own && low < at && at < high) most = std::max(most, std::min(at - low, high - at));
  };
  const std::int32_t key = p_.read_key[idx(r)];
  const auto first = writers_.begin() + p_.key_start[idx(key)], last = writers_.begin() + p_.key_start[idx(key) + 1];
  const auto middle = std::partition_point(
      first, last, [&](std::int32_t x) { return rank(graph_.order_node(x)) < low + (high - low) / 2; });
  if (middle != last) between(*middle);
  if (middle != first) between(middle[-1]);
  return most;
}

// The possible candidate with the least descent, the latest of several.
std::int32_t Search::nearest_source(std::int32_t r) const {
  std::int32_t best = -1, variable = -1, least = 0;
  const auto later = [&](std::int32_t w) {
    return graph_.uses_orders && rank(graph_.order_node(w)) > rank(graph_.order_node(best));
  };
  for (const std::size_t i : p_.candidates(r)) {
    if (!pruner_.alive[i] || sat_.value(Lit::positive(source_variable_[i])) < 0) continue;
    const std::int32_t w = p_.candidate[i], descent = descent_of_source(r, w);
    if (best >= 0 && (descent > least || (descent == least && !later(w)))) continue;
    best = w;
    variable = source_variable_[i];
    least = descent;
  }
  return variable;
}

// Where one of several nodes of a transaction has moved, they may stand far apart now, and everything in between
// overlaps with it. So what stands there is sorted anew: each node as late as it can, but none later than the last one
// of its transaction.
void Search::draw_together() {
  const auto nodes_of = [&](std::int32_t txn, auto visit) {
    for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
      if (graph_.automata[c].direct()) continue;
      for (std::int32_t q = 0; q < graph_.automata[c].states; ++q) visit(graph_.node(c, txn, q));
    }
  };
  std::vector<std::pair<std::int32_t, std::int32_t>> stretches;
  for (const Node v : order_.moved) {
    const std::int32_t t = graph_.transaction_of(v);
    if (t < 0) continue;
    std::int32_t low = rank(v), high = low, nodes = 0;
    nodes_of(t, [&](Node u) {
      low = std::min(low, rank(u));
      high = std::max(high, rank(u));
      ++nodes;
    });
    if (high - low >= nodes) stretches.emplace_back(low, high);  // else nothing else stands between
  }
  std::ranges::sort(stretches);
  const auto latest = [&](Node v) {
    std::int32_t last = rank(v);
    if (const std::int32_t t = graph_.transaction_of(v); t >= 0)
      nodes_of(t, [&](Node u) { last = std::max(last, rank(u)); });
    return last;
  };
  for (std::size_t i = 0; i < stretches.size();) {
    auto [first, last] = stretches[i];
    while (i < stretches.size() && stretches[i].first <= last) last = std::max(last, stretches[i++].second);
    budget_.poll();
    order_.sort_late(first, last, latest);
  }
}

}  // namespace isolang
