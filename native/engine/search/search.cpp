// `Search::run` alternates CDCL with a final check, which compares the current order with all edges
// that follow from it. Invariants: the dynamic order is topological for all edges whose literals
// are true, and at the end every edge that goes down belongs to an activated choice.
#include "engine/search/search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/index.hpp"
#include "core/parallel.hpp"
#include "core/prefetch.hpp"
#include "engine/graph/topological_order.hpp"
#include "engine/search/initial_linearization.hpp"

namespace isolang {
namespace {

constexpr std::int32_t kGroup = 64, kOneGroup = 4096;  // numbers of nodes

std::uint64_t pair_code(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(std::min(a, b)) << 32 |
         static_cast<std::uint32_t>(std::max(a, b));
}
// Compaction continues while the number of wanted choices shrinks by less than this factor from
// round to round.
constexpr std::size_t kWantedShrinkFactor = 3;
constexpr std::size_t kMinItemsWeight = 4000;  // writers, or reads: enough work to pay for a thread
// If the first order contradicts more than one choice for every group of this many transactions, the search starts
// again from another order.
constexpr std::size_t kMovedPerChoice = 4;
// The number of wanted orders that a part lists for each of its reads. If there are more, some of
// them may be omitted.
constexpr std::size_t kWantedPerRead = 16;
constexpr std::size_t kPrefetchedReads = 8;    // number of reads ahead whose sources are prefetched
constexpr std::size_t kMaxSources = 8;  // number of sources prefetched for one read

}  // namespace

// Returns the edges from the nodes of each held transaction to the nodes of the next held
// transaction, in an order of all nodes.
std::vector<Search::Arrow> Search::holds(const EventGraph& graph, const Start& start) {
  std::vector<Arrow> found;
  if (start.held.empty()) return found;
  std::vector<Node> order(start.rank.size());
  for (std::size_t v = 0; v < order.size(); ++v) order[start.rank[v]] = static_cast<Node>(v);
  Node before = -1;
  for (const Node v : order) {
    const std::int32_t t = graph.transaction_of(v);
    if (t < 0 || t == graph.problem.n || start.held[t] == 0) continue;
    if (before >= 0) found.push_back({before, v});
    before = v;
  }
  return found;
}

Search::Search(const Pruner& pruner, Budget& budget, std::uint64_t seed, std::size_t max_bytes,
               Start start)
    : pruner_(pruner),
      graph_(pruner.graph),
      p_(pruner.graph.problem),
      budget_(budget),
      sat_(*this, budget, seed),
      may_start_anew_(start.rank.empty()),
      holds_(holds(graph_, start)),
      order_(
          graph_.edges.size() + holds_.size(), [this](std::size_t i) { return permanent(i).from; },
          [this](std::size_t i) { return permanent(i).to; },
          may_start_anew_ ? pruner.rank : std::move(start.rank),
          holds_.empty() && pruner.successors().item.size() == graph_.edges.size() ? &pruner.successors() : nullptr),
      permanent_(order_.edges()),
      orders_at_(p_.writer_txn.size()),
      sources_at_(p_.writer_txn.size()),
      return_paths_(pruner, budget) {
  sat_.max_bytes = max_bytes;
  source_variable_ = Zeros<std::int32_t>(p_.candidate.size());
  in_variable_.assign(p_.inclusion.size(), -1);
  active_read_ = Zeros<std::uint8_t>(idx(p_.reads()));
  source_.assign(idx(p_.reads()), -1);
  sources_taken_ = Zeros<std::int32_t>(idx(p_.reads()));
  readers_ = pruner.readers();
  place_.assign(p_.writer_txn.size(), 0);
  writers_.resize(p_.writer_txn.size());
  std::iota(writers_.begin(), writers_.end(), 0);
  stale_txn_.assign(idx(p_.n + 1), 1);
  stale_key_.assign(idx(p_.keys), 1);
  settled_key_.resize(idx(p_.keys));
  for (std::int32_t key = 0; graph_.uses_orders && key < p_.keys; ++key)
    settled_key_[key] = pruner.settled(key);
  read_key_.assign(idx(p_.keys), 0);
  new_paths_.assign(idx(p_.n), 0);
  open_txn_.assign(idx(p_.n), 0);
  if (!graph_.uses_reads) return;
  checked_reads_.reserve(idx(p_.reads()));
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    const std::int32_t key = p_.read_key[r];
    if (pruner.source[r] < 0) open_txn_[p_.read_txn[r]] = 1;
    if (pruner.source[r] >= 0 && settled_key_[key] && certain(p_.read_txn[r])) {
      source_[r] = pruner.source[r];
    } else {
      checked_reads_.push_back(r);
      read_key_[key] = 1;
    }
  }
  if (graph_.uses_orders && !checked_reads_.empty()) {
    std::size_t steps = 0;
    for (const Automaton& m : graph_.automata) steps += m.of(Relation::rw).size();
    lowest_.resize(steps * writers_.size());
  }
  // ablation: eager-activation
  // Reads that decide which transactions are included are variables from the start.
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    if (pruner.source[r] >= 0) continue;
    bool conditional = !certain(p_.read_txn[r]);
    for (const std::size_t i : p_.candidates(r))
      conditional |= pruner.alive[i] && !certain(p_.writer_txn[p_.candidate[i]]);
    // mutant: inclusion-not-chosen
    if (conditional) activate_read(r);
  }
}

