// `from_pruning` and `from_search` return the steps of a refutation. A conclusion of pruning is
// proved only if a later step needs it (`before`, `eliminated`, `source`), and only with edges that
// were known when pruning made it. The argument therefore cannot be circular.
#include "engine/proof/refutation.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

#include "core/index.hpp"
#include "core/required.hpp"

namespace isolang {
namespace {

std::uint64_t code(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
}

}  // namespace

Refuter::Refuter(const Pruner& pruner, Budget& budget)
    : pruner_(pruner), graph_(pruner.graph), p_(pruner.graph.problem), budget_(budget) {
  const auto& edges = graph_.edges;
  const auto number = [](std::size_t i) { return static_cast<std::int32_t>(i); };
  outgoing_ =
      group_by(graph_.nodes(), edges.size(), [&](std::size_t i) { return edges[i].from; }, number);
  incoming_ =
      group_by(graph_.nodes(), edges.size(), [&](std::size_t i) { return edges[i].to; }, number);
  readers_ = pruner.readers();
  for (std::size_t i = 0; i < pruner.orders.size(); ++i)
    order_of_.emplace(code(pruner.orders[i].before, pruner.orders[i].after), i);
  for (std::size_t i = 0; i < p_.vo_before.size(); ++i)
    shown_.insert(code(p_.vo_before[i], p_.vo_after[i]));
  via_.assign(idx(graph_.nodes()), -1);

  // Finds why the problem already includes some indeterminate transactions: for each, a read by a
  // transaction included earlier.
  included_by_ = pruner.included_by;
  std::vector<std::uint8_t> in(p_.inclusion.size());
  for (std::size_t t = 0; t < in.size(); ++t)
    in[t] = p_.inclusion[t] == static_cast<std::uint8_t>(Inclusion::in) && p_.unfinished[t] == 0;
  for (bool grown = true; grown;) {
    grown = false;
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      const auto first = idx(p_.candidate_start[r]);
      if (p_.candidate_start[r + 1] - p_.candidate_start[r] != 1 || !in[p_.read_txn[r]]) continue;
      const std::int32_t txn = p_.writer_txn[p_.candidate[first]];
      if (in[txn]) continue;
      in[txn] = 1;
      included_by_[txn] = r;
      grown = true;
    }
  }
}

std::vector<ProofStep> Refuter::from_pruning(std::size_t number) {
  for (auto* done : {&done_order_, &done_eliminated_}) done->clear();
  for (auto* done : {&done_choice_, &done_inclusion_, &done_impossible_}) done->clear();
  if (pruner_.closed) {
    impossible(*pruner_.closed, false);
  } else if (!pruner_.cycles.empty()) {
    std::vector<Edge> edges;
    for (const std::int32_t e : pruner_.cycles[number]) edges.push_back(graph_.edges[e]);
    for (const Edge& e : edges) known(e);
    cycle(edges);
  } else {
    const std::int32_t r = pruner_.read_without_candidates;
    if (r < 0) throw std::logic_error("refutation: pruning has found no contradiction");
    choice(r);
    for (const std::size_t i : p_.candidates(r)) eliminated(r, p_.candidate[i]);
  }
  steps_.push_back({ProofStep::Kind::rup});
  return std::exchange(steps_, {});
}

std::vector<ProofStep> Refuter::from_search(const Search& search) {
  for (const ClauseId id : search.sat().core()) {
    budget_.poll();
    if (search.sat().learned(id)) {
      ProofStep step{ProofStep::Kind::rup};
      for (const Lit l : search.sat().literals(id)) step.literals.push_back(literal(search, l));
      steps_.push_back(std::move(step));
      continue;
    }
    const auto& origin = search.origin(id);
    switch (origin.kind) {
      case Search::Origin::Kind::inclusion:
        break;  // the checker needs no step for "a source is in"
      case Search::Origin::Kind::choice:
        choice(origin.read);
        for (const std::size_t i : p_.candidates(origin.read))
          if (!pruner_.alive[i]) eliminated(origin.read, p_.candidate[i]);
        break;
      case Search::Origin::Kind::cycle: {
        std::vector<Edge> edges;
        for (std::size_t i = origin.cycle_start; i < origin.cycle_end; ++i) {
          const auto& [edge, kind] = search.cycle_edges()[i];
          edges.push_back(edge);
          if (kind == Search::CycleEdge::Kind::known)
            known(edge);
          else if (edge.read >= 0 && pruner_.source[edge.read] >= 0)
            source(edge.read, edge.a);
        }
        // The search has left out a return path of known edges.
        if (const Edge closing = edges.front(); edges.size() == 1) {
          edges = known_path(closing, graph_.edges.size());
          for (const Edge& e : edges) known(e);
          edges.push_back(closing);
        }
        cycle(edges);
        break;
      }
    }
  }
  steps_.push_back({ProofStep::Kind::rup});
  return std::move(steps_);
}

