#include "engine/search.hpp"

#include <algorithm>
#include <numeric>

#include "engine/topological_order.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int32_t kGroup = 64, kOneGroup = 4096;  // nodes

std::uint64_t pair_code(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(std::min(a, b)) << 32 | static_cast<std::uint32_t>(std::max(a, b));
}

}  // namespace

// The edges from the nodes of each held transaction to those of the next ones, in an order of all nodes.
std::vector<Search::Arrow> Search::holds(const EventGraph& graph, const Start& start) {
  std::vector<Arrow> found;
  if (start.held.empty()) return found;
  std::vector<Node> order(start.rank.size());
  for (std::size_t v = 0; v < order.size(); ++v) order[idx(start.rank[v])] = static_cast<Node>(v);
  Node before = -1;
  for (const Node v : order) {
    const std::int32_t t = graph.transaction_of(v);
    if (t < 0 || t == graph.problem.n || start.held[idx(t)] == 0) continue;
    if (before >= 0) found.push_back({before, v});
    before = v;
  }
  return found;
}

Search::Search(const Pruner& pruner, Budget& budget, std::uint64_t seed, std::size_t max_bytes, Start start)
    : pruner_(pruner),
      graph_(pruner.graph),
      p_(pruner.graph.problem),
      budget_(budget),
      sat_(*this, budget, seed),
      may_start_anew_(start.rank.empty()),
      holds_(holds(graph_, start)),
      order_(graph_.edges.size() + holds_.size(), [this](std::size_t i) { return permanent(i).from; },
             [this](std::size_t i) { return permanent(i).to; }, may_start_anew_ ? pruner.rank : std::move(start.rank)),
      permanent_(order_.edges()),
      orders_at_(p_.writer_txn.size()),
      sources_at_(p_.writer_txn.size()),
      ways_back_(pruner, budget) {
  sat_.max_bytes = max_bytes;
  source_variable_.assign(p_.candidate.size(), -1);
  in_variable_.assign(p_.inclusion.size(), -1);
  active_read_.assign(idx(p_.reads()), 0);
  source_.assign(idx(p_.reads()), -1);
  sources_taken_.assign(idx(p_.reads()), 0);
  readers_ = pruner.readers();
  place_.assign(p_.writer_txn.size(), 0);
  writers_.resize(p_.writer_txn.size());
  std::iota(writers_.begin(), writers_.end(), 0);
  stale_txn_.assign(idx(p_.n + 1), 1);
  stale_key_.assign(idx(p_.keys), 1);
  settled_key_.resize(idx(p_.keys));
  for (std::int32_t key = 0; graph_.uses_orders && key < p_.keys; ++key) settled_key_[idx(key)] = pruner.settled(key);
  read_key_.assign(idx(p_.keys), 0);
  new_ways_.assign(idx(p_.n), 0);
  open_txn_.assign(idx(p_.n), 0);
  if (!graph_.uses_reads) return;
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    const std::int32_t key = p_.read_key[idx(r)];
    if (pruner.source[idx(r)] < 0) open_txn_[idx(p_.read_txn[idx(r)])] = 1;
    if (pruner.source[idx(r)] >= 0 && settled_key_[idx(key)] && certain(p_.read_txn[idx(r)])) {
      source_[idx(r)] = pruner.source[idx(r)];
    } else {
      inspected_reads_.push_back(r);
      read_key_[idx(key)] = 1;
    }
  }
  if (graph_.uses_orders && !inspected_reads_.empty()) {
    std::size_t steps = 0;
    for (const Automaton& m : graph_.automata) steps += m.of(Relation::rw).size();
    lowest_.resize(steps * writers_.size());
  }
  // Reads that bear on which transactions are in are variables from the start.
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    if (pruner.source[idx(r)] >= 0) continue;
    bool conditional = !certain(p_.read_txn[idx(r)]);
    for (const std::size_t i : p_.candidates(r))
      conditional |= pruner.alive[i] && !certain(p_.writer_txn[idx(p_.candidate[i])]);
    if (conditional) activate_read(r);
  }
}

