#include "engine/search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::int32_t kGroup = 64, kOneGroup = 4096;  // nodes

std::uint64_t pair_code(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(std::min(a, b)) << 32 | static_cast<std::uint32_t>(std::max(a, b));
}

std::vector<std::int32_t> ends(const std::vector<Edge>& edges, Node Edge::* end) {
  std::vector<std::int32_t> nodes(edges.size());
  std::ranges::transform(edges, nodes.begin(), [end](const Edge& e) { return e.*end; });
  return nodes;
}

std::vector<std::int32_t> rank_along(std::span<const Node> line, const EventGraph& graph, Budget& budget) {
  const auto successors = group_by(
      graph.nodes(), graph.edges.size(), [&](std::size_t i) { return graph.edges[i].from; }, [&](std::size_t i) { return graph.edges[i].to; });
  std::vector<std::int32_t> place(idx(graph.nodes()), -1), rank(place.size());
  for (std::size_t i = 0; i < line.size(); ++i) place[idx(line[i])] = static_cast<std::int32_t>(i);
  const auto order = topological_order(successors, place, budget);
  for (std::size_t i = 0; i < order.size(); ++i) rank[idx(order[i])] = static_cast<std::int32_t>(i);
  return rank;
}

}  // namespace

Search::Search(const Pruner& pruner, Budget& budget, std::uint64_t seed, std::size_t max_bytes, std::span<const Node> line)
    : pruner_(pruner),
      graph_(pruner.graph),
      p_(pruner.graph.problem),
      budget_(budget),
      sat_(*this, budget, seed),
      order_(pruner.graph.nodes(), ends(pruner.graph.edges, &Edge::from), ends(pruner.graph.edges, &Edge::to),
             line.empty() ? pruner.rank : rank_along(line, pruner.graph, budget)),
      permanent_(pruner.graph.edges.size()),
      orders_at_(p_.writer_txn.size()),
      sources_at_(p_.writer_txn.size()),
      ways_back_(pruner, budget) {
  sat_.max_bytes = max_bytes;
  source_variable_.assign(p_.candidate.size(), -1);
  in_variable_.assign(p_.inclusion.size(), -1);
  active_read_.assign(idx(p_.reads()), 0);
  source_.assign(idx(p_.reads()), -1);
  sources_taken_.assign(idx(p_.reads()), 0);
  readers_ = group_by(
      static_cast<std::int32_t>(p_.writer_txn.size()), pruner.source.size(), [&](std::size_t r) { return pruner.source[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
  place_.assign(p_.writer_txn.size(), 0);
  writers_.resize(p_.writer_txn.size());
  std::iota(writers_.begin(), writers_.end(), 0);
  if (!graph_.uses_reads) return;
  // Reads that bear on which transactions are in are variables from the start.
  for (std::int32_t r = 0; r < p_.reads(); ++r) {
    if (pruner.source[idx(r)] >= 0) continue;
    bool conditional = !certain(p_.read_txn[idx(r)]);
    for (auto i = p_.candidate_start[idx(r)]; i < p_.candidate_start[idx(r) + 1]; ++i)
      conditional |= pruner.alive[static_cast<std::size_t>(i)] &&
                     !certain(p_.writer_txn[idx(p_.candidate[static_cast<std::size_t>(i)])]);
    if (conditional) activate_read(r);
  }
}

bool Search::certain(std::int32_t txn) const {
  return pruner_.inclusion[idx(txn)] == static_cast<std::uint8_t>(Inclusion::in);
}

std::int32_t Search::variable(Meaning meaning, std::int32_t at) {
  meaning_.push_back(meaning);
  processed_.push_back(0);
  if (graph_.nodes() <= kOneGroup) return sat_.new_variable();
  // Grouped by time: distant choices have little to do with one another. The sources come before the orders that they ask
  // for: an order decided first would not know of its readers, and take the wrong side.
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
  const std::int32_t v = variable({Meaning::Kind::before, std::min(a, b), std::max(a, b)}, std::max(last, place_of(read)));
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
  for (auto i = static_cast<std::size_t>(p_.candidate_start[idx(r)]); i < static_cast<std::size_t>(p_.candidate_start[idx(r) + 1]); ++i) {
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

bool Search::add(const Edge& e) {
  if (pruner_.clocks.reaches(e.from, e.to)) return true;
  if (order_.add(e.from, e.to)) {
    dynamic_.push_back(e);
    return true;
  }
  pending_.assign(1, {e, false});
  for (const std::int32_t number : order_.path) {
    const bool known = idx(number) < permanent_;
    pending_.push_back({known ? graph_.edges[idx(number)] : dynamic_[idx(number) - permanent_], known});
  }
  return false;
}

bool Search::assign(Lit literal, std::vector<Lit>& conflict) {
  const std::int32_t v = literal.variable();
  processed_[idx(v)] = 1;
  const Meaning m = meaning_[idx(v)];
  if (m.kind == Meaning::Kind::source && !literal.negated()) ++sources_taken_[idx(m.a)];
  bool fine = true;
  const auto try_add = [&](const Edge& e) { fine = fine && add(e); };
  if (m.kind == Meaning::Kind::before) {
    const std::int32_t a = literal.negated() ? m.b : m.a, b = literal.negated() ? m.a : m.b;
    graph_.ww_edges(a, b, try_add);
    for (const std::int32_t r : readers_.of(a)) graph_.rw_edges(r, a, b, try_add);
    for (const std::int32_t s : sources_at_.of(a))
      if (processed_[idx(s)] && sat_.value(Lit::positive(s)) > 0) graph_.rw_edges(meaning_[idx(s)].a, a, b, try_add);
  } else if (m.kind == Meaning::Kind::source && !literal.negated()) {
    graph_.wr_edges(m.a, m.b, try_add);
    for (const std::int32_t o : orders_at_.of(m.b)) {
      if (!processed_[idx(o)]) continue;
      const Meaning& pair = meaning_[idx(o)];
      const bool first = sat_.value(Lit::positive(o)) > 0;
      if ((first ? pair.a : pair.b) == m.b) graph_.rw_edges(m.a, m.b, first ? pair.b : pair.a, try_add);
    }
  }
  if (fine) return true;
  conflict.clear();
  for (const auto& [edge, known] : pending_)
    if (!known) collect(edge, conflict);
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
    for (auto i = static_cast<std::size_t>(p_.candidate_start[idx(e.read)]); i < static_cast<std::size_t>(p_.candidate_start[idx(e.read) + 1]); ++i)
      if (p_.candidate[i] == e.a) add_false(Lit::negative(source_variable_[i]));
  }
}

void Search::unassign(Lit literal) {
  processed_[idx(literal.variable())] = 0;
  const Meaning& m = meaning_[idx(literal.variable())];
  if (m.kind == Meaning::Kind::source && !literal.negated()) --sources_taken_[idx(m.a)];
}

void Search::undo(std::size_t mark) {
  order_.shrink(mark);
  dynamic_.resize(mark - permanent_);
}

void Search::lemma(ClauseId id) {
  const std::size_t start = cycle_edges_.size();
  cycle_edges_.insert(cycle_edges_.end(), pending_.begin(), pending_.end());
  origins_[id] = {Origin::Kind::cycle, -1, start, cycle_edges_.size()};
}

// How far down the order the edges of "a before b" go: over so much of it something has to move.
std::int32_t Search::descent(std::int32_t a, std::int32_t b) const {
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  const auto fall = [&](const Edge& e) { most = std::max(most, rank(e.from) - rank(e.to)); };
  graph_.ww_edges(a, b, fall);
  for (const std::int32_t r : readers_.of(a)) graph_.rw_edges(r, a, b, fall);
  for (const std::int32_t s : sources_at_.of(a))
    if (sat_.value(Lit::positive(s)) > 0) graph_.rw_edges(meaning_[idx(s)].a, a, b, fall);
  return most;
}

bool Search::prefers(std::int32_t v) {
  const Meaning& m = meaning_[idx(v)];
  switch (m.kind) {
    case Meaning::Kind::before:
      return descent(m.a, m.b) < descent(m.b, m.a);
    case Meaning::Kind::source:
      return sources_taken_[idx(m.a)] == 0 && nearest_source(m.a) == m.b;
    case Meaning::Kind::in:
      return false;
  }
  return false;
}

// --- comparing the order with what follows from it ---------------------------------------------------------------

// The latest candidate whose wr edges go up.
std::int32_t Search::likely_source(std::int32_t r) const {
  std::int32_t best = -1;
  for (auto i = static_cast<std::size_t>(p_.candidate_start[idx(r)]); i < static_cast<std::size_t>(p_.candidate_start[idx(r) + 1]); ++i) {
    if (!pruner_.alive[i]) continue;
    const std::int32_t w = p_.candidate[i];
    if (source_variable_[i] >= 0 && sat_.value(Lit::positive(source_variable_[i])) < 0) continue;
    bool up = true;
    graph_.wr_edges(r, w, [&](const Edge& e) { up = up && rank(e.from) < rank(e.to); });
    if (!up) continue;
    if (best < 0 || !graph_.uses_orders || rank(graph_.order_node(w)) > rank(graph_.order_node(best))) best = w;
  }
  return best;
}

// How far something has to move for a read of this candidate: the reader, or the one of the writers in between that is
// nearest to neither end. (Those are sorted as of the last inspection, which does for a guess.)
std::int32_t Search::descent(std::int32_t r, std::int32_t w, const std::vector<std::int32_t>& writers) const {
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  Node reader = -1;
  graph_.wr_edges(r, w, [&](const Edge& e) {
    most = std::max(most, rank(e.from) - rank(e.to));
    if (reader < 0) reader = e.to;
  });
  if (most > 0 || reader < 0 || !graph_.uses_orders) return most;
  const auto first = writers.begin() + p_.key_start[idx(p_.read_key[idx(r)])];
  const auto last = writers.begin() + p_.key_start[idx(p_.read_key[idx(r)]) + 1];
  const std::int32_t low = rank(graph_.order_node(w)), high = rank(reader);
  const auto middle = std::partition_point(
      first, last, [&](std::int32_t x) { return rank(graph_.order_node(x)) < low + (high - low) / 2; });
  most = 0;
  const auto between = [&](std::int32_t x) {
    const std::int32_t at = rank(graph_.order_node(x));
    if (x != w && x != pruner_.own_writer[idx(r)] && low < at && at < high) most = std::max(most, std::min(at - low, high - at));
  };
  for (const std::int32_t o : orders_at_.of(w)) {
    const Meaning& pair = meaning_[idx(o)];
    const int first_before = sat_.value(Lit::positive(o));
    if (first_before != 0 && (first_before > 0 ? pair.a : pair.b) == w && pair.a + pair.b - w != pruner_.own_writer[idx(r)])
      most = std::max(most, high - rank(graph_.order_node(pair.a + pair.b - w)));
  }
  if (middle != last) between(*middle);
  if (middle != first) between(middle[-1]);
  return most;
}

// The candidate that asks for the least movement, the latest of several.
std::int32_t Search::nearest_source(std::int32_t r) const {
  std::int32_t best = -1, least = 0;
  for (auto i = static_cast<std::size_t>(p_.candidate_start[idx(r)]); i < static_cast<std::size_t>(p_.candidate_start[idx(r) + 1]); ++i) {
    if (!pruner_.alive[i]) continue;
    const std::int32_t w = p_.candidate[i];
    if (source_variable_[i] >= 0 && sat_.value(Lit::positive(source_variable_[i])) < 0) continue;
    const std::int32_t cost = descent(r, w, writers_);
    const bool later = best >= 0 && cost == least && graph_.uses_orders && rank(graph_.order_node(w)) > rank(graph_.order_node(best));
    if (best >= 0 && cost >= least && !later) continue;
    best = w;
    least = cost;
  }
  return best;
}

std::int32_t Search::current_source(std::int32_t r) const {
  if (pruner_.source[idx(r)] >= 0) return pruner_.source[idx(r)];
  if (!active_read_[idx(r)]) return likely_source(r);
  for (auto i = static_cast<std::size_t>(p_.candidate_start[idx(r)]); i < static_cast<std::size_t>(p_.candidate_start[idx(r) + 1]); ++i)
    if (source_variable_[i] >= 0 && sat_.value(Lit::positive(source_variable_[i])) > 0) return p_.candidate[i];
  return -1;  // only if its transaction is out
}

void Search::sort_writers() {
  for (std::int32_t key = 0; key < p_.keys; ++key) {
    const auto first = writers_.begin() + p_.key_start[idx(key)], last = writers_.begin() + p_.key_start[idx(key) + 1];
    std::sort(first, last, [&](std::int32_t a, std::int32_t b) { return rank(graph_.order_node(a)) < rank(graph_.order_node(b)); });
  }
  for (std::size_t i = 0; i < writers_.size(); ++i) place_[idx(writers_[i])] = static_cast<std::int32_t>(i);
  std::size_t step = 0;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, target] : graph_.automata[c].of(Relation::rw)) {
      if (lowest_.size() <= step * writers_.size()) lowest_.resize((step + 1) * writers_.size());
      std::int32_t* const lowest = lowest_.data() + step++ * writers_.size();
      for (std::int32_t key = 0; key < p_.keys; ++key) {
        std::int32_t least = std::numeric_limits<std::int32_t>::max();
        for (std::int32_t i = p_.key_start[idx(key) + 1] - 1; i >= p_.key_start[idx(key)]; --i) {
          least = std::min(least, rank(graph_.node(c, p_.writer_txn[idx(writers_[idx(i)])], target)));
          lowest[i] = least;
        }
      }
    }
}

// Every ww edge of this key's order that goes down: its pair must be decided.
void Search::inspect_key(std::int32_t key) {
  const std::int32_t first = p_.key_start[idx(key)], last = p_.key_start[idx(key) + 1];
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, r] : graph_.automata[c].of(Relation::ww)) {
      std::int32_t highest = -1;
      for (std::int32_t i = first; i < last; ++i) {
        const std::int32_t w = writers_[idx(i)], txn = p_.writer_txn[idx(w)];
        const std::int32_t here = rank(graph_.node(c, txn, r));
        if (highest >= here)
          for (std::int32_t j = first; j < i; ++j)
            if (rank(graph_.node(c, p_.writer_txn[idx(writers_[idx(j)])], q)) >= here)
              want_order_.push_back({writers_[idx(j)], w, -1});
        highest = std::max(highest, rank(graph_.node(c, txn, q)));
      }
    }
}