std::vector<std::int32_t> Search::wanted_transactions() const {
  std::vector<std::int32_t> transactions;
  const auto add = [&](std::int32_t t) {
    if (t != p_.n) transactions.push_back(t);
  };
  for (const auto& [a, b, read] : want_order_) {
    add(p_.writer_txn[a]);
    add(p_.writer_txn[b]);
    if (read >= 0) add(p_.read_txn[read]);
  }
  for (const std::int32_t r : want_read_) add(p_.read_txn[r]);
  return transactions;
}

// Returns the transactions at the ends of each stretch of edges that hold transactions in place.
// Nothing else between the two ends takes part in the cycle.
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
  // ablation: one-group
  if (graph_.nodes() <= kOneGroup) return sat_.new_variable();
  // Variables are grouped by time, because distant choices hardly depend on each other. Sources
  // come before the orders that they require: an order decided first would be decided without
  // knowing its readers, and often wrongly.
  return sat_.new_variable(at / kGroup * 2 + (meaning.kind == Meaning::Kind::before));
}

std::int32_t Search::in_variable(std::int32_t txn) {
  if (certain(txn)) return -1;
  if (in_variable_[txn] < 0) in_variable_[txn] = variable({Meaning::Kind::in, txn, -1}, 0);
  return in_variable_[txn];
}

void Search::Named::add(std::int32_t writer, std::int32_t variable) {
  std::int32_t& list = list_[writer];
  if (list == 0) {
    lists_.emplace_back();
    list = static_cast<std::int32_t>(lists_.size());
  }
  lists_[idx(list) - 1].push_back(variable);
}

std::span<const std::int32_t> Search::Named::of(std::int32_t writer) const {
  const std::int32_t list = list_[writer];
  return list == 0 ? std::span<const std::int32_t>() : lists_[idx(list) - 1];
}

std::int32_t Search::find_order(std::int32_t a, std::int32_t b) const {
  const auto it = order_variable_.find(pair_code(a, b));
  return it == order_variable_.end() ? -1 : it->second;
}

// Returns the read's position in the order; -1 if there is no such read, or no node for it.
std::int32_t Search::place_of(std::int32_t read) const {
  return read < 0 || graph_.automata[0].direct() ? -1 : rank(graph_.read_node(0, read, 0));
}

void Search::activate_order(std::int32_t a, std::int32_t b, std::int32_t read) {
  if (find_order(a, b) >= 0) return;
  const std::int32_t last = std::max(rank(graph_.order_node(a)), rank(graph_.order_node(b)));
  const std::int32_t v = variable({Meaning::Kind::before, std::min(a, b), std::max(a, b)},
                                  std::max(last, place_of(read)));
  order_variable_.emplace(pair_code(a, b), v);
  orders_at_.add(a, v);
  orders_at_.add(b, v);
}

void Search::activate_read(std::int32_t r) {
  if (active_read_[r]) return;
  active_read_[r] = 1;
  std::vector<Lit> choice;
  // mutant: out-needs-source
  if (const std::int32_t in = in_variable(p_.read_txn[r]); in >= 0)
    choice.push_back(Lit::negative(in));
  std::vector<std::pair<std::int32_t, std::int32_t>> inclusions;
  for (const std::size_t i : p_.candidates(r)) {
    if (!pruner_.alive[i]) continue;
    const std::int32_t w = p_.candidate[i];
    const std::int32_t v = variable({Meaning::Kind::source, r, w}, place_of(r));
    source_variable_[i] = 1 + v;
    sources_at_.add(w, v);
    choice.push_back(Lit::positive(v));
    if (const std::int32_t in = in_variable(p_.writer_txn[w]); in >= 0)
      inclusions.emplace_back(v, in);
  }
  origins_[sat_.add_clause(std::move(choice))] = {Origin::Kind::choice, r};
  // mutant: source-may-be-out
  for (const auto& [v, in] : inclusions)
    origins_[sat_.add_clause({Lit::negative(v), Lit::positive(in)})] = {Origin::Kind::inclusion, r};
}