std::vector<std::int32_t> Search::wanted_transactions() const {
  std::vector<std::int32_t> transactions;
  const auto add = [&](std::int32_t t) {
    if (t != p_.n) transactions.push_back(t);
  };
  for (const auto& [a, b, read] : want_order_) {
    add(p_.writer_txn[idx(a)]);
    add(p_.writer_txn[idx(b)]);
    if (read >= 0) add(p_.read_txn[idx(read)]);
  }
  for (const std::int32_t r : want_read_) add(p_.read_txn[idx(r)]);
  return transactions;
}

// Those at the ends of each stretch of edges that hold: between the two nothing else bears on the cycle.
std::vector<std::int32_t> Search::held_in_the_way(bool by_every_conflict) const {
  std::vector<std::int32_t> transactions;
  const auto holds = [&](std::size_t i) { return cycle_edges_[i].kind == CycleEdge::Kind::holds; };
  const auto look_at = [&](const Origin& origin) {
    for (std::size_t i = origin.cycle_start; i < origin.cycle_end; ++i) {
      if (!holds(i)) continue;
      const bool first = i == origin.cycle_start || !holds(i - 1);
      const bool last = i + 1 == origin.cycle_end || !holds(i + 1);
      if (first) transactions.push_back(graph_.transaction_of(cycle_edges_[i].edge.from));
      if (last) transactions.push_back(graph_.transaction_of(cycle_edges_[i].edge.to));
    }
  };
  if (by_every_conflict)
    for (const auto& [id, origin] : origins_) look_at(origin);
  else
    for (const ClauseId id : sat_.core())
      if (!sat_.learned(id)) look_at(origins_.at(id));
  return transactions;
}

std::int32_t Search::variable(Meaning meaning, std::int32_t at) {
  meaning_.push_back(meaning);
  processed_.push_back(0);
  if (graph_.nodes() <= kOneGroup) return sat_.new_variable();
  // Grouped by time: distant choices have little to do with one another. The sources come before the orders that they
  // ask for: an order decided first would not know of its readers, and take the wrong side.
  return sat_.new_variable(at / kGroup * 2 + (meaning.kind == Meaning::Kind::before));
}

std::int32_t Search::in_variable(std::int32_t txn) {
  if (certain(txn)) return -1;
  if (in_variable_[idx(txn)] < 0) in_variable_[idx(txn)] = variable({Meaning::Kind::in, txn, -1}, 0);
  return in_variable_[idx(txn)];
}

void Search::Named::add(std::int32_t writer, std::int32_t variable) {
  std::int32_t& list = list_[idx(writer)];
  if (list < 0) {
    list = static_cast<std::int32_t>(lists_.size());
    lists_.emplace_back();
  }
  lists_[idx(list)].push_back(variable);
}

std::span<const std::int32_t> Search::Named::of(std::int32_t writer) const {
  const std::int32_t list = list_[idx(writer)];
  return list < 0 ? std::span<const std::int32_t>() : lists_[idx(list)];
}

std::int32_t Search::find_order(std::int32_t a, std::int32_t b) const {
  const auto it = order_variable_.find(pair_code(a, b));
  return it == order_variable_.end() ? -1 : it->second;
}

// In the order; -1 if there is no such read, or no node for it.
std::int32_t Search::place_of(std::int32_t read) const {
  return read < 0 || graph_.automata[0].direct() ? -1 : rank(graph_.node(0, p_.read_txn[idx(read)], 0));
}

void Search::activate_order(std::int32_t a, std::int32_t b, std::int32_t read) {
  if (find_order(a, b) >= 0) return;
  const std::int32_t last = std::max(rank(graph_.order_node(a)), rank(graph_.order_node(b)));
  const std::int32_t v =
      variable({Meaning::Kind::before, std::min(a, b), std::max(a, b)}, std::max(last, place_of(read)));
  order_variable_.emplace(pair_code(a, b), v);
  orders_at_.add(a, v);
  orders_at_.add(b, v);
}