// Every edge of this read that goes down, given its source: the read, or else the pair of writers, must be decided.
void Search::inspect_read(std::int32_t r) {
  source_[idx(r)] = -1;
  const std::int32_t reader = p_.read_txn[idx(r)];
  if (!certain(reader)) {
    const std::int32_t in = in_variable_[idx(reader)];
    if (in < 0 || sat_.value(Lit::positive(in)) <= 0) return;
  }
  const bool decided = pruner_.source[idx(r)] >= 0 || active_read_[idx(r)];
  const std::int32_t a = source_[idx(r)] = current_source(r);
  if (a < 0) {
    want_read_.push_back(r);
    return;
  }
  if (!graph_.uses_orders) return;
  const auto up = [&](std::int32_t i) {
    bool every = true;
    graph_.rw_edges(r, a, writers_[idx(i)], [&](const Edge& e) { every = every && rank(e.from) < rank(e.to); });
    return every;
  };
  const auto all_up_from = [&](std::int32_t i) {
    std::size_t step = 0;
    bool every = true;
    for (std::size_t c = 0; c < graph_.automata.size(); ++c)
      for (const auto& [q, target] : graph_.automata[c].of(Relation::rw))
        every = every && rank(graph_.node(c, reader, q)) < lowest_[step++ * writers_.size() + idx(i)];
    return every;
  };
  const std::int32_t last = p_.key_start[idx(p_.read_key[idx(r)]) + 1];
  const std::int32_t own = pruner_.own_writer[idx(r)] < 0 ? -1 : place_[idx(pruner_.own_writer[idx(r)])];
  for (std::int32_t i = place_[idx(a)] + 1; i < last; ++i) {
    if (i > own && all_up_from(i)) return;
    if (up(i)) continue;
    if (!decided) {
      want_read_.push_back(r);
      return;
    }
    want_order_.push_back({a, writers_[idx(i)], r});
  }
}