void Refuter::known(const Edge& e) {
  if (e.relation == Relation::wr || overwrites(e.relation)) source(e.read, e.a);
  if (e.relation == Relation::ww || overwrites(e.relation)) before(e.a, e.b);
}

// Returns the number of the first edge that needs this order. If no edge needs it, returns the
// number of edges.
std::size_t Refuter::first_edge(std::int32_t a, std::int32_t b) const {
  std::size_t first = graph_.edges.size();
  const auto look = [&](Node v) {
    for (const std::int32_t i : incoming_.of(v))
      if (const Edge& e = graph_.edges[i]; e.a == a && e.b == b && idx(i) < first) first = idx(i);
  };
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (std::int32_t q = 0; !graph_.automata[c].direct() && q < graph_.automata[c].states; ++q)
      for (const Node v : {graph_.writer_node(c, b, q), graph_.written_node(c, b, q)}) look(v);
  if (graph_.has_version_nodes()) look(graph_.order_node(b));
  return first;
}

std::int32_t Refuter::pass_of(std::size_t edge) const {
  const auto& epochs = pruner_.epochs;
  return static_cast<std::int32_t>(std::ranges::upper_bound(epochs, edge) - epochs.begin());
}

std::size_t Refuter::epoch_of(std::int32_t pass) const {
  return pass == 0 ? 0 : pruner_.epochs[pass - 1];
}

void Refuter::before(std::int32_t a, std::int32_t b) {
  if (p_.writer_txn[a] == p_.n || shown_.contains(code(a, b))) return;  // facts
  if (done_order_.contains(code(a, b))) return;
  const std::size_t first = first_edge(a, b);
  const auto direct = order_of_.find(code(a, b));
  if (direct != order_of_.end() && pruner_.orders[direct->second].number <= first)
    impossible(pruner_.orders[direct->second].reverse, false);
  else
    // mutant: proof-no-order
    derive_before(a, b, pass_of(first));
  done_order_.insert(code(a, b));
}

// Derives an order from the edges and sources known to this pass.
void Refuter::derive_before(std::int32_t a, std::int32_t b, std::int32_t pass) {
  if (p_.writer_txn[a] == p_.n || shown_.contains(code(a, b)) || done_order_.contains(code(a, b)))
    return;
  std::vector<Edge> closings;
  const auto add = [&](const Edge& e) {
    if (e.relation == Relation::closing || graph_.judges(e.from)) closings.push_back(e);
  };
  graph_.ww_edges(b, a, add);
  for (const std::int32_t r : readers_.of(b))
    if (pruner_.resolved_in[r] < pass) graph_.rw_closings(r, b, a, add);
  if (!refuted(closings, pass, false))
    throw std::logic_error("refutation: an order that no pass derives");
  done_order_.insert(code(a, b));
}