void Search::activate_read(std::int32_t r) {
  if (active_read_[idx(r)]) return;
  active_read_[idx(r)] = 1;
  std::vector<Lit> choice;
  if (const std::int32_t in = in_variable(p_.read_txn[idx(r)]); in >= 0) choice.push_back(Lit::negative(in));
  std::vector<std::pair<std::int32_t, std::int32_t>> inclusions;
  for (const std::size_t i : p_.candidates(r)) {
    if (!pruner_.alive[i]) continue;
    const std::int32_t w = p_.candidate[i];
    const std::int32_t v = variable({Meaning::Kind::source, r, w}, place_of(r));
    source_variable_[i] = v;
    sources_at_.add(w, v);
    choice.push_back(Lit::positive(v));
    if (const std::int32_t in = in_variable(p_.writer_txn[idx(w)]); in >= 0) inclusions.emplace_back(v, in);
  }
  origins_[sat_.add_clause(std::move(choice))] = {Origin::Kind::choice, r};
  for (const auto& [v, in] : inclusions)
    origins_[sat_.add_clause({Lit::negative(v), Lit::positive(in)})] = {Origin::Kind::inclusion, r};
}

// --- the theory -------------------------------------------------------------------------------------------------

bool Search::add(const Edge& e, std::int32_t variable, std::int32_t another) {
  if (pruner_.clocks.reaches(e.from, e.to)) return true;
  if (order_.add(e.from, e.to)) {
    added_.push_back({e, variable, another});
    return true;
  }
  using enum CycleEdge::Kind;
  pending_.assign(1, {e, added});
  for (const std::int32_t number : order_.path) {
    if (idx(number) < graph_.edges.size()) {
      pending_.push_back({graph_.edges[idx(number)], known});
    } else if (idx(number) < permanent_) {
      const auto [from, to] = permanent(idx(number));
      pending_.push_back({{from, to, Relation::so}, holds});
    } else {
      pending_.push_back({added_[idx(number) - permanent_].edge, added});
    }
  }
  return false;
}

bool Search::assign(Lit literal, std::vector<Lit>& conflict) {
  const std::int32_t v = literal.variable();
  processed_[idx(v)] = 1;
  const Meaning m = meaning_[idx(v)];
  if (m.kind == Meaning::Kind::source && !literal.negated()) ++sources_taken_[idx(m.a)];
  bool fine = true;
  std::int32_t another = v;
  const auto try_add = [&](const Edge& e) { fine = fine && add(e, v, another); };
  if (m.kind == Meaning::Kind::before) {
    const std::int32_t a = literal.negated() ? m.b : m.a, b = literal.negated() ? m.a : m.b;
    graph_.ww_edges(a, b, try_add);
    for (const std::int32_t r : readers_.of(a)) graph_.rw_edges(r, a, b, try_add);
    for (const std::int32_t s : sources_at_.of(a)) {
      if (!processed_[idx(s)] || sat_.value(Lit::positive(s)) <= 0) continue;
      another = s;
      graph_.rw_edges(meaning_[idx(s)].a, a, b, try_add);
    }
  } else if (m.kind == Meaning::Kind::source && !literal.negated()) {
    graph_.wr_edges(m.a, m.b, try_add);
    for (const std::int32_t o : orders_at_.of(m.b)) {
      if (!processed_[idx(o)]) continue;
      const Meaning& pair = meaning_[idx(o)];
      const bool first = sat_.value(Lit::positive(o)) > 0;
      another = o;
      if ((first ? pair.a : pair.b) == m.b) graph_.rw_edges(m.a, m.b, first ? pair.b : pair.a, try_add);
    }
  }
  if (fine) return true;
  conflict.clear();
  for (const auto& [edge, kind] : pending_)
    if (kind == CycleEdge::Kind::added) collect(edge, conflict);
  return false;
}

// The variables behind an added edge, negated. A source that pruning knew is none.
void Search::collect(const Edge& e, std::vector<Lit>& conflict) const {
  const auto add_false = [&](Lit l) {
    if (std::ranges::find(conflict, l) == conflict.end()) conflict.push_back(l);
  };
  if (e.relation == Relation::ww || e.relation == Relation::rw) {
    const std::int32_t v = find_order(e.a, e.b);
    if (v >= 0) add_false(e.a < e.b ? Lit::negative(v) : Lit::positive(v));  // else T0 comes first, a fact
  }
  if (e.relation == Relation::wr || e.relation == Relation::rw) {
    if (pruner_.source[idx(e.read)] >= 0) return;
    for (const std::size_t i : p_.candidates(e.read))
      if (p_.candidate[i] == e.a) add_false(Lit::negative(source_variable_[i]));
  }
}

