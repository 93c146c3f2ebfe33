// Builds the product of the history with each automaton: first the places and nodes, then the edges
// of the relations stated by the history. Session order, real time and other transitive relations
// get auxiliary nodes, because storing all of their pairs would take quadratic space.
#include "engine/graph/event_graph.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/index.hpp"
#include "engine/graph/adjacency.hpp"

namespace isolang {
namespace {

bool included(const Problem& p, std::int32_t txn) {
  // mutant: optional-no-edges
  return p.inclusion[txn] != static_cast<std::uint8_t>(Inclusion::out);
}

// Returns, for each session and group, the places of its included transactions in order, with T0's
// place before them. A session ends at each break.
std::vector<std::vector<std::int32_t>> session_orders(const Problem& p, const Places& places,
                                                      const std::vector<std::uint8_t>& breaks) {
  std::vector<std::vector<std::int32_t>> orders;
  std::vector<std::size_t> current(idx(p.sessions));
  for (std::size_t group = 0; group + 1 < places.group_start.size(); ++group) {
    const std::int32_t first = places.group_start[group], t0 = places.group_start[group + 1] - 1;
    const bool all = places.group_start.size() == 2;
    if (all) {
      orders.assign(idx(p.sessions), {t0});
      std::iota(current.begin(), current.end(), std::size_t{0});
    } else {
      for (std::int32_t i = first; i < t0; ++i)
        current[p.session[places.transaction[i]]] = std::numeric_limits<std::size_t>::max();
    }
    for (std::int32_t i = first; i < t0; ++i) {
      const std::int32_t t = places.transaction[i];
      if (!included(p, t)) continue;
      std::size_t& session = current[p.session[t]];
      const bool fresh = session == std::numeric_limits<std::size_t>::max();
      if (fresh || (!breaks.empty() && breaks[t] != 0 && orders[session].size() > 1)) {
        session = orders.size();
        orders.push_back({t0});
      }
      orders[session].push_back(i);
    }
  }
  return orders;
}

// Statements of a transaction are sent and answered in program order (docs/times.md). Everything
// that precedes a statement, in time or in its transaction, therefore precedes the later statements
// of the transaction, and vice versa. So answered_before | po is transitive.
//
// A single step from one statement to another can replace many steps. The states of statements that
// differ only by whether that step has been made are therefore merged: SOUND BECAUSE only this step
// leads to the state behind it, and the steps that leave one of these states leave all of them.
Automaton joined(const Automaton& m) {
  using Step = Automaton::Step;
  std::vector<bool> reads(idx(m.states), false);
  for (const auto& [q, r] : m.of(Relation::own_commit)) reads[q] = true;
  const auto& on = m.of(Relation::po);
  if (on.empty() || reads[0] || m.splits()) return m;
  const std::int32_t last = on.front().second;
  if (!reads[last]) return m;
  for (std::int32_t q = 0; q < m.states; ++q)
    if (m.has(Relation::po, {q, last}) != (reads[q] && q != last)) return m;
  for (std::size_t i = 0; i < kRelations; ++i) {
    const auto relation = static_cast<Relation>(i);
    const bool leaves = relation == Relation::rw || relation == Relation::own_commit ||
                        relation == Relation::committed_after;
    const bool goes_on = relation == Relation::po || relation == Relation::answered_before;
    for (const auto& [q, r] : m.of(relation)) {
      if (goes_on ? r != last || !m.has(Relation::po, {q, r}) || !m.has(Relation::answered_before, {q, r})
                  : r == last || leaves != reads[q])
        return m;
      for (std::int32_t other = 0; other < m.states; ++other)
        if (leaves && reads[other] && !m.has(relation, {other, r})) return m;
    }
  }
  if (std::ranges::find(m.epsilon, last, &Step::second) != m.epsilon.end()) return m;
  Automaton result = m;
  std::vector<std::int32_t> state(idx(m.states), -1);
  std::int32_t one = -1;  // the merged state
  result.states = 0;
  for (std::int32_t q = 0; q < m.states; ++q) {
    state[q] = reads[q] && one >= 0 ? one : result.states++;
    if (reads[q]) one = state[q];
  }
  const auto join = [&](std::vector<Step>& steps) {
    for (auto& [q, r] : steps) q = state[q], r = state[r];
    std::ranges::sort(steps);
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  };
  for (auto& steps : result.steps) join(steps);
  join(result.epsilon);
  return result;
}

std::vector<Automaton> of_the_history(std::vector<Automaton> automata) {
  if (std::ranges::any_of(automata, &Automaton::by_statement))
    for (Automaton& m : automata)
      if (m.by_statement()) m = joined(m);
  return automata;
}

}  // namespace

Places transactions_of(const Problem& p) {
  Places places;
  places.transaction.resize(idx(p.n + 1));
  std::iota(places.transaction.begin(), places.transaction.end(), 0);
  places.of_writer = p.writer_txn;
  places.of_read = p.read_txn;
  places.group_start = {0, p.n + 1};
  return places;
}

Places accesses_of(const Problem& p) {
  Places places;
  places.own.resize(p.writer_txn.size() + idx(p.reads()));
  const auto of_writer = std::span(places.own).first(p.writer_txn.size());
  const auto of_read = std::span(places.own).last(idx(p.reads()));
  const auto reads = group_by(
      p.keys, idx(p.reads()), [&](std::size_t r) { return p.read_key[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
  std::vector<std::int32_t> members, place(idx(p.n + 1), -1);
  for (std::int32_t key = 0; key < p.keys; ++key) {
    places.group_start.push_back(places.count());
    members.clear();
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w)
      members.push_back(p.writer_txn[w]);
    for (const std::int32_t r : reads.of(key)) members.push_back(p.read_txn[r]);
    std::ranges::sort(members);  // T0, which writes every key, is the last
    for (const std::int32_t t : members) {
      if (!places.transaction.empty() && places.count() > places.group_start.back() &&
          places.transaction.back() == t)
        continue;
      place[t] = places.count();
      places.transaction.push_back(t);
    }
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w)
      of_writer[w] = place[p.writer_txn[w]];
    for (const std::int32_t r : reads.of(key)) of_read[r] = place[p.read_txn[r]];
  }
  places.group_start.push_back(places.count());
  places.of_writer = of_writer;
  places.of_read = of_read;
  return places;
}

bool reads_together(const Problem& p, std::int32_t r) {
  const auto same = [&](const auto& of) { return of[idx(r)] == of[idx(r - 1)]; };
  return r > 0 && !p.read_sent.empty() && same(p.read_txn) && same(p.read_sent) && same(p.read_answered) &&
         p.read_sent[r] != kTimeUnknownBegin && p.read_answered[r] != kTimeUnknownEnd &&
         p.read_op[r] == p.read_op[r - 1] + 1;
}

Places statements_of(const Problem& p, bool writes, bool together) {
  Places places = transactions_of(p);
  const std::size_t reads = idx(p.reads());
  places.own.resize(reads + (writes ? p.writer_txn.size() : 0));
  std::int64_t last = -1;
  std::vector<std::int32_t> first_read(writes ? idx(p.n + 1) : 0, -1);  // per transaction
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int64_t statement = p.read_statement.empty() ? p.read_op[r] : p.read_statement[r];
    if (statement != last && !(together && reads_together(p, r))) places.transaction.push_back(p.read_txn[r]);
    places.own[r] = places.count() - 1;
    last = statement;
    if (writes && first_read[p.read_txn[r]] < 0) first_read[p.read_txn[r]] = r;
  }
  places.of_read = std::span(places.own).first(reads);
  places.first_end = places.count();
  if (!writes) return places;
  const auto of_write = std::span(places.own).last(p.writer_txn.size());
  std::vector<std::int32_t> behind(idx(p.n + 1), -1);
  for (std::size_t w = 0; w < p.writer_txn.size(); ++w) {
    const std::int32_t t = p.writer_txn[w];
    std::int32_t r = first_read[t];
    // mutant: write-before-all-reads
    while (r >= 0 && r < p.reads() && p.read_txn[r] == t && p.read_op[r] < p.writer_op[w]) ++r;
    if (r >= 0 && r < p.reads() && p.read_txn[r] == t) {
      of_write[w] = places.of_read[r];
      continue;
    }
    if (behind[t] < 0) {
      behind[t] = places.count();
      places.transaction.push_back(t);
    }
    of_write[w] = behind[t];
  }
  places.of_write = of_write;
  return places;
}

EventGraph::EventGraph(const Problem& p, std::vector<Automaton> a, const AssumedOrders& assumed)
    : problem(p),
      automata(of_the_history(std::move(a))),
      transactions_(transactions_of(p)),
      apart_reads_(assumed.apart) {
  if (std::ranges::any_of(automata, &Automaton::of_one_key)) accesses_ = accesses_of(p);
  if (std::ranges::any_of(automata, &Automaton::by_statement))
    statements_ = statements_of(p, std::ranges::any_of(automata, &Automaton::by_operation), assumed.together);
  for (const Automaton& m : automata)
    if (m.kinds != nullptr) kinds_ = m.kinds;
  for (std::int32_t key = 0; kinds_ != nullptr && key < p.keys; ++key)
    writer_kind_.resize(idx(p.key_start[idx(key) + 1]), kinds_->of_key[idx(key)]);
  for (std::size_t c = 0; c < automata.size(); ++c) {
    const Automaton& m = automata[c];
    base_.push_back(node_count_);
    const auto& at_statements = m.of(m.by_operation() ? Relation::po : Relation::own_commit);
    apart_.push_back(m.by_statement() && !at_statements.empty()
                         ? std::ranges::min_element(at_statements)->first
                         : 0);
    if (!m.direct()) node_count_ = node(c, places_of(c).count(), apart_[c]);
    forbids_return_paths |= m.forbids_return_paths();
    every_check_judges &= m.judges;
    uses_reads |=
        !m.of(Relation::wr).empty() || !m.of(Relation::rw).empty() || m.forbids_return_paths();
    uses_orders |=
        !m.of(Relation::ww).empty() || !m.of(Relation::rw).empty() || m.forbids_return_paths();
    // A check that does not judge leaves its cycles to other checks. Nothing else forbids a cycle of
    // ww on one key, so the version order needs a check that judges, or nodes of its own.
    // mutant: order-of-no-judge
    if (m.judges && m.orders_versions()) {
      if (order_check_ < 0) order_check_ = static_cast<std::int32_t>(c);
      sessions_order_versions |= m.from_zero_to_zero(Relation::so);
    }
    const auto add = [&](std::vector<Step>& steps, const std::vector<Automaton::Step>& of_check,
                         const auto& reads_of, bool from_statement, bool to_statement) {
      const std::int32_t apart = apart_[c], shift = p.n * apart;
      for (std::size_t i = 0; i < of_check.size(); ++i)
        steps.push_back({base_[c] + of_check[i].first + (from_statement ? shift : 0),
                         base_[c] + of_check[i].second + (to_statement ? shift : 0),
                         m.states - (from_statement ? apart : 0),
                         m.states - (to_statement ? apart : 0), m.sites, reads_of(i)});
    };
    const auto of_each = [&](Relation relation) {
      return [&, relation](std::size_t i) { return m.of_step(relation, i); };
    };
    add(wr_, m.of(Relation::wr), of_each(Relation::wr), false, true);
    add(ww_, m.of(Relation::ww), of_each(Relation::ww), false, m.by_operation());
    add(rw_, m.of(Relation::rw), of_each(Relation::rw), true, false);
    // SOUND BECAUSE the timeline contains the pair of the two transactions, between the same
    // states.
    // mutant: times-always-say-wr
    times_imply_wr_ = (c == 0 || times_imply_wr_) && !p.read_sent.empty() &&
                    std::ranges::all_of(m.of(Relation::wr), [&](const Automaton::Step& step) {
                      return m.has(Relation::committed_before, step);
                    });
    add(back_, m.back.by_rw, [&](std::size_t) { return m.back.rw_pairs; }, true, false);
  }
  auxiliary_base_ = node_count_;
  for (std::size_t c = 0; c < automata.size(); ++c) {
    const Automaton& m = automata[c];
    const Places& places = places_of(c);
    // The steps of a statement move away from it, so only transactions need these edges.
    const std::int32_t movers = m.by_statement() ? p.n + 1 : places.count();
    for (std::int32_t i = 0; i < movers && !m.epsilon.empty(); ++i) {
      if (!included(p, places.transaction[i])) continue;
      // mutant: no-inner-moves
      for (const auto& [q, r] : m.epsilon)
        edges.push_back({node(c, i, q), node(c, i, r), Relation::epsilon});
    }
    add_tests(c);
    add_sessions(c, assumed.breaks);
    add_line(c, assumed);
    add_real_time(c, assumed);
    add_real_time_of_groups(c);
    add_moments(c);
    add_filtered(c);
    add_statements(c, assumed.together);
    for (const auto& [q, r] : m.of(Relation::init))
      for (std::size_t group = 0; group + 1 < places.group_start.size(); ++group)
        for (std::int32_t i = places.group_start[group], t0 = places.group_start[group + 1] - 1;
             i < t0; ++i)
          if (included(p, places.transaction[i]))
            edges.push_back({node(c, t0, q), node(c, i, r), Relation::init});
  }
  if (uses_orders && order_check_ < 0) {
    version_base_ = node_count_;
    node_count_ += static_cast<Node>(p.writer_txn.size());
  }
  transaction_.assign(idx(node_count_), -1);
  for (std::size_t c = 0; c < automata.size(); ++c)
    for (std::int32_t i = 0; i < places_of(c).count() && !automata[c].direct(); ++i) {
      const std::int32_t first = i > p.n ? apart_[c] : 0;
      std::fill_n(transaction_.begin() + node(c, i, first), automata[c].states - first,
                  places_of(c).transaction[i]);
    }
  for (std::size_t c = 0, labels = 0; c < automata.size(); ++c)
    if (automata[c].direct()) base_[c] = node_count_ + static_cast<Node>(labels++) * (p.n + 1);
  if (uses_orders)
    for (std::size_t i = 0; i < p.vo_before.size(); ++i)
      // mutant: shown-order-forgotten
      ww_edges(p.vo_before[i], p.vo_after[i], [&](const Edge& e) { edges.push_back(e); });
  set_priorities(assumed);
}

Node EventGraph::fresh(std::size_t check) {
  auxiliary_check_.push_back(static_cast<std::int32_t>(check));
  return node_count_++;
}

void EventGraph::add_tests(std::size_t c) {
  const Automaton& m = automata[c];
  if (!m.tests()) return;
  const Places& places = places_of(c);
  std::vector<Pairs> writes(idx(places.count()), 0), reads(idx(places.count()), 0);
  for (std::size_t w = 0; w < places.of_writer.size(); ++w)
    writes[places.of_writer[w]] |= pairs_of_writer(static_cast<std::int32_t>(w));
  for (std::int32_t r = 0; r < problem.reads(); ++r)
    if (problem.candidate_start[r] < problem.candidate_start[r + 1])
      reads[places.of_read[r]] |= pairs_of_key(problem.read_key[r]);
  for (std::int32_t i = 0; i < places.count(); ++i) {
    if (!included(problem, places.transaction[i])) continue;
    const std::int32_t t = places.transaction[i];
    const Pairs names = kinds_ == nullptr || t == problem.n ? 0 : kinds_->transaction(t);
    for (const auto& [test, passed] : {std::pair(Relation::writes, writes[i]), {Relation::reads, reads[i]},
                                       {Relation::label, names}, {Relation::level, names}})
      for (std::size_t s = 0; passed != 0 && s < m.of(test).size(); ++s)
        // mutant: test-of-all
        if ((m.of_step(test, s) & passed) != 0) {
          const auto [q, r] = m.of(test)[s];
          edges.push_back({node(c, i, q), node(c, i, r), Relation::epsilon});
        }
  }
}

void EventGraph::add_sessions(std::size_t c, const std::vector<std::uint8_t>& breaks) {
  static const std::vector<std::uint8_t> kNoBreaks;
  const Automaton& m = automata[c];
  if (m.of(Relation::so).empty()) return;
  const Places& places = places_of(c);
  const auto precedes = [&](std::int32_t place) {
    return problem.unfinished[places.transaction[place]] == 0;
  };
  for (auto order : session_orders(problem, places, m.so_is_assumed ? breaks : kNoBreaks)) {
    if (m.so_is_assumed)
      order.erase(order.begin());  // init states what comes after T0 as a fact, or nothing does
    if (order.empty()) continue;
    for (const auto& [q, r] : m.of(Relation::so)) {
      if (m.so_repeatable) {
        std::int32_t last = order.front();
        for (std::size_t i = 1; i < order.size(); ++i) {
          edges.push_back({node(c, last, q), node(c, order[i], r), Relation::so});
          // mutant: indeterminate-precede
          if (precedes(order[i])) last = order[i];
        }
        continue;
      }
      // An auxiliary chain: a transaction enters the chain at its position, and every later
      // transaction may leave it. All pairs together thus take linear space. No other pairs arise,
      // because nothing else touches the chain.
      Node rail = fresh(c);
      edges.push_back({node(c, order.front(), q), rail, Relation::so});
      for (std::size_t i = 1; i < order.size(); ++i) {
        edges.push_back({rail, node(c, order[i], r), Relation::so});
        // mutant: indeterminate-in-chain
        if (!precedes(order[i]) || i + 1 == order.size()) continue;
        const Node next = fresh(c);
        // mutant: session-chain-cut
        edges.push_back({rail, next, Relation::auxiliary});
        edges.push_back({node(c, order[i], q), next, Relation::so});
        rail = next;
      }
    }
  }
}

// Adds the assumed order to steps that repeat, because the total order then becomes `window`
// chains.
void EventGraph::add_line(std::size_t c, const AssumedOrders& assumed) {
  if (assumed.window == 0) return;
  std::vector<std::int32_t> order;
  std::ranges::copy_if(assumed.order, std::back_inserter(order),
                       [&](std::int32_t t) { return assumed.breaks[t] == 0; });
  for (std::size_t i = idx(assumed.window); i < order.size(); ++i)
    for (const auto& [q, r] : automata[c].of(Relation::so))
      edges.push_back(
          {node(c, order[i - idx(assumed.window)], q), node(c, order[i], r), Relation::so});
}

// Adds all pairs of a tail and a later head, with O(n) edges. The timeline is a chain of events.
// Transaction T enters the chain at its tail, and S leaves the chain from the last tail strictly
// before its head. If `initial` is given, its tail precedes everything.
void EventGraph::add_timeline(std::size_t c, const Line& line, std::vector<Moment>& tails,
                              std::vector<Moment>& heads, std::int32_t initial) {
  const auto of_statement = [&](std::int32_t place) { return place > problem.n; };
  const auto tail = [&](std::int32_t place) {
    return node(c, place, (of_statement(place) ? line.statement : line.transaction).first);
  };
  std::ranges::stable_sort(tails, {}, &Moment::time);
  std::ranges::stable_sort(heads, {}, &Moment::time);
  Node event = fresh(c);
  if (initial != kNoTransaction) edges.push_back({tail(initial), event, line.to_transaction});
  std::size_t ended = 0;
  bool left =
      false;  // whether a head has left from `event`; only then does the next tail need a new event
  for (const auto& [time, place] : heads) {
    // mutant: rt-at-begin
    while (ended < tails.size() && tails[ended].time < time) {
      // mutant: rt-no-later-ends
      if (left) {
        const Node next = fresh(c);
        // mutant: rt-chain-cut
        edges.push_back({event, next, Relation::auxiliary});
        event = next;
        left = false;
      }
      edges.push_back({tail(tails[ended++].place), event, line.to_transaction});
    }
    if (ended == 0 && initial == kNoTransaction) continue;
    const bool statement = of_statement(place);
    edges.push_back({event, node(c, place, (statement ? line.statement : line.transaction).second),
                     statement ? line.to_statement : line.to_transaction});
    left = true;
  }
}

// Adds a timeline for histories whose clocks may be wrong. Times widened by the clock error show
// less about two moments of the same session than the session's own clock does. Each session
// therefore also gets a separate chain.
void EventGraph::add_times(std::size_t c, const Line& line, std::vector<Moment>& tails,
                           std::vector<Moment>& heads, std::int32_t initial) {
  add_timeline(c, line, tails, heads, initial);
  each_clock(c, tails, heads, [&](std::int64_t, auto& of_tails, auto& of_heads) {
    // mutant: widened-inside-a-session
    add_timeline(c, line, of_tails, of_heads, kNoTransaction);
  });
}

template <typename Visit>
void EventGraph::each_clock(std::size_t c, const std::vector<Moment>& tails,
                            const std::vector<Moment>& heads, Visit visit) {
  if (problem.slack.empty()) return;
  const Places& places = places_of(c);
  std::vector<std::vector<Moment>> of_tails(problem.slack.size()), of_heads(problem.slack.size());
  const auto session = [&](const Moment& m) {
    return idx(problem.session[places.transaction[m.place]]);
  };
  for (const Moment& m : tails)
    of_tails[session(m)].push_back({by_own_clock(m.time, problem.slack[session(m)]), m.place});
  for (const Moment& m : heads) of_heads[session(m)].push_back(m);
  for (std::size_t s = 0; s < of_tails.size(); ++s)
    if (!of_tails[s].empty() && !of_heads[s].empty())
      visit(problem.slack[s], of_tails[s], of_heads[s]);
}

void EventGraph::add_real_time(std::size_t c, const AssumedOrders& assumed) {
  const Automaton& m = automata[c];
  if (m.of(Relation::rt).empty() || done_implies_real_time(m)) return;
  const Places& places = places_of(c);
  const auto& begin = m.rt_is_assumed ? assumed.times.begin : problem.begin;
  const auto& end = m.rt_is_assumed ? assumed.times.end : problem.end;
  std::vector<Moment> tails, heads;
  for (std::size_t group = 0; group + 1 < places.group_start.size(); ++group) {
    // mutant: real-time-between-keys
    tails.clear();
    heads.clear();
    const std::int32_t t0 = places.group_start[group + 1] - 1;
    for (std::int32_t i = places.group_start[group]; i < t0; ++i) {
      const std::int32_t t = places.transaction[i];
      if (!included(problem, t)) continue;
      heads.push_back({begin[t], i});
      if (problem.unfinished[t] == 0 && end[t] != kTimeUnknownEnd) tails.push_back({end[t], i});
    }
    for (const auto& step : m.of(Relation::rt))
      if (m.rt_is_assumed)
        add_timeline(c, {Relation::rt, step}, tails, heads, kNoTransaction);
      else
        add_times(c, {Relation::rt, step}, tails, heads, t0);
  }
}

// Returns true if done already implies rt: a transaction that ends before another begins has its
// COMMIT answered before the other sends its COMMIT. T0 is left out, because no cycle passes it.
bool EventGraph::done_implies_real_time(const Automaton& m) const {
  const Problem& p = problem;
  const auto says = [&](const Automaton::Step& step) { return m.has(Relation::done, step); };
  if (m.rt_is_assumed || p.commit_begin.empty() || !std::ranges::all_of(m.of(Relation::rt), says))
    return false;
  for (std::int32_t t = 0; t < p.n; ++t)
    // mutant: real-time-as-done
    if (included(p, t) && (p.commit_begin[t] < p.begin[t] || p.commit_end[t] > p.end[t])) return false;
  return true;
}

// Adds a timeline for each group.
void EventGraph::add_real_time_of_groups(std::size_t c) {
  const Automaton& m = automata[c];
  const Problem& p = problem;
  if (m.of(Relation::group_rt).empty() || p.group.empty()) return;
  const Places& places = places_of(c);
  std::vector<std::int32_t> members;
  std::vector<Moment> tails, heads;
  for (std::size_t key = 0; key + 1 < places.group_start.size(); ++key) {
    members.clear();
    for (std::int32_t i = places.group_start[key]; i < places.group_start[key + 1] - 1; ++i)
      if (const std::int32_t t = places.transaction[i]; included(p, t) && p.group[t] != kNil)
        members.push_back(i);
    const auto group = [&](std::int32_t i) { return p.group[places.transaction[i]]; };
    std::ranges::stable_sort(members, {}, group);
    for (auto first = members.begin(); first != members.end();) {
      // mutant: groups-as-one
      const auto last = std::ranges::upper_bound(first, members.end(), group(*first), {}, group);
      tails.clear();
      heads.clear();
      for (; first != last; ++first) {
        const std::int32_t t = places.transaction[*first];
        heads.push_back({p.begin[t], *first});
        if (p.unfinished[t] == 0 && p.end[t] != kTimeUnknownEnd)
          tails.push_back({p.end[t], *first});
      }
      for (const auto& step : m.of(Relation::group_rt))
        add_times(c, {Relation::group_rt, step}, tails, heads, kNoTransaction);
    }
  }
}

// Adds the relations in which S sends its COMMIT after an answer to T: the answer to T's COMMIT, to
// its first statement, or to its first write of a key that S also writes. T sends its own COMMIT
// after the last two answers, but the relations do not contain the pair of T with itself. A timeline
// of answers to COMMIT never yields this pair. Few COMMITs are sent between one of the other answers
// and the answer to T's own COMMIT, so each of them gets a separate edge. The pair does no harm if a
// move inside the transaction has the same effect anyway. No check of one key uses these relations,
// so places are transactions.
void EventGraph::add_moments(std::size_t c) {
  const Automaton& m = automata[c];
  const Problem& p = problem;
  if (p.commit_begin.empty()) return;
  const auto sent = [&](std::vector<Moment>& heads, std::int32_t t) {
    if (included(p, t) && p.commit_begin[t] != kTimeUnknownBegin)
      heads.push_back({p.commit_begin[t], t});
  };
  const auto answered = [&](std::vector<Moment>& tails, std::int32_t t) {
    if (included(p, t) && p.commit_end[t] != kTimeUnknownEnd) tails.push_back({p.commit_end[t], t});
  };
  std::vector<Moment> tails, heads, first;
  for (std::int32_t t = 0; t < p.n; ++t) {
    sent(heads, t);
    answered(tails, t);
    if (included(p, t) && p.first_answer[t] != kTimeUnknownEnd)
      first.push_back({p.first_answer[t], t});
  }
  for (const auto& step : m.of(Relation::done))
    // mutant: no-done
    if (!shared_line(m)) add_times(c, {Relation::done, step}, tails, heads, kNoTransaction);
  for (const auto& step : m.of(Relation::late)) {
    if (m.is_move(step)) {
      add_times(c, {Relation::late, step}, first, heads, kNoTransaction);
    } else {
      if (!m.has(Relation::done, step)) add_times(c, {Relation::late, step}, tails, heads, kNoTransaction);
      // mutant: late-after-commit-only
      add_between(c, Relation::late, step, first, heads);
    }
  }
  for (const auto& step : m.of(Relation::locked))
    for (std::int32_t key = 0; key < p.keys; ++key) {
      tails.clear();
      heads.clear();
      for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w) {
        if (p.writer_txn[w] == p.n) continue;
        sent(heads, p.writer_txn[w]);
        // The write had happened by the time of its answer.
        if (p.write_answer[w] != kTimeUnknownEnd) answered(tails, p.writer_txn[w]);
      }
      if (heads.size() < 2) continue;
      // mutant: no-lock-chain
      if (!m.has(Relation::done, step)) add_times(c, {Relation::locked, step}, tails, heads, kNoTransaction);
      first.clear();
      for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w)
        if (const std::int32_t t = p.writer_txn[w];
            t != p.n && included(p, t) && p.write_answer[w] != kTimeUnknownEnd)
          first.push_back({p.write_answer[w], t});
      // mutant: no-lock-pairs
      add_between(c, Relation::locked, step, first, heads);
    }
}