void Refuter::eliminated(std::int32_t read, std::int32_t writer) {
  if (!done_eliminated_.insert(code(read, writer)).second) return;
  auto i = idx(p_.candidate_start[read]);
  while (p_.candidate[i] != writer) ++i;
  const std::int32_t by = pruner_.eliminated_by[i], pass = pruner_.eliminated_in[i];
  if (by == Pruner::kContradictory) {
    // mutant: proof-no-exclusion
    contradictory(p_.writer_txn[writer]);
  } else if (by <= Pruner::kReason) {
    derive_before(writer, pruner_.reasons[idx(Pruner::kReason - by)].closing.b, pass);
    impossible(pruner_.reasons[idx(Pruner::kReason - by)], true);
  } else {
    std::vector<Edge> closings;
    const auto add = [&](const Edge& e) { closings.push_back(e); };
    if (by == Pruner::kClosesCycle) {
      graph_.wr_edges(read, writer, [&](const Edge& e) {
        if (graph_.judges(e.from)) add(e);
      });
    } else {
      // mutant: proof-no-eliminating-order
      derive_before(writer, by - 1, pass);
      graph_.rw_closings(read, writer, by - 1, add);
    }
    // mutant: proof-no-elimination
    if (!refuted(closings, pass, true))
      throw std::logic_error("refutation: a source that no pass eliminates");
  }
}

// Refutes a choice by the first of these edges that closes a cycle with the edges known to the
// pass. Edges for which the clocks still show such a cycle are tried first.
bool Refuter::refuted(const std::vector<Edge>& closings, std::int32_t pass, bool refutes_source) {
  for (const bool seen : {true, false})
    for (const Edge& e : closings) {
      if (pruner_.clocks.reaches(e.to, e.from) != seen) continue;
      if (auto way = path(e.to, e.from, epoch_of(pass))) {
        closes(e, std::move(*way), refutes_source);
        return true;
      }
    }
  return false;
}

void Refuter::contradictory(std::int32_t txn) {
  if (!done_impossible_.insert(txn).second) return;
  ProofStep step{ProofStep::Kind::anomaly};
  step.anomaly =
      p_.impossible_reason[std::ranges::lower_bound(p_.impossible, txn) - p_.impossible.begin()];
  steps_.push_back(std::move(step));
}

void Refuter::impossible(const Impossible& why, bool refutes_source) {
  closes(why.closing,
         why.back >= 0 ? std::vector{pruner_.backs[why.back]}
                       : known_path(why.closing, why.epoch),
         refutes_source);
}

// Adds the cycle closed by `closing`, the edge that makes the refuted choice. The other conditions
// of this edge are known: the source of an rw edge that refutes an order, or the order of an rw
// edge that refutes a source (which the caller has proved).
void Refuter::closes(const Edge& closing, std::vector<Edge> edges, bool refutes_source) {
  if (overwrites(closing.relation) && !refutes_source) source(closing.read, closing.a);
  for (const Edge& e : edges) known(e);
  edges.push_back(closing);
  cycle(edges);
}

void Refuter::source(std::int32_t read, std::int32_t writer) {
  choice(read);
  for (const std::size_t i : p_.candidates(read))
    if (const std::int32_t other = p_.candidate[i]; other != writer) eliminated(read, other);
}

void Refuter::choice(std::int32_t read) {
  if (!done_choice_.insert(read).second) return;
  // mutant: proof-no-reader
  inclusion(p_.read_txn[read]);
  ProofStep step{ProofStep::Kind::choice};
  step.op = p_.read_op[read];
  steps_.push_back(std::move(step));
}

void Refuter::inclusion(std::int32_t txn) {
  const std::int32_t r = included_by_[txn];
  if (r < 0 || !done_inclusion_.insert(txn).second) return;
  if (const std::int32_t w = pruner_.source[r]; w >= 0)
    source(r, w);
  else
    choice(r);
}

std::vector<Edge> Refuter::known_path(const Edge& closing, std::size_t epoch) {
  return required(path(closing.to, closing.from, epoch), "refutation: the path that an edge closes");
}

// Returns a shortest path along the edges that were known at that time; nothing if there is none.
std::optional<std::vector<Edge>> Refuter::path(Node from, Node to, std::size_t epoch) {
  if (from == to) return std::vector<Edge>();
  std::vector<Node> touched{from};
  std::deque<Node> queue{from};
  const auto rank = [&](Node v) { return pruner_.rank[v]; };
  via_[from] = -2;
  while (!queue.empty() && via_[to] == -1) {
    budget_.poll();
    const Node u = queue.front();
    queue.pop_front();
    for (const std::int32_t e : outgoing_.of(u)) {
      if (idx(e) >= epoch) break;  // edge numbers ascend
      const Node v = graph_.edges[e].to;
      if (via_[v] != -1 || rank(v) > rank(to)) continue;
      via_[v] = e;
      touched.push_back(v);
      queue.push_back(v);
    }
  }
  std::optional<std::vector<Edge>> edges;
  if (via_[to] != -1) {
    edges.emplace();
    for (Node v = to; v != from; v = edges->back().from) edges->push_back(graph_.edges[via_[v]]);
    std::ranges::reverse(*edges);
  }
  for (const Node v : touched) via_[v] = -1;
  return edges;
}

