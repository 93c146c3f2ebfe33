// The event graph: the product of the history's relations with each check's automaton, with a
// reason on every edge.
//
// Nodes, per check: (place, state), a place being a transaction, the access of one to a key, or a
// statement of one; then auxiliary nodes that carry so or rt in linear size; then, if no automaton
// orders versions by itself, one node per writer of a key. Several checks are a disjoint union over
// the same choices.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/growing.hpp"
#include "core/index.hpp"
#include "core/problem.hpp"
#include "engine/graph/automaton.hpp"

namespace isolang {

using Node = std::int32_t;

// One product edge and why it is there. Which literals it needs follows from the relation:
//   wr: source(read, a)   ww: before(a, b)   rw: source(read, a) and before(a, b)   others: none,
//   facts of the history.
// a and b are indices into Problem::writer_*, read into Problem::read_*.
struct Edge {
  Node from, to;
  Relation relation;
  std::int32_t read = -1, a = -1, b = -1;
};

// Orders that are taken as facts although no check demands them (presolve/presolve.hpp), as edges
// of the relations so and rt.
struct Times {
  std::vector<std::int64_t> begin, end;
};
struct AssumedOrders {
  std::vector<std::uint8_t> breaks{};  // per transaction: session order that is only a assumption
                                     // does not reach over its begin
  std::vector<std::int32_t>
      order{};  // transactions; of those without a break each precedes the one `window` places behind
  std::int32_t window = 0;  // 0: without an order
  Times times{};            // per transaction, of a real time that is only an assumption
  bool together = false;    // what reads_together() says of is one statement
};

// Where the walks of a check are, besides a state.
struct Places {
  std::vector<std::int32_t> transaction;  // of each
  std::span<const std::int32_t> of_writer, of_read;
  std::span<const std::int32_t> of_write;  // where ww leads to
  // The places of a group follow on each other, T0's last; no given relation leads to another group.
  std::vector<std::int32_t> group_start;
  std::vector<std::int32_t> own;  // of the three, those that are not the problem's
  std::int32_t first_end = 0;     // of those behind all statements of a transaction

  std::int32_t count() const { return static_cast<std::int32_t>(transaction.size()); }
};
Places transactions_of(const Problem& problem);
Places accesses_of(const Problem& problem);  // grouped by key
// The transactions, and behind T0, in no group, each statement that reads. With `writes`, of_write is
// the first one behind the write, or a place behind all of its transaction.
Places statements_of(const Problem& problem, bool writes, bool together = false);
// Whether the read before this one was sent and answered with it, with no operation between them. A
// recorder that writes down each row that a statement returned tells of them so.
bool reads_together(const Problem& problem, std::int32_t read);

class EventGraph {
 public:
  EventGraph(const Problem& problem, std::vector<Automaton> automata,
             const AssumedOrders& assumed = {});

  const Problem& problem;
  const std::vector<Automaton> automata;
  bool uses_reads = false;            // some step is wr or rw
  bool uses_orders = false;           // some step is ww or rw
  bool forbids_return_paths = false;  // some check does
  bool every_check_judges = true;
  bool sessions_order_versions = false;  // a writer precedes the later ones of its session

  // --- nodes ---
  Node nodes() const { return node_count_; }
  Node node(std::size_t check, std::int32_t place, std::int32_t state) const {
    const std::int32_t apart = apart_[check], n = problem.n;
    return base_[check] + state +
           (place > n ? n * apart + place * (automata[check].states - apart)
                      : place * automata[check].states);
  }
  // Of the transaction that writes, or reads; or of its access to that key.
  Node writer_node(std::size_t check, std::int32_t writer, std::int32_t state) const {
    return node(check, places_of(check).of_writer[writer], state);
  }
  Node written_node(std::size_t check, std::int32_t writer, std::int32_t state) const {
    const Places& places = places_of(check);
    return node(check, (automata[check].by_operation() ? places.of_write : places.of_writer)[writer],
                state);
  }
  Node read_node(std::size_t check, std::int32_t read, std::int32_t state) const {
    return node(check, places_of(check).of_read[read], state);
  }
  // Whether some check's places are not the transactions.
  bool walks_parts() const { return accesses_.count() > 0 || statements_.count() > 0; }
  // A read of the statement that the node is of; -1 if it is of none.
  std::int32_t read_at(Node v) const;
  // All nodes of a place in a state.
  Node end_of_places() const { return auxiliary_base_; }
  // A direct check has no nodes in the graph; this number beyond them stands for one of its
  // transactions, in reasons.
  Node label(std::size_t check, std::int32_t txn) const { return base_[check] + txn; }
  // The node whose rank places writer w in its key's version order.
  Node order_node(std::int32_t writer) const {
    return version_base_ >= 0 ? version_base_ + writer
                              : writer_node(idx(order_check_), writer, 0);
  }
  bool has_version_nodes() const { return version_base_ >= 0; }
  std::int32_t transaction_of(Node v) const {  // -1 for auxiliary and version nodes
    return v < node_count_ ? transaction_[v] : transaction_of_label(v);
  }
  std::int32_t writer_of(Node v) const {  // of a version node; -1 for others
    return has_version_nodes() && v >= version_base_ ? v - version_base_ : -1;
  }
  bool is_zero(Node v) const {
    if (v >= auxiliary_base_) return false;
    const auto check = idx(check_of(v));
    if (apart_[check] > 0 && v >= node(check, problem.n + 1, apart_[check])) return false;
    return (v - base_[check]) % automata[check].states == 0;
  }
  std::int32_t check_of(Node v) const;                          // -1 for version nodes
  std::int32_t priority(Node v) const { return priority_[v]; }  // a good order to start from
  // Another one, by a guess when the nodes happened (those of a transaction together); to be asked
  // for only where no times are known. An empty guess is none.
  bool guesses_priorities() const { return guesses_; }
  void set_priorities(std::span<const std::int32_t> guess);