// --- the theory
// -------------------------------------------------------------------------------------------------

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
      pending_.push_back({graph_.edges[number], known});
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
  processed_[v] = 1;
  const Meaning m = meaning_[v];
  if (m.kind == Meaning::Kind::source && !literal.negated()) ++sources_taken_[m.a];
  bool fine = true;
  std::int32_t another = v;
  const auto try_add = [&](const Edge& e) { fine = fine && add(e, v, another); };
  if (m.kind == Meaning::Kind::before) {
    const std::int32_t a = literal.negated() ? m.b : m.a, b = literal.negated() ? m.a : m.b;
    // mutant: order-no-ww
    graph_.ww_edges(a, b, try_add);
    // mutant: order-no-settled-rw
    for (const std::int32_t r : readers_.of(a)) graph_.rw_edges(r, a, b, try_add);
    for (const std::int32_t s : sources_at_.of(a)) {
      // mutant: order-no-chosen-rw
      if (!processed_[s] || sat_.value(Lit::positive(s)) <= 0) continue;
      another = s;
      graph_.rw_edges(meaning_[s].a, a, b, try_add);
    }
  } else if (m.kind == Meaning::Kind::source && !literal.negated()) {
    // mutant: source-no-wr
    graph_.wr_edges(m.a, m.b, try_add);
    for (const std::int32_t o : orders_at_.of(m.b)) {
      if (!processed_[o]) continue;
      const Meaning& pair = meaning_[o];
      const bool first = sat_.value(Lit::positive(o)) > 0;
      another = o;
      // mutant: source-no-rw
      if ((first ? pair.a : pair.b) == m.b)
        graph_.rw_edges(m.a, m.b, first ? pair.b : pair.a, try_add);
    }
  }
  if (fine) return true;
  conflict.clear();
  for (const auto& [edge, kind] : pending_)
    if (kind == CycleEdge::Kind::added) collect(edge, conflict);
  return false;
}

// Adds the negated variables behind an added edge. A source known to pruning is not a variable.
void Search::collect(const Edge& e, std::vector<Lit>& conflict) const {
  const auto add_false = [&](Lit l) {
    if (std::ranges::find(conflict, l) == conflict.end()) conflict.push_back(l);
  };
  if (e.relation == Relation::ww || overwrites(e.relation)) {
    const std::int32_t v = find_order(e.a, e.b);
    // mutant: conflict-forgets-order
    if (v >= 0)
      // Otherwise a is T0, which precedes b by a fact.
      add_false(e.a < e.b ? Lit::negative(v) : Lit::positive(v));
  }
  if (e.relation == Relation::wr || overwrites(e.relation)) {
    if (pruner_.source[e.read] >= 0) return;
    for (const std::size_t i : p_.candidates(e.read))
      // mutant: conflict-forgets-source
      if (p_.candidate[i] == e.a) add_false(Lit::negative(source_variable(i)));
  }
}

void Search::unassign(Lit literal) {
  processed_[literal.variable()] = 0;
  const Meaning& m = meaning_[literal.variable()];
  if (m.kind == Meaning::Kind::source && !literal.negated()) --sources_taken_[m.a];
}

void Search::forget_open(std::size_t mark) {
  const auto open = [&](std::int32_t v) { return sat_.value(Lit::positive(v)) == 0; };
  for (std::size_t number = mark; number < order_.edges(); ++number)
    // mutant: open-edges-stay-search
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
  const Meaning& m = meaning_[v];
  switch (m.kind) {
    case Meaning::Kind::before:
      if (descent_of_order(m.a, m.b) < descent_of_order(m.b, m.a)) return Lit::positive(v);
      break;
    case Meaning::Kind::source:
      if (sources_taken_[m.a] == 0) return Lit::positive(nearest_source(m.a));
      break;
    case Meaning::Kind::in:
      break;
  }
  return Lit::negative(v);
}