namespace {

// Applies to checks in which statements have times. Returns true if `next` and the last edge
// together are one step, and merges both into the last edge. A walk begins at a COMMIT, so it is
// never split between two statements.
bool merges_into_last(std::vector<ProofEdge>& edges, const ProofEdge& next) {
  const auto between = [](const ProofEdge& e) {
    return e.relation == Relation::po || e.relation == Relation::answered_before;
  };
  if (edges.empty()) return false;
  ProofEdge& last = edges.back();
  if (between(next)) {
    if (next.relation == Relation::po && (last.relation == Relation::so || last.relation == Relation::init))
      return true;  // edges of so and init already lead to every statement of their target
    if (last.relation != Relation::committed_before && !between(last)) return false;
    if (last.relation == Relation::po) last.relation = next.relation;
    last.to = next.to;
    last.op = next.op;
    return true;
  }
  return false;
}

}  // namespace

// Turns product edges into a closed walk of the history's relations that starts at a state 0. Moves
// inside a transaction are dropped, and a path over auxiliary nodes becomes one pair.
void Refuter::cycle(const std::vector<Edge>& edges) {
  const std::int32_t check = graph_.check_of(edges.front().from);
  ProofStep step;
  if (check < 0) {
    step.kind = ProofStep::Kind::order;
    step.key = pruner_.key_of(edges.front().a);
    for (const Edge& e : edges) step.txns.push_back(p_.writer_txn[e.a]);
    steps_.push_back(std::move(step));
    return;
  }
  step.kind = ProofStep::Kind::cycle;
  step.check = check;
  const Automaton& m = graph_.automata[check];
  std::size_t first = 0;
  if (m.distinguishes_closing()) {
    const auto closes = [&](const Edge& e) {
      const Pairs kind = e.read < 0 ? kAllPairs : graph_.pairs_of_read(e.read);
      return e.relation < Relation::writes && (m.closing[idx(e.relation)] & kind) != 0;
    };
    const auto closing = std::ranges::find_if(edges, closes);
    if (closing != edges.end())
      first = idx(closing - edges.begin() + (m.closing_first ? 0 : 1)) % edges.size();
  } else if (const auto closing = std::ranges::find(edges, Relation::closing, &Edge::relation);
      closing != edges.end())
    first = idx(closing - edges.begin() + 1) % edges.size();  // the return path, then its rw
  else
    while (!graph_.is_zero(edges[first].from)) ++first;
  if (m.by_operation()) {
    step.edges = between_operations(edges, first);
    steps_.push_back(std::move(step));
    return;
  }
  Node entered = -1;  // the node before the auxiliary chain
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& e = edges[(first + i) % edges.size()];
    if (e.relation == Relation::epsilon || e.relation == Relation::auxiliary) continue;
    const std::int32_t to = graph_.transaction_of(e.to);
    if (to < 0) {
      if (graph_.transaction_of(e.from) >= 0) entered = e.from;
      continue;
    }
    const Node start = graph_.transaction_of(e.from) < 0 ? entered : e.from;
    Relation relation = overwrites(e.relation) ? Relation::rw : e.relation;
    const std::int32_t from = graph_.transaction_of(start);
    if (graph_.transaction_of(e.from) < 0 && graph_.read_at(start) >= 0) {  // on a shared timeline
      if (relation == Relation::committed_before) relation = Relation::answered_before;
      if (relation == Relation::done) relation = Relation::committed_after;
    }
    if (relation == Relation::committed_after && from == to) relation = Relation::own_commit;
    ProofEdge out{relation, from, to, -1, -1, -1};
    if (relation == Relation::committed_before || relation == Relation::answered_before ||
        relation == Relation::po)
      out.op = p_.read_op[graph_.read_at(e.to)];
    if (relation == Relation::committed_after || relation == Relation::own_commit)
      out.op = p_.read_op[graph_.read_at(start)];
    // A `late` edge from a transaction to itself is a move inside the transaction.
    if (e.relation == Relation::late && out.from == to) continue;
    if (e.a >= 0) out.key = pruner_.key_of(e.a);
    if (e.read >= 0) out.op = p_.read_op[e.read];
    if (relation == Relation::rw) out.writer = p_.writer_txn[e.a];
    // mutant: proof-many-statements
    if (!m.statements_are_joined() || !merges_into_last(step.edges, out)) step.edges.push_back(out);
  }
  steps_.push_back(std::move(step));
}

