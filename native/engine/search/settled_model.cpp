// A search would compare the order of the known edges with everything that follows from it. Here
// nothing goes down.
#include "engine/search/settled_model.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace isolang {
namespace {

// Returns true if the graph has one node for each transaction, and its edges are pairs that follow
// from the positions of these nodes in an order.
bool has_plain_nodes(const EventGraph& graph) {
  if (!graph.uses_reads || !graph.uses_orders || graph.has_version_nodes() || graph.walks_parts()) return false;
  int with_nodes = 0;
  for (const Automaton& m : graph.automata) {
    if (m.direct()) continue;
    ++with_nodes;
    if (m.states != 1 || !m.of(Relation::rw).empty()) return false;
  }
  return with_nodes == 1;
}

}  // namespace

// SOUND BECAUSE each read has one source, so each wr edge is known and goes up. The graph has no
// steps of rw, and a ww edge leads from a writer to a later one of the order. Only a direct check
// forbids return paths (`saturated`), and `prune_direct` has put each writer with such a path to a
// read before the source of that read.
std::optional<Model> settled_model(const Pruner& pruner) {
  const EventGraph& graph = pruner.graph;
  const Problem& p = graph.problem;
  if (!pruner.saturated || pruner.passes > 0 || !has_plain_nodes(graph)) return std::nullopt;
  Model m;
  m.source = pruner.source;
  keep_included(m, p);
  m.order_start.reserve(idx(p.keys) + 1);
  m.order_start.push_back(0);
  std::vector<std::int32_t> next(idx(p.keys));  // per key, the place of its next writer in order_txn
  for (std::int32_t key = 0; key < p.keys; ++key) {
    std::int32_t writers = 0;
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w)
      writers += static_cast<std::int32_t>(p.writer_txn[w] != p.n);
    next[key] = static_cast<std::int32_t>(m.order_start.back());
    m.order_start.push_back(m.order_start.back() + writers);
  }
  m.order_txn.resize(idx(m.order_start.back()));
  bool begun = false;  // whether T0 has come
  for (const Node v : pruner.order) {
    const std::int32_t t = graph.transaction_of(v);
    if (t == p.n) begun = true;
    if (t < 0 || t == p.n) continue;
    const auto keys = pruner.keys_written_by(t);
    if (!begun && !keys.empty()) return std::nullopt;
    for (const std::int32_t key : keys) m.order_txn[next[key]++] = t;
  }
  return m;
}

}  // namespace isolang