  // --- edges, in the order in which they became known ---
  Growing<Edge> edges;
  // Those that are of the same kind as this one.
  Pairs pairs_of_read(std::int32_t read) const {
    const Pairs items = pairs_of_key(problem.read_key[read]);
    return !problem.read_predicate.empty() && problem.read_predicate[read] != 0 ? items << 1 : items;
  }
  Pairs pairs_of_key(std::int32_t key) const { return kinds_ == nullptr ? 1 : kinds_->items(key); }
  Pairs pairs_of_writer(std::int32_t w) const {
    return kinds_ == nullptr ? 1 : Pairs{1} << (2 * writer_kind_[w]);
  }
  // All product edges that one pair of the relation adds, in every check.
  template <typename Visit>
  void wr_edges(std::int32_t read, std::int32_t a, Visit visit) const {
    if (times_say_wr_ && committed_before(a, read)) return;
    each(wr_, pairs_of_read(read), of_writer(a), of_read(read), [&](Node from, Node to) {
      // mutant: no-wr-edges
      visit(Edge{from, to, Relation::wr, read, a, -1});
    });
  }
  template <typename Visit>
  void ww_edges(std::int32_t a, std::int32_t b, Visit visit) const {
    each(ww_, pairs_of_writer(a), of_writer(a), of_write(b), [&](Node from, Node to) {
      // mutant: no-ww-edges
      visit(Edge{from, to, Relation::ww, -1, a, b});
    });
    // mutant: no-version-order
    if (has_version_nodes()) visit(Edge{order_node(a), order_node(b), Relation::ww, -1, a, b});
  }
  template <typename Visit>
  void rw_edges(std::int32_t read, std::int32_t a, std::int32_t b, Visit visit) const {
    // mutant: no-rw-edges
    add_rw(Relation::rw, rw_, read, a, b, visit);
  }
  bool judges(Node v) const {
    if (every_check_judges) return true;
    const std::int32_t check = check_of(v);
    return check < 0 || automata[check].judges;
  }
  // Those of which a cycle is a violation, and the pairs that must not close a return path.
  template <typename Visit>
  void rw_closings(std::int32_t read, std::int32_t a, std::int32_t b, Visit visit) const {
    add_rw(Relation::rw, rw_, read, a, b, [&](const Edge& e) {
      if (judges(e.from)) visit(e);
    });
    add_rw(Relation::closing, back_, read, a, b, visit);
  }