// Returns a version order that contains the order shown by the data. If no check uses version
// orders, any such order is acceptable.
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
  for (std::size_t t = 0; t < in.size(); ++t)
    in[t] = p.inclusion[t] == static_cast<std::uint8_t>(Inclusion::in);
  for (bool grown = true; grown;) {
    grown = false;
    for (std::int32_t r = 0; r < p.reads(); ++r) {
      if (!in[p.read_txn[r]] || m.source[r] < 0) continue;
      auto& writer_in = in[p.writer_txn[m.source[r]]];
      grown |= writer_in == 0;
      writer_in = 1;
    }
  }
  for (std::int32_t r = 0; r < p.reads(); ++r)
    // mutant: out-has-source
    if (!in[p.read_txn[r]]) m.source[r] = -1;
}

Model Search::model() const {
  Model m;
  m.source.assign(idx(p_.reads()), -1);
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    if (graph_.uses_reads) {
      m.source[r] = source_[r];
    } else if (p_.candidate_start[r] < p_.candidate_start[r + 1]) {
      m.source[r] = p_.candidate[p_.candidate_start[r]];
    }
  }
  keep_included(m, p_);
  const std::vector<std::int32_t> shown = graph_.uses_orders ? std::vector<std::int32_t>{} : shown_order();
  const std::vector<std::int32_t>& writers = graph_.uses_orders ? writers_ : shown;
  m.order_start.reserve(idx(p_.keys) + 1);
  m.order_txn.reserve(p_.writer_txn.size());
  m.order_start.push_back(0);
  for (std::int32_t key = 0; key < p_.keys; ++key) {
    for (std::int32_t i = p_.key_start[key]; i < p_.key_start[key + 1]; ++i)
      if (const std::int32_t txn = p_.writer_txn[writers[i]]; txn != p_.n)
        m.order_txn.push_back(txn);
    m.order_start.push_back(static_cast<std::int64_t>(m.order_txn.size()));
  }
  return m;
}

// Compares the order with its consequences, to find the choices that the search must decide next.
//
// If pruning has settled the order of a key's writers and the source of a read, all their edges are
// known and go up in every order. The other consequences of the positions of a key's writers, or of
// a reader and the writers of its key, can change only if one of them moves in the order, or if the
// search makes a choice about the read.

// Returns the latest candidate whose wr edges go up.
std::int32_t Search::likely_source(std::int32_t r) const {
  std::int32_t best = -1;
  for (const std::size_t i : p_.candidates(r)) {
    if (!pruner_.alive[i]) continue;
    const std::int32_t w = p_.candidate[i];
    if (source_variable(i) >= 0 && sat_.value(Lit::positive(source_variable(i))) < 0) continue;
    if (!goes_up(r, w)) continue;
    if (best < 0 || !graph_.uses_orders ||
        rank(graph_.order_node(w)) > rank(graph_.order_node(best)))
      best = w;
  }
  return best;
}

std::int32_t Search::current_source(std::int32_t r) const {
  if (pruner_.source[r] >= 0) return pruner_.source[r];
  if (!active_read_[r]) return likely_source(r);
  for (const std::size_t i : p_.candidates(r))
    if (source_variable(i) >= 0 && sat_.value(Lit::positive(source_variable(i))) > 0)
      return p_.candidate[i];
  return -1;  // only if its transaction is out
}

// Marks the transactions and keys with nodes that have moved since the last final check.
void Search::note_moved() {
  for (const Node v : order_.moved) {
    const std::int32_t t = graph_.transaction_of(v);
    if (t >= 0) {
      // mutant: reader-moves-forgotten
      // Already marked by another node.
      if (std::exchange(stale_txn_[t], std::uint8_t{1}) != 0) continue;
      // mutant: writer-moves-forgotten
      for (const std::int32_t w : pruner_.writers_of(t)) stale_key_[pruner_.key_of(w)] = 1;
    } else if (const std::int32_t w = graph_.writer_of(v); w >= 0) {
      // mutant: version-moves-forgotten
      stale_key_[pruner_.key_of(w)] = 1;
    }
  }
  order_.forget_moved();
  // ablation: everything-moved
}