// Turns product edges into a walk that records where it meets a transaction, and whether it leaves
// the transaction by a later statement. Consecutive po edges become one step, and a walk that
// reaches COMMIT has no such step.
std::vector<ProofEdge> Refuter::between_operations(const std::vector<Edge>& edges,
                                                   std::size_t first) const {
  std::vector<ProofEdge> result;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& e = edges[(first + i) % edges.size()];
    const std::int32_t from = graph_.transaction_of(e.from), to = graph_.transaction_of(e.to);
    const ProofEdge* const met = result.empty() ? nullptr : &result.back();
    switch (e.relation) {
      case Relation::wr:
        result.push_back(
            {Relation::wr, from, to, pruner_.key_of(e.a), p_.read_op[e.read], -1});
        break;
      case Relation::ww:
        result.push_back({Relation::ww, from, to, pruner_.key_of(e.a), -1, -1});
        break;
      case Relation::rw:
      case Relation::closing: {
        const std::int64_t op = p_.read_op[e.read];
        if (met != nullptr && (met->relation == Relation::ww ||
                               (met->relation == Relation::wr && !in_one_statement(met->op, op))))
          result.push_back({Relation::po, from, from, -1, op, -1});
        result.push_back(
            {Relation::rw, from, to, pruner_.key_of(e.a), op, p_.writer_txn[e.a]});
        break;
      }
      case Relation::own_commit:
        if (met != nullptr && met->relation == Relation::wr)
          result.push_back({Relation::own_commit, from, to, -1, met->op, -1});
        else if (met != nullptr && met->relation != Relation::ww)
          result.push_back(
              {Relation::own_commit, from, to, -1, p_.read_op[graph_.read_at(e.from)], -1});
        break;
      case Relation::po:
      case Relation::epsilon:
      case Relation::auxiliary:
        break;
      default:
        if (from >= 0 && to >= 0)
          result.push_back({e.relation, from, to, -1, -1, -1});
        else if (from >= 0)
          result.push_back({e.relation, from, -1, -1, -1, -1});
        else
          result.back().to = to;
    }
  }
  return result;
}

bool Refuter::in_one_statement(std::int64_t op, std::int64_t other) const {
  if (op == other || p_.read_statement.empty()) return op == other;
  const auto statement = [&](std::int64_t of) {
    const auto at = std::ranges::lower_bound(p_.read_op, of) - p_.read_op.begin();
    return p_.read_statement[idx(at)];
  };
  return statement(op) == statement(other);
}

ProofLiteral Refuter::literal(const Search& search, Lit l) const {
  const auto& m = search.meaning(l.variable());
  switch (m.kind) {
    case Search::Meaning::Kind::before: {
      const std::int32_t a = p_.writer_txn[m.a], b = p_.writer_txn[m.b];
      // "not a before b" means "b before a"
      return l.negated()
                 ? ProofLiteral{ProofLiteral::Kind::before, true, pruner_.key_of(m.a), b, a, -1}
                 : ProofLiteral{ProofLiteral::Kind::before, true, pruner_.key_of(m.a), a, b, -1};
    }
    case Search::Meaning::Kind::source:
      return {ProofLiteral::Kind::source, !l.negated(),   -1, -1,
              p_.writer_txn[m.b],         p_.read_op[m.a]};
    default:
      return {ProofLiteral::Kind::in, !l.negated(), -1, m.a, -1, -1};
  }
}

}  // namespace isolang