// Where several nodes of a transaction have moved, they may stand far apart now, and in between everything overlaps with
// it. So what stands there is sorted anew: each node as late as it can, but none of a transaction later than its last one.
void Search::settle_order() {
  if (rounds == 1 || order_.moved().empty()) return;
  std::vector<std::int32_t> low(idx(p_.n + 1), std::numeric_limits<std::int32_t>::max()), high(idx(p_.n + 1), -1);
  std::vector<Node> at(idx(graph_.nodes()));
  for (Node v = 0; v < graph_.nodes(); ++v) {
    at[idx(rank(v))] = v;
    if (const std::int32_t t = graph_.transaction_of(v); t >= 0) {
      low[idx(t)] = std::min(low[idx(t)], rank(v));
      high[idx(t)] = std::max(high[idx(t)], rank(v));
    }
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> stretches;
  for (const Node v : order_.moved())
    if (const std::int32_t t = graph_.transaction_of(v); t >= 0) stretches.emplace_back(low[idx(t)], high[idx(t)]);
  std::ranges::sort(stretches);
  const auto latest = [&](Node v) {
    const std::int32_t t = graph_.transaction_of(v);
    return t < 0 ? rank(v) : high[idx(t)];
  };
  for (std::size_t i = 0; i < stretches.size();) {
    auto [first, last] = stretches[i];
    while (i < stretches.size() && stretches[i].first <= last) last = std::max(last, stretches[i++].second);
    budget_.poll();
    order_.sort_late(std::span(at).subspan(idx(first), idx(last - first + 1)), latest);
  }
  order_.forget_moved();
}

Theory::Answer Search::complete() {
  ++rounds;
  budget_.check();
  settle_order();
  want_order_.clear();
  want_read_.clear();
  if (graph_.uses_orders) {
    sort_writers();
    for (std::int32_t key = 0; key < p_.keys; ++key) inspect_key(key);
  }
  if (graph_.uses_reads)
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      budget_.poll();
      inspect_read(r);
    }
  std::erase_if(want_order_, [&](const Want& w) { return find_order(w.a, w.b) >= 0; });
  if (want_order_.empty() && want_read_.empty())
    return graph_.forbids_ways_back && forbid_ways_back() ? Answer::extended : Answer::consistent;
  sat_.restart();
  for (const auto& [a, b, read] : want_order_) activate_order(a, b, read);
  for (const std::int32_t r : want_read_) activate_read(r);
  return Answer::extended;
}