void Search::sort_writers(std::int32_t key) {
  const std::int32_t first = p_.key_start[key], last = p_.key_start[key + 1];
  const auto here = [&](std::int32_t writer) { return rank(graph_.order_node(writer)); };
  const auto begin = writers_.begin() + first, end = writers_.begin() + last;
  if (!std::ranges::is_sorted(begin, end, {}, here)) {
    std::vector<std::pair<std::int32_t, std::int32_t>> ranked;
    ranked.reserve(idx(last - first));
    for (const std::int32_t writer : std::ranges::subrange(begin, end))
      ranked.emplace_back(here(writer), writer);
    std::ranges::sort(ranked);
    std::ranges::transform(ranked, begin, [](const auto& one) { return one.second; });
  }
  for (std::int32_t i = first; i < last; ++i) place_[writers_[i]] = i;
  if (read_key_[key] == 0) return;
  std::size_t step = 0;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, target] : graph_.automata[c].of(Relation::rw)) {
      std::int32_t* const lowest = lowest_.data() + step++ * writers_.size();
      std::int32_t least = std::numeric_limits<std::int32_t>::max();
      for (std::int32_t i = last - 1; i >= first; --i) {
        least = std::min(least, rank(graph_.writer_node(c, writers_[i], target)));
        lowest[i] = least;
      }
    }
}

// Finds every ww edge of this key's order that goes down. Its pair must be decided.
void Search::check_key(std::int32_t key, WantedChoices& wants) {
  const std::int32_t first = p_.key_start[key], last = p_.key_start[key + 1];
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (std::size_t s = 0; s < graph_.automata[c].of(Relation::ww).size(); ++s) {
      // mutant: ww-of-other-keys
      if ((graph_.automata[c].of_step(Relation::ww, s) & graph_.pairs_of_key(key)) == 0) continue;
      const auto [q, r] = graph_.automata[c].of(Relation::ww)[s];
      std::int32_t highest = -1;
      for (std::int32_t i = first; i < last; ++i) {
        const std::int32_t w = writers_[i], here = rank(graph_.written_node(c, w, r));
        if (highest >= here)
          // mutant: neighbours-only
          for (std::int32_t j = first; j < i && !too_many(wants); ++j)
            if (rank(graph_.writer_node(c, writers_[j], q)) >= here)
              wants.orders.push_back({writers_[j], w, -1});
        highest = std::max(highest, rank(graph_.writer_node(c, w, q)));
      }
    }
}

bool Search::goes_up(std::int32_t r, std::int32_t a) const {
  bool up = true;
  graph_.wr_edges(r, a, [&](const Edge& e) { up = up && rank(e.from) < rank(e.to); });
  return up;
}

// With `a` as the read's source, returns the position of the first writer, from position `i` on, to
// which an rw edge of the read goes down: the read misses its version, but comes after it in the
// order. If there is no such writer, returns the end of the key's writers.
std::int32_t Search::next_missed(std::int32_t r, std::int32_t a, std::int32_t i) const {
  const std::int32_t last = p_.key_start[idx(p_.read_key[r]) + 1];
  const std::int32_t own = pruner_.own_writer[r] < 0 ? -1 : place_[pruner_.own_writer[r]];
  const auto up = [&] {
    bool every = true;
    graph_.rw_edges(r, a, writers_[i],
                    [&](const Edge& e) { every = every && rank(e.from) < rank(e.to); });
    return every;
  };
  const auto all_up_from_here = [&] {
    std::size_t step = 0;
    bool every = true;
    for (std::size_t c = 0; c < graph_.automata.size(); ++c)
      for (const auto& [q, target] : graph_.automata[c].of(Relation::rw))
        every =
            every && rank(graph_.read_node(c, r, q)) < lowest_[step++ * writers_.size() + idx(i)];
    return every;
  };
  for (; i < last; ++i) {
    // mutant: own-write-ends
    if (i > own && all_up_from_here()) return last;
    if (!up()) return i;
  }
  return last;
}

// Finds every edge of this read that goes down if the read has its current source. Then either the
// read or the pair of writers must be decided.
void Search::check_read(std::int32_t r, WantedChoices& wants) {
  const std::int32_t before = std::exchange(source_[r], -1), reader = p_.read_txn[r];
  if (!certain(reader)) {
    const std::int32_t in = in_variable_[reader];
    if (in < 0 || sat_.value(Lit::positive(in)) <= 0) return;
  }
  const bool decided = pruner_.source[r] >= 0 || active_read_[r];
  const std::int32_t last = p_.key_start[idx(p_.read_key[r]) + 1];
  const auto first_missed = [&](std::int32_t a) {
    // mutant: missed-one-late
    return graph_.uses_orders ? next_missed(r, a, place_[a] + 1) : last;
  };
  // mutant: stale-wr, stale-rw
  if (!decided && before >= 0 && goes_up(r, before) && first_missed(before) == last) {
    source_[r] = before;  // its edges still go up
    return;
  }
  const std::int32_t a = source_[r] = current_source(r);
  if (a < 0) {
    wants.reads.push_back(r);
    return;
  }
  for (std::int32_t i = first_missed(a); i < last; i = next_missed(r, a, i + 1)) {
    if (!decided) {
      wants.reads.push_back(r);
      return;
    }
    if (too_many(wants)) return;
    wants.orders.push_back({a, writers_[i], r});
  }
}