// Adds an edge from the transaction of each moment in `first` to every other transaction that sent
// COMMIT after that moment, but no later than the first transaction's own COMMIT was answered.
void EventGraph::add_between(std::size_t c, Relation relation, const Automaton::Step& step,
                             const std::vector<Moment>& first, std::vector<Moment>& heads) {
  const auto [q, r] = step;
  std::ranges::stable_sort(heads, {}, &Moment::time);
  const auto add = [&, q = q, r = r](std::int64_t slack, const std::vector<Moment>& tails,
                                     const std::vector<Moment>& later) {
    for (const Moment& from : tails) {
      const std::int64_t end = by_own_clock(problem.commit_end[from.place], slack);
      // mutant: between-at-once
      for (auto i = std::ranges::upper_bound(later, from.time, {}, &Moment::time);
           // mutant: between-short
           i != later.end() && i->time <= end; ++i)
        if (i->place != from.place)
          edges.push_back({node(c, from.place, q), node(c, i->place, r), relation});
    }
  };
  add(0, first, heads);
  each_clock(c, first, heads, add);
}

// Adds the given relations between transactions that access the same key: a timeline for each key,
// and for session order a timeline for each key and session. T0 is left out, because no cycle
// passes it.
void EventGraph::add_filtered(std::size_t c) {
  const Automaton& m = automata[c];
  const Problem& p = problem;
  const auto all = filtered_relations();
  if (std::ranges::all_of(all, [&](const Filtered& f) { return m.of(f.letter).empty(); })) return;
  std::vector<std::int32_t> seen(idx(p.n + 1), -1);
  const auto reads = group_by(
      p.keys, idx(p.reads()), [&](std::size_t r) { return p.read_key[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
  std::vector<std::int32_t> members[2];  // the writers of the key, and its readers
  std::vector<Moment> tails, heads, first;
  const auto by_session = [&](std::int32_t t) { return std::pair(p.session[t], t); };
  const auto sessions = [&](const Filtered& f, const Automaton::Step& step) {
    const auto& from = members[f.from_reader];
    const auto& to = members[f.to_reader];
    for (std::size_t i = 0, j = 0; i < from.size() && j < to.size();) {
      const std::int32_t session = std::max(p.session[from[i]], p.session[to[j]]);
      tails.clear();
      heads.clear();
      for (; i < from.size() && p.session[from[i]] <= session; ++i)
        // mutant: access-of-indeterminate
        if (p.session[from[i]] == session && p.unfinished[from[i]] == 0)
          tails.push_back({from[i], from[i]});
      for (; j < to.size() && p.session[to[j]] <= session; ++j)
        if (p.session[to[j]] == session) heads.push_back({to[j], to[j]});
      if (!tails.empty() && !heads.empty())
        add_timeline(c, {f.letter, step}, tails, heads, kNoTransaction);
    }
  };
  const auto times = [&](const Filtered& f, const Automaton::Step& step) {
    tails.clear();
    heads.clear();
    first.clear();
    const bool moments = f.relation != Relation::rt;
    if (moments && p.commit_begin.empty()) return;
    for (const std::int32_t t : members[f.to_reader])
      if (!moments || p.commit_begin[t] != kTimeUnknownBegin)
        heads.push_back({moments ? p.commit_begin[t] : p.begin[t], t});
    for (const std::int32_t t : members[f.from_reader]) {
      const std::int64_t end = moments ? p.commit_end[t] : p.end[t];
      if (end != kTimeUnknownEnd && (moments || p.unfinished[t] == 0)) tails.push_back({end, t});
      // mutant: access-late-as-done
      if (f.relation == Relation::late && p.first_answer[t] != kTimeUnknownEnd)
        first.push_back({p.first_answer[t], t});
    }
    if (heads.empty() || (tails.empty() && first.empty())) return;
    add_times(c, {f.letter, step}, tails, heads, kNoTransaction);
    add_between(c, f.letter, step, first, heads);
  };
  for (std::int32_t key = 0; key < p.keys; ++key) {
    for (auto& some : members) some.clear();
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w)
      if (const std::int32_t t = p.writer_txn[w]; t != p.n && included(p, t))
        members[0].push_back(t);
    for (const std::int32_t r : reads.of(key))
      if (const std::int32_t t = p.read_txn[r];
          included(p, t) && p.candidate_start[r] < p.candidate_start[r + 1] && seen[t] != key) {
        seen[t] = key;
        members[1].push_back(t);
      }
    for (auto& some : members) std::ranges::sort(some, {}, by_session);
    for (const Filtered& f : all)
      for (std::size_t s = 0; s < m.of(f.letter).size(); ++s) {
        // mutant: filtered-of-all-keys
        if ((m.of_step(f.letter, s) & pairs_of_key(key)) == 0) continue;
        const auto& step = m.of(f.letter)[s];
        f.relation == Relation::so ? sessions(f, step) : times(f, step);
      }
  }
}

// Adds the edges of statements. A statement reads between its sending and its answer, and before
// its transaction commits. If any number of steps may lead from one statement to another, edges to
// each statement of a transaction become edges to its first statement, and edges from each
// statement become edges from its last statement. Statements with equal times are handled in the
// same way.
void EventGraph::add_statements(std::size_t c, bool together) {
  const Automaton& m = automata[c];
  const Problem& p = problem;
  if (!m.by_statement()) return;
  const bool joined = m.statements_are_joined();
  std::vector<Moment> committed, sent, answered, commits;
  for (std::int32_t t = 0; t < p.n && !p.commit_begin.empty(); ++t) {
    if (!included(p, t)) continue;
    if (p.commit_end[t] != kTimeUnknownEnd) committed.push_back({p.commit_end[t], t});
    if (p.commit_begin[t] != kTimeUnknownBegin) commits.push_back({p.commit_begin[t], t});
  }
  // The states in which a node of a transaction represents each of its statements.
  std::vector<std::int32_t> reading;
  for (const auto& [q, s] : m.of(m.by_operation() ? Relation::po : Relation::own_commit))
    if (std::ranges::find(reading, q) == reading.end()) reading.push_back(q);
  for (std::int32_t r = 0, next = 0; r < p.reads(); r = next) {
    const std::int32_t place = statements_.of_read[r], t = p.read_txn[r];
    while (next < p.reads() && statements_.of_read[next] == place) ++next;
    if (!included(p, t)) continue;
    // Reads that form one statement still have a program order.
    for (const auto& [q, s] : m.of(Relation::po))
      if (together && next > r + 1 && q != s) edges.push_back({node(c, place, q), node(c, place, s), Relation::epsilon});
    const std::int32_t before = joined && r > 0 && p.read_txn[r - 1] == t ? r - 1 : -1;
    const std::int32_t after = joined && next < p.reads() && p.read_txn[next] == t ? next : -1;
    for (const std::int32_t s : reading) {
      if (before >= 0) break;
      // mutant: statement-out-of-session
      edges.push_back({node(c, t, s), node(c, place, s), Relation::epsilon});
    }
    for (const auto& [q, s] : m.of(Relation::own_commit)) {
      if (after >= 0) break;
      // mutant: statement-after-commit
      edges.push_back({node(c, place, q), node(c, t, s), Relation::own_commit});
    }
    if (p.commit_begin.empty()) continue;
    if (p.read_sent[r] != kTimeUnknownBegin &&
        (before < 0 || p.read_sent[before] != p.read_sent[r]))
      sent.push_back({p.read_sent[r], place});
    if (p.read_answered[r] != kTimeUnknownEnd &&
        (after < 0 || p.read_answered[after] != p.read_answered[r]))
      answered.push_back({p.read_answered[r], place});
  }
  for (std::int32_t place = statements_.first_end; place < statements_.count(); ++place)
    for (const auto& [q, s] : m.of(Relation::own_commit))
      if (const std::int32_t t = statements_.transaction[place]; m.by_operation() && included(p, t))
        edges.push_back({node(c, place, q), node(c, t, s), Relation::own_commit});
  for (const auto& [q, s] : m.of(Relation::po)) {
    Node rail = -1;  // a chain for each transaction, unless the statements are joined
    for (std::int32_t place = p.n + 1; place < statements_.first_end; ++place) {
      const std::int32_t t = statements_.transaction[place];
      if (!included(p, t)) continue;
      const bool follows = place > p.n + 1 && statements_.transaction[place - 1] == t;
      const Node from = joined && follows ? node(c, place - 1, q) : rail;
      // mutant: statements-in-no-order
      if (follows) edges.push_back({from, node(c, place, s), Relation::po});
      if (joined || place + 1 == statements_.first_end ||
          statements_.transaction[place + 1] != t)
        continue;
      const Node next = fresh(c);
      if (follows) edges.push_back({rail, next, Relation::auxiliary});
      edges.push_back({node(c, place, q), next, Relation::po});
      rail = next;
    }
  }
  if (const auto line = shared_line(m)) {
    committed.insert(committed.end(), answered.begin(), answered.end());
    sent.insert(sent.end(), commits.begin(), commits.end());
    // mutant: no-shared-line
    add_times(c, *line, committed, sent, kNoTransaction);
    return;
  }
  for (const auto& step : m.of(Relation::committed_before))
    // mutant: stale-statement
    add_times(c, {Relation::committed_before, step}, committed, sent, kNoTransaction);
  for (const auto& step : m.of(Relation::answered_before))
    // mutant: statements-of-no-time
    add_times(c, {Relation::answered_before, step}, answered, sent, kNoTransaction);
  // Like own_commit, the relation also contains the pair of a statement and its own transaction.
  for (const auto& step : m.of(Relation::committed_after))
    // mutant: statement-of-the-future
    add_times(c, {Relation::committed_after, step}, answered, commits, kNoTransaction);
}

// Returns a shared line if each of the four relations has one step, and if steps that begin, or
// end, at the same kind of place have the same state there.
std::optional<EventGraph::Line> EventGraph::shared_line(const Automaton& m) {
  if (m.sites != Sites::statements) return std::nullopt;
  const auto step = [&](Relation relation) {
    return m.of(relation).size() == 1 ? m.of(relation).front() : Automaton::Step{-1, -1};
  };
  const auto [q, r] = step(Relation::done);
  const auto [at, on] = step(Relation::answered_before);
  if (q < 0 || at < 0 || step(Relation::committed_before) != std::pair(q, on)) return std::nullopt;
  // mutant: lines-always-shared
  if (step(Relation::committed_after) != std::pair(at, r)) return std::nullopt;
  Line line(Relation::done, {q, r});
  line.statement = {at, on};
  line.to_statement = Relation::committed_before;
  return line;
}

std::int32_t EventGraph::read_at(Node v) const {
  if (v >= auxiliary_base_) return -1;
  const auto check = idx(check_of(v));
  if (!automata[check].by_statement()) return -1;
  const std::int32_t apart = apart_[check], n = problem.n;
  const Node first = node(check, n + 1, apart);
  if (v < first) return -1;
  const std::int32_t place = n + 1 + (v - first) / (automata[check].states - apart);
  const auto found = std::ranges::lower_bound(statements_.of_read, place);
  return found != statements_.of_read.end() && *found == place
             ? static_cast<std::int32_t>(found - statements_.of_read.begin())
             : -1;
}

std::int32_t EventGraph::transaction_of_label(Node v) const { return v - base_[check_of(v)]; }

std::int32_t EventGraph::check_of(Node v) const {
  const auto holds = [&](std::size_t c) {
    return v >= base_[c] && v < node(c, places_of(c).count(), apart_[c]);
  };
  if (v < auxiliary_base_ || v >= node_count_)
    for (std::size_t c = 0; c < base_.size(); ++c)
      if (automata[c].direct() == (v >= node_count_) && holds(c))
        return static_cast<std::int32_t>(c);
  if (version_base_ >= 0 && v >= version_base_) return -1;
  return auxiliary_check_[v - auxiliary_base_];
}

// Ranks transactions by the assumed order. If no order is assumed, it ranks them by their ends, and
// those without an end by their beginnings; without times, by their positions in their sessions.
// This order is close to one that the database may have used, and the states of a transaction are
// adjacent in it.
void EventGraph::set_priorities(const AssumedOrders& assumed) {
  const Problem& p = problem;
  std::vector<std::int64_t> when(idx(p.n + 1), kTimeUnknownBegin);
  std::vector<std::int32_t> place(idx(p.sessions), 0);
  for (std::int32_t t = 0; t < p.n; ++t)
    if (!p.has_time)
      when[t] = place[p.session[t]]++;
    else  // unfinished transactions usually took effect soon; placed at the end, they would have to move far
      when[t] = p.end[t] == kTimeUnknownEnd && p.begin[t] != kTimeUnknownBegin ? p.begin[t] : p.end[t];
  for (std::size_t i = 0; i < assumed.order.size(); ++i)
    when[assumed.order[i]] = static_cast<std::int64_t>(i);
  guesses_ = !p.has_time && assumed.order.empty();
  turns_.resize(when.size());
  std::iota(turns_.begin(), turns_.end(), 0);
  set_priorities(when);
}

void EventGraph::set_priorities(std::span<const std::int32_t> guess) {
  if (guess.empty()) return;
  std::vector<std::int64_t> when(idx(problem.n + 1), 0);
  for (Node v = 0; v < auxiliary_base_; ++v) when[transaction_of(v)] += guess[v];
  when[problem.n] = kTimeUnknownBegin;
  set_priorities(when);
}

void EventGraph::follow(std::span<const std::int32_t> likely) {
  std::vector<std::int64_t> when(idx(problem.n + 1), problem.n);
  for (std::size_t i = 0; i < likely.size(); ++i) when[likely[i]] = static_cast<std::int64_t>(i);
  when[problem.n] = kTimeUnknownBegin;
  guesses_ = false;
  set_priorities(when);
}

void EventGraph::set_priorities(std::span<const std::int64_t> when) {
  std::ranges::stable_sort(turns_, {}, [&](std::int32_t t) { return when[t]; });
  std::vector<std::int32_t> turn(turns_.size());
  for (std::size_t i = 0; i < turns_.size(); ++i) turn[turns_[i]] = static_cast<std::int32_t>(i);
  priority_.assign(idx(node_count_), 0);  // auxiliary nodes: as early as possible
  for (Node v = 0; v < auxiliary_base_; ++v) priority_[v] = turn[transaction_of(v)];
  if (version_base_ >= 0)
    for (std::size_t w = 0; w < problem.writer_txn.size(); ++w)
      priority_[idx(version_base_) + w] = turn[problem.writer_txn[w]];
}

}  // namespace isolang