bool Search::is_in(std::int32_t txn) const {
  if (certain(txn)) return true;
  const std::int32_t in = in_variable_[idx(txn)];
  return in >= 0 && sat_.value(Lit::positive(in)) > 0;
}

bool Search::forbid_ways_back() {
  std::vector<std::uint8_t> in(p_.inclusion.size());
  for (std::size_t t = 0; t < in.size(); ++t) in[t] = is_in(static_cast<std::int32_t>(t));
  const auto closed = ways_back_.closed({source_, writers_, place_, in});
  if (closed.empty()) return false;
  sat_.restart();
  for (const auto& edges : closed) {
    for (const Edge& e : edges) {
      if (e.read >= 0 && pruner_.source[idx(e.read)] < 0) activate_read(e.read);
      if ((e.relation == Relation::ww || e.relation == Relation::rw) && p_.writer_txn[idx(e.a)] != p_.n) activate_order(e.a, e.b, e.read);
    }
    std::vector<Lit> clause;
    pending_.clear();
    for (const Edge& e : edges) {
      collect(e, clause);
      pending_.push_back({e, false});
    }
    lemma(sat_.add_clause(std::move(clause)));
  }
  return true;
}

// Where no check uses the version order, any one will do that contains what the data shows.
std::vector<std::int32_t> Search::shown_order() const {
  const auto writers = static_cast<std::int32_t>(p_.writer_txn.size());
  const auto successors = group_by(
      writers, p_.vo_before.size(), [&](std::size_t i) { return p_.vo_before[i]; }, [&](std::size_t i) { return p_.vo_after[i]; });
  std::vector<std::int32_t> key_of(idx(writers));
  for (std::int32_t key = 0; key < p_.keys; ++key)
    for (std::int32_t w = p_.key_start[idx(key)]; w < p_.key_start[idx(key) + 1]; ++w) key_of[idx(w)] = key;
  auto order = topological_order(successors, key_of, budget_);
  std::ranges::stable_sort(order, {}, [&](std::int32_t w) { return key_of[idx(w)]; });
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
      m.source[idx(r)] = current_source(r);
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