// SOUND BECAUSE no orders have been chosen yet: the wanted choices are new, and the search visits
// the omitted ones again.
bool Search::too_many(WantedChoices& wants) const {
  if (order_variable_.empty() && wants.orders.size() > kWantedPerRead * kMinItemsWeight) wants.too_many = true;
  return wants.too_many;
}

// Visits the chosen source of a read. If its source is open, visits its first kMaxSources candidates.
template <typename Visit>
void Search::each_source(std::int32_t r, Visit visit) const {
  if (pruner_.source[r] >= 0) return visit(pruner_.source[r]);
  std::size_t left = kMaxSources;
  for (const std::size_t i : p_.candidates(r)) {
    if (left-- == 0) return;
    visit(p_.candidate[i]);
  }
}

// Prefetches the data of later keys and reads. This data is scattered over a large history, and
// each item is found through another item. The data is therefore fetched in steps, beginning with
// the item that is needed next.
void Search::fetch_key(std::span<const std::int32_t> keys) const {
  if (keys.size() < 2 || graph_.nodes() < kPrefetchFrom) return;
  for (std::int32_t w = p_.key_start[keys[1]]; w < p_.key_start[idx(keys[1]) + 1]; ++w)
    order_.prefetch_rank(graph_.order_node(w));
}

void Search::fetch_read(std::span<const std::int32_t> reads) const {
  if (graph_.nodes() < kPrefetchFrom || !graph_.uses_orders) return;
  if (reads.size() > 2 * kPrefetchedReads)
    each_source(reads[2 * kPrefetchedReads], [&](std::int32_t w) {
      prefetch(p_.writer_txn.data() + w);
      prefetch(place_.data() + w);
    });
  if (reads.size() > kPrefetchedReads)
    each_source(reads[kPrefetchedReads], [&](std::int32_t w) {
      order_.prefetch_rank(graph_.order_node(w));
      const std::size_t next = idx(place_[w]) + 1;
      prefetch(writers_.data() + next);
      if (next < lowest_.size()) prefetch(lowest_.data() + next);
    });
}

// Works in parts, on several threads. Each item is visited independently, and the wanted choices
// are joined in the order of the items.
template <typename WeightOf, typename Fetch, typename Look>
void Search::look_at_each(std::span<const std::int32_t> items, WeightOf weight_of, Fetch fetch,
                          Look look) {
  const auto cuts =
      cut_into_parts(items.size(), kMinItemsWeight, [&](std::size_t i) { return weight_of(items[i]); });
  std::vector<WantedChoices> wants(cuts.size() - 1);
  in_parts(wants.size(), pruner_.threads(), budget_,
           [&](std::size_t, std::size_t part, Budget& budget) {
             for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) {
               budget.poll();
               fetch(items.subspan(i + 1));
               look(items[i], wants[part]);
             }
             return true;
           });
  for (const WantedChoices& found : wants) {
    too_many_ |= found.too_many;
    want_order_.insert(want_order_.end(), found.orders.begin(), found.orders.end());
    want_read_.insert(want_read_.end(), found.reads.begin(), found.reads.end());
  }
}

void Search::final_check() {
  want_order_.clear();
  want_read_.clear();
  too_many_ = false;
  note_moved();
  std::vector<std::int32_t> keys, reads;
  for (std::int32_t key = 0; graph_.uses_orders && key < p_.keys; ++key)
    if (stale_key_[key] != 0 && (rounds <= 1 || settled_key_[key] == 0 || read_key_[key] != 0))
      keys.push_back(key);
  const auto writers = [&](std::int32_t key) {
    return idx(p_.key_start[key + 1] - p_.key_start[key]);
  };
  look_at_each(
      keys, writers, [&](std::span<const std::int32_t> next) { fetch_key(next); },
      [&](std::int32_t key, WantedChoices& wants) {
        sort_writers(key);
        // mutant: key-not-checked
        if (settled_key_[key] == 0) check_key(key, wants);
      });
  for (const std::int32_t r : checked_reads_) {
    const std::int32_t reader = p_.read_txn[r];
    if (stale_txn_[reader] != 0 || stale_key_[p_.read_key[r]] != 0 || active_read_[r] != 0 ||
        !certain(reader))
      reads.push_back(r);
  }
  look_at_each(
      reads, [](std::int32_t) { return std::size_t{1}; },
      [&](std::span<const std::int32_t> next) { fetch_read(next); },
      // mutant: read-not-checked
      [&](std::int32_t r, WantedChoices& wants) { check_read(r, wants); });
  if (graph_.forbids_return_paths)
    for (const std::int32_t r : reads) {
      const std::int32_t reader = p_.read_txn[r];
      new_paths_[reader] |= open_txn_[reader];
    }
  const std::uint8_t again = too_many_ ? 1 : 0;
  std::ranges::fill(stale_txn_, again);
  std::ranges::fill(stale_key_, again);
  std::erase_if(want_order_, [&](const WantedOrder& w) { return find_order(w.a, w.b) >= 0; });
}