 private:
  // A step of some check's automaton on its product: from node `from` + T * `from_states` to node
  // `to` + S * `to_states`, T and S being places.
  struct Step {
    Node from, to;
    std::int32_t from_states, to_states;
    Sites sites;
    Pairs pairs;         // those that it is about
  };
  using Place = std::array<std::int32_t, 4>;  // by Sites
  template <typename Visit>
  static void each(std::span<const Step> steps, Pairs pairs, Place first, Place second,
                   Visit visit) {
    for (const Step& step : steps)
      // mutant: predicate-reads-as-items
      if ((step.pairs & pairs) == 0)
        continue;
      else
        visit(step.from + first[idx(step.sites)] * step.from_states,
              step.to + second[idx(step.sites)] * step.to_states);
  }
  Place of_writer(std::int32_t w) const {
    return {writing(w), accesses_.count() > 0 ? accesses_.of_writer[w] : -1, writing(w), writing(w)};
  }
  Place of_write(std::int32_t w) const {
    Place place = of_writer(w);
    if (!statements_.of_write.empty()) place[3] = statements_.of_write[w];
    return place;
  }
  Place of_read(std::int32_t r) const {
    const std::int32_t statement = statements_.count() > 0 ? statements_.of_read[r] : -1;
    return {reading(r), accesses_.count() > 0 ? accesses_.of_read[r] : -1, statement, statement};
  }
  const Places& places_of(std::size_t check) const {
    const Places* const by_sites[] = {&transactions_, &accesses_, &statements_, &statements_};
    return *by_sites[idx(automata[check].sites)];
  }
  template <typename Visit>
  void add_rw(Relation relation, std::span<const Step> steps, std::int32_t read, std::int32_t a,
              std::int32_t b, Visit visit) const {
    // mutant: rw-to-itself
    if (reading(read) == writing(b)) return;  // rw = (wr^-1 ; ww) \ id
    each(steps, pairs_of_read(read), of_read(read), of_writer(b),
         [&](Node from, Node to) { visit(Edge{from, to, relation, read, a, b}); });
  }
  std::int32_t reading(std::int32_t read) const { return problem.read_txn[read]; }
  std::int32_t writing(std::int32_t w) const { return problem.writer_txn[w]; }
  void add_tests(std::size_t check);
  void add_sessions(std::size_t check, const std::vector<std::uint8_t>& breaks);
  void add_line(std::size_t check, const AssumedOrders& assumed);
  void add_real_time(std::size_t check, const AssumedOrders& assumed);
  void add_real_time_of_groups(std::size_t check);
  void add_moments(std::size_t check);
  void add_filtered(std::size_t check);
  void add_statements(std::size_t check, bool together);
  static constexpr std::int32_t kNoTransaction = -1;
  struct Moment {
    std::int64_t time;
    std::int32_t place;
  };
  // What a timeline says: the states of its tails and heads, and the relation, by what the head is.
  struct Line {
    Line(Relation relation, const Automaton::Step& step)
        : transaction(step), statement(step), to_transaction(relation), to_statement(relation) {}
    Automaton::Step transaction, statement;
    Relation to_transaction, to_statement;
  };
  // Whether COMMITs and statements share one timeline: what was answered before something was sent
  // precedes it, whichever they are. A head's relation is then the one with COMMITs.
  static std::optional<Line> shared_line(const Automaton& m);
  bool done_says_real_time(const Automaton& m) const;
  // Whether the writer's COMMIT was answered before the statement of the read was sent.
  bool committed_before(std::int32_t writer, std::int32_t read) const {
    const std::int32_t t = problem.writer_txn[writer];
    // mutant: committed-in-any-case
    return t != problem.n && problem.commit_end[t] < problem.read_sent[read];
  }
  void add_between(std::size_t check, Relation relation, const Automaton::Step& step,
                   const std::vector<Moment>& first, std::vector<Moment>& heads);
  void add_times(std::size_t check, const Line& line, std::vector<Moment>& tails,
                 std::vector<Moment>& heads, std::int32_t initial);
  // Of each session with a wrong clock: its slack, its tails by its own clock, its heads.
  template <typename Visit>
  void each_clock(std::size_t check, const std::vector<Moment>& tails,
                  const std::vector<Moment>& heads, Visit visit);
  void add_timeline(std::size_t check, const Line& line, std::vector<Moment>& tails,
                    std::vector<Moment>& heads, std::int32_t initial);
  void set_priorities(const AssumedOrders& assumed);
  void set_priorities(std::span<const std::int64_t> when);  // per transaction, T0 too
  Node fresh(std::size_t check);
  std::int32_t transaction_of_label(Node v) const;

  Places transactions_, accesses_, statements_;
  std::vector<Node> base_;
  // Per check by statement the first state that a statement has; 0 for the others. The nodes of
  // transactions have all states and come first.
  std::vector<std::int32_t> apart_;
  std::vector<Step> wr_, ww_, rw_, back_;
  bool times_say_wr_ = false;  // a read that was sent after the writer's COMMIT adds nothing
  std::shared_ptr<const Kinds> kinds_;     // null: only items and predicates are distinguished
  std::vector<std::uint8_t> writer_kind_;  // of the key of each writer, where there are kinds
  std::vector<std::int32_t> transaction_;      // of each node, or -1
  std::vector<std::int32_t> auxiliary_check_;  // check of each auxiliary node
  std::vector<std::int32_t> turns_;  // the transactions in the order that priority_ speaks of
  std::vector<std::int32_t> priority_;
  bool guesses_ = true;
  Node auxiliary_base_ = 0, version_base_ = -1, node_count_ = 0;
  std::int32_t order_check_ = -1;
};

}  // namespace isolang