void Search::unassign(Lit literal) {
  processed_[idx(literal.variable())] = 0;
  const Meaning& m = meaning_[idx(literal.variable())];
  if (m.kind == Meaning::Kind::source && !literal.negated()) --sources_taken_[idx(m.a)];
}

void Search::forget_open(std::size_t mark) {
  const auto open = [&](std::int32_t v) { return sat_.value(Lit::positive(v)) == 0; };
  for (std::size_t number = mark; number < order_.edges(); ++number)
    if (const Added& e = added_[number - permanent_]; open(e.variable) || open(e.another))
      order_.remove(static_cast<std::int32_t>(number));
}

void Search::undo(std::size_t mark) {
  order_.shrink(mark);
  added_.resize(mark - permanent_);
}

void Search::lemma(ClauseId id) {
  const std::size_t start = cycle_edges_.size();
  cycle_edges_.insert(cycle_edges_.end(), pending_.begin(), pending_.end());
  origins_[id] = {Origin::Kind::cycle, -1, start, cycle_edges_.size()};
}

Lit Search::choice(std::int32_t v) {
  const Meaning& m = meaning_[idx(v)];
  switch (m.kind) {
    case Meaning::Kind::before:
      if (descent_of_order(m.a, m.b) < descent_of_order(m.b, m.a)) return Lit::positive(v);
      break;
    case Meaning::Kind::source:
      if (sources_taken_[idx(m.a)] == 0) return Lit::positive(nearest_source(m.a));
      break;
    case Meaning::Kind::in:
      break;
  }
  return Lit::negative(v);
}

// Where no check uses the version order, any one will do that contains what the data shows.
std::vector<std::int32_t> Search::shown_order() const {
  const auto writers = static_cast<std::int32_t>(p_.writer_txn.size());
  const auto successors = group_by(
      writers, p_.vo_before.size(), [&](std::size_t i) { return p_.vo_before[i]; },
      [&](std::size_t i) { return p_.vo_after[i]; });
  auto order = topological_order(successors, pruner_.keys_of_writers(), budget_);
  std::ranges::stable_sort(order, {}, [&](std::int32_t w) { return pruner_.key_of(w); });
  return order;
}

void keep_included(Model& m, const Problem& p) {
  std::vector<std::uint8_t> in(p.inclusion.size());
  for (std::size_t t = 0; t < in.size(); ++t) in[t] = p.inclusion[t] == static_cast<std::uint8_t>(Inclusion::in);
  for (bool grown = true; grown;) {
    grown = false;
    for (std::int32_t r = 0; r < p.reads(); ++r) {
      if (!in[idx(p.read_txn[idx(r)])] || m.source[idx(r)] < 0) continue;
      auto& writer_in = in[idx(p.writer_txn[idx(m.source[idx(r)])])];
      grown |= writer_in == 0;
      writer_in = 1;
    }
  }
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (!in[idx(p.read_txn[idx(r)])]) m.source[idx(r)] = -1;
}

Model Search::model() const {
  Model m;
  m.source.assign(idx(p_.reads()), -1);
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    if (graph_.uses_reads) {
      m.source[idx(r)] = source_[idx(r)];
    } else if (p_.candidate_start[idx(r)] < p_.candidate_start[idx(r) + 1]) {
      m.source[idx(r)] = p_.candidate[static_cast<std::size_t>(p_.candidate_start[idx(r)])];
    }
  }
  keep_included(m, p_);
  const std::vector<std::int32_t> writers = graph_.uses_orders ? writers_ : shown_order();
  m.order_start.push_back(0);
  for (std::int32_t key = 0; key < p_.keys; ++key) {
    for (std::int32_t i = p_.key_start[idx(key)]; i < p_.key_start[idx(key) + 1]; ++i)
      if (const std::int32_t txn = p_.writer_txn[idx(writers[idx(i)])]; txn != p_.n) m.order_txn.push_back(txn);
    m.order_start.push_back(static_cast<std::int64_t>(m.order_txn.size()));
  }
  return m;
}

}  // namespace isolang