// Returns the number of variables for the wanted choices. It is approximate, because an order may
// be wanted twice.
std::size_t Search::wanted_variables() const {
  std::size_t count = want_order_.size();
  for (const std::int32_t r : want_read_) count += pruner_.candidates_left(r);
  return count;
}

Theory::Answer Search::complete() {
  ++rounds;
  budget_.check();
  // Compaction visits all edges between the nodes that have moved. It is worthwhile while many
  // choices are wanted again and again.
  const std::size_t wanted = want_order_.size() + want_read_.size();  // by the last final check
  if (rounds == 2 || (rounds > 2 && wanted * kWantedShrinkFactor > wanted_before_)) compact_order();
  wanted_before_ = wanted;
  final_check();
  // If the first order contradicts too many choices, another start order is tried. (Reads of
  // indeterminate transactions may have been decided before: the new order respects their edges,
  // too.)
  // ablation: no-likely-times
  if (rounds == 1 && may_start_anew_ &&
      (too_many_ || (want_order_.size() + want_read_.size()) * kMovedPerChoice > idx(p_.n)))
    restart_search();
  if (want_order_.empty() && want_read_.empty()) {
    if (!graph_.forbids_return_paths || !forbid_return_paths()) return Answer::consistent;
    return meaning_.size() > limit_.variables ? Answer::gives_up : Answer::extended;
  }
  if (const std::size_t more = wanted_variables();
      meaning_.size() + more > limit_.variables || (rounds == 1 && more > limit_.first_variables))
    return Answer::gives_up;
  // New variables are decided after the existing variables, so that no decision has to be undone.
  for (const auto& [a, b, read] : want_order_) activate_order(a, b, read);
  for (const std::int32_t r : want_read_) activate_read(r);
  return Answer::extended;
}

void Search::restart_search() {
  const auto from = [&](std::vector<std::int32_t> rank) {
    order_.set_ranks(std::move(rank));
    std::ranges::fill(stale_txn_, std::uint8_t{1});
    std::ranges::fill(stale_key_, std::uint8_t{1});
    final_check();
  };
  if (has_short_sessions(p_)) {
    std::vector<std::int32_t> first(idx(graph_.nodes()));
    for (Node v = 0; v < graph_.nodes(); ++v) first[v] = rank(v);
    const std::size_t wanted = want_order_.size() + want_read_.size();
    from(rank_behind_sources(order_.successors(), budget_));
    if (want_order_.size() + want_read_.size() >= wanted) from(std::move(first));
  } else if (const auto linearization = initial_linearization(pruner_, budget_);
             !linearization.empty()) {
    // mutant: decided-forgotten
    from(rank_along(linearization, order_.successors(), budget_));
  }
}

bool Search::is_in(std::int32_t txn) const {
  if (certain(txn)) return true;
  const std::int32_t in = in_variable_[txn];
  return in >= 0 && sat_.value(Lit::positive(in)) > 0;
}

bool Search::forbid_return_paths() {
  std::vector<std::uint8_t> in(p_.inclusion.size());
  for (std::size_t t = 0; t < in.size(); ++t) in[t] = is_in(static_cast<std::int32_t>(t));
  const auto closed = return_paths_.closed({source_, writers_, place_, in}, new_paths_);
  if (closed.empty()) return false;
  sat_.restart();
  for (const auto& edges : closed) {
    for (const Edge& e : edges) {
      if (e.read >= 0 && pruner_.source[e.read] < 0) activate_read(e.read);
      if ((e.relation == Relation::ww || overwrites(e.relation)) && p_.writer_txn[e.a] != p_.n)
        activate_order(e.a, e.b, e.read);
    }
    std::vector<Lit> clause;
    pending_.clear();
    for (const Edge& e : edges) {
      collect(e, clause);
      pending_.push_back({e, CycleEdge::Kind::added});
    }
    lemma(sat_.add_clause(std::move(clause)));
  }
  return true;
}

// The first value to try is the one that requires the least movement in the order. Every overturned
// choice is a move. A transaction that moves passes other transactions, and some of their choices
// must be decided again. If moves are long, this never ends; if they are short, it ends soon. (On
// write-heavy histories the difference is between fifty thousand conflicts and one.)

// Returns how far down the order the edges of "a before b" go. Either a or a reader of a, or else
// b, has to move over this distance.
std::int32_t Search::descent_of_order(std::int32_t a, std::int32_t b) const {
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  const auto fall = [&](const Edge& e) { most = std::max(most, rank(e.from) - rank(e.to)); };
  graph_.ww_edges(a, b, fall);
  for (const std::int32_t r : readers_.of(a)) graph_.rw_edges(r, a, b, fall);
  for (const std::int32_t s : sources_at_.of(a))
    if (sat_.value(Lit::positive(s)) > 0) graph_.rw_edges(meaning_[s].a, a, b, fall);
  return most;
}

// Returns the same distance for a read of this candidate. Either the reader, or else the candidate,
// has to move, or the writer between the two that is farthest from both. (The order of the writers
// is that of the last final check, which is good enough for a guess.)
std::int32_t Search::descent_of_source(std::int32_t r, std::int32_t w) const {
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  Node reader = -1;
  graph_.wr_edges(r, w, [&](const Edge& e) {
    most = std::max(most, rank(e.from) - rank(e.to));
    if (reader < 0) reader = e.to;
  });
  if (most > 0 || reader < 0 || !graph_.uses_orders) return most;
  const std::int32_t low = rank(graph_.order_node(w)), high = rank(reader),
                     own = pruner_.own_writer[r];
  most = 0;
  for (const std::int32_t o : orders_at_.of(w)) {
    const Meaning& pair = meaning_[o];
    const std::int32_t other = pair.a == w ? pair.b : pair.a;
    const int value = sat_.value(Lit::positive(o));
    if (other != own && (pair.a == w ? value > 0 : value < 0))
      most = std::max(most, high - rank(graph_.order_node(other)));
  }
  const auto between = [&](std::int32_t x) {
    const std::int32_t at = rank(graph_.order_node(x));
    if (x != own && low < at && at < high) most = std::max(most, std::min(at - low, high - at));
  };
  const std::int32_t key = p_.read_key[r];
  const auto first = writers_.begin() + p_.key_start[key],
             last = writers_.begin() + p_.key_start[key + 1];
  const auto middle = std::partition_point(first, last, [&](std::int32_t x) {
    return rank(graph_.order_node(x)) < low + (high - low) / 2;
  });
  if (middle != last) between(*middle);
  if (middle != first) between(middle[-1]);
  return most;
}

// Returns the variable of the possible candidate with the least descent; of several such
// candidates, that of the latest.
std::int32_t Search::nearest_source(std::int32_t r) const {
  std::int32_t best = -1, variable = -1, least = 0;
  const auto later = [&](std::int32_t w) {
    return graph_.uses_orders && rank(graph_.order_node(w)) > rank(graph_.order_node(best));
  };
  for (const std::size_t i : p_.candidates(r)) {
    if (!pruner_.alive[i] || sat_.value(Lit::positive(source_variable(i))) < 0) continue;
    const std::int32_t w = p_.candidate[i], descent = descent_of_source(r, w);
    if (best >= 0 && (descent > least || (descent == least && !later(w)))) continue;
    best = w;
    variable = source_variable(i);
    least = descent;
  }
  return variable;
}

// Brings the nodes of each transaction together again. If only one of them has moved, they may be
// far apart, and everything in between overlaps with the transaction. The range between them is
// therefore sorted again: each node comes as late as possible, but not after the last node of its
// transaction.
void Search::compact_order() {
  const auto nodes_of = [&](std::int32_t txn, auto visit) {
    for (std::size_t c = 0; c < graph_.automata.size(); ++c) {
      if (graph_.automata[c].direct() || !graph_.automata[c].places_are_transactions()) continue;
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
    // Otherwise no other node lies between the nodes of this transaction.
    if (high - low >= nodes) stretches.emplace_back(low, high);
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
    while (i < stretches.size() && stretches[i].first <= last)
      last = std::max(last, stretches[i++].second);
    budget_.poll();
    order_.sort_late(first, last, latest);
  }
}

}  // namespace isolang
