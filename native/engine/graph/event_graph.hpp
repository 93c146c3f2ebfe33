// The event graph: the product of the history's relations with each check's automaton. Every edge
// has a reason.
//
// For each check, the nodes are pairs (place, state). A place is a transaction, a transaction's
// access to a key, or a statement. They are followed by auxiliary nodes that represent so or rt in
// linear size, and, if no automaton orders versions by itself, by one node for each writer of a
// key. Several checks form a disjoint union over the same choices.
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

// One product edge with its reason. The relation determines which literals the edge needs:
//
// wr: source(read, a)   ww: before(a, b)   rw: source(read, a) and before(a, b)
//
// Edges of other relations are facts of the history and need no literals. a and b are indices into
// Problem::writer_*, and read is an index into Problem::read_*.
struct Edge {
  Node from, to;
  Relation relation;
  std::int32_t read = -1, a = -1, b = -1;
};

// Orders that are treated as facts although no check demands them (presolve/presolve.hpp). They
// become edges of the relations so and rt.
struct Times {
  std::vector<std::int64_t> begin, end;
};
struct AssumedOrders {
  // Per transaction, 1 if an assumed session order does not reach across its begin.
  std::vector<std::uint8_t> breaks{};
  // The transactions in the assumed order. Each transaction without a break precedes the
  // transaction `window` positions later.
  std::vector<std::int32_t> order{};
  std::int32_t window = 0;  // 0 if no order is assumed
  Times times{};            // per transaction, the times of an assumed real time
  bool together = false;    // reads for which reads_together() is true are one statement
  // Per read, 1 if its pairs are kApartPairs; empty if no read's pairs are. Used only for checks that
  // name no label, level or key.
  std::vector<std::uint8_t> apart{};
};

// The places visited by the walks of a check.
struct Places {
  std::vector<std::int32_t> transaction;  // of each place
  std::span<const std::int32_t> of_writer, of_read;
  std::span<const std::int32_t> of_write;  // the places to which ww leads
  // The places of a group are consecutive, and T0's place is the last. No given relation leads to
  // another group.
  std::vector<std::int32_t> group_start;
  std::vector<std::int32_t> own;  // storage of the three spans, unless they refer to the problem
  std::int32_t first_end = 0;     // places from this one on are ends of transactions

  std::int32_t count() const { return static_cast<std::int32_t>(transaction.size()); }
};
Places transactions_of(const Problem& problem);
Places accesses_of(const Problem& problem);  // one place for each access, grouped by key
// Returns the transactions and, after T0 and in no group, each statement that reads. With `writes`,
// of_write is the first statement after the write, or a place after all statements of its
// transaction.
Places statements_of(const Problem& problem, bool writes, bool together = false);
// Returns true if the previous read was sent and answered together with this read, and there is no
// operation between them. Recorders that record each row of a statement's result as a separate read
// produce such reads.
bool reads_together(const Problem& problem, std::int32_t read);

class EventGraph {
 public:
  EventGraph(const Problem& problem, std::vector<Automaton> automata,
             const AssumedOrders& assumed = {});

  const Problem& problem;
  const std::vector<Automaton> automata;
  bool uses_reads = false;            // whether some step is wr or rw
  bool uses_orders = false;           // whether some step is ww or rw
  bool forbids_return_paths = false;  // whether some check forbids return paths
  bool every_check_judges = true;
  bool sessions_order_versions = false;  // a writer precedes the later writers of its session

  // --- nodes ---
  Node nodes() const { return node_count_; }
  Node node(std::size_t check, std::int32_t place, std::int32_t state) const {
    const std::int32_t apart = apart_[check], n = problem.n;
    return base_[check] + state +
           (place > n ? n * apart + place * (automata[check].states - apart)
                      : place * automata[check].states);
  }
  // Returns the node of the transaction that writes, or reads. If the places of the check are
  // accesses, returns the node of the transaction's access to that key.
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
  // Returns true if the places of some check are not the transactions.
  bool walks_parts() const { return accesses_.count() > 0 || statements_.count() > 0; }
  // Returns a read of the node's statement, or -1 if the node belongs to no statement.
  std::int32_t read_at(Node v) const;
  // Returns the number after that of the last node that stands for a place in a state.
  Node end_of_places() const { return auxiliary_base_; }
  // Returns a number that represents a transaction of a direct check in the reasons of edges. Direct checks have no
  // nodes in the graph, so the number is greater than those of all nodes.
  Node label(std::size_t check, std::int32_t txn) const { return base_[check] + txn; }
  // Returns the node whose rank places writer w in the version order of its key.
  Node order_node(std::int32_t writer) const {
    return version_base_ >= 0 ? version_base_ + writer
                              : writer_node(idx(order_check_), writer, 0);
  }
  bool has_version_nodes() const { return version_base_ >= 0; }
  std::int32_t transaction_of(Node v) const {  // -1 for auxiliary and version nodes
    return v < node_count_ ? transaction_[v] : transaction_of_label(v);
  }
  std::int32_t writer_of(Node v) const {  // the writer of a version node; -1 for others
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
  // Sets another priority, from a guess of when the nodes happened. The nodes of a transaction stay
  // together. Call it only if no times are known. An empty guess changes nothing.
  bool guesses_priorities() const { return guesses_; }
  void set_priorities(std::span<const std::int32_t> guess);
  // Sets another priority permanently: the given transactions, in the order in which they are likely to have happened,
  // followed by all other transactions.
  void follow(std::span<const std::int32_t> likely);

  // --- edges, in the order in which they became known ---
  Growing<Edge> edges;
  // Return the kinds of pairs that a read, a key or a writer belongs to.
  Pairs pairs_of_read(std::int32_t read) const {
    if (!apart_reads_.empty() && apart_reads_[idx(read)] != 0) return kApartPairs;
    const Pairs items = pairs_of_key(problem.read_key[read]);
    return !problem.read_predicate.empty() && problem.read_predicate[read] != 0 ? items << 1 : items;
  }
  Pairs pairs_of_key(std::int32_t key) const { return kinds_ == nullptr ? 1 : kinds_->items(key); }
  Pairs pairs_of_writer(std::int32_t w) const {
    return kinds_ == nullptr ? 1 : Pairs{1} << (2 * writer_kind_[w]);
  }
  // Visits all product edges that one pair of the relation adds, in every check.
  template <typename Visit>
  void wr_edges(std::int32_t read, std::int32_t a, Visit visit) const {
    if (times_imply_wr_ && committed_before(a, read)) return;
    each(wr_, pairs_of_read(read), of_writer(a), of_read(read), [&](Node from, Node to) {
      // mutant: no-wr-edges
      visit(Edge{from, to, Relation::wr, read, a, -1});
    });
  }
  template <typename Visit>
  void ww_edges(std::int32_t a, std::int32_t b, Visit visit) const {
    // First, so that a cycle of a version order is found here before a check that does not judge
    // has it.
    // mutant: no-version-order
    if (has_version_nodes()) visit(Edge{order_node(a), order_node(b), Relation::ww, -1, a, b});
    each(ww_, pairs_of_writer(a), of_writer(a), of_write(b), [&](Node from, Node to) {
      // mutant: no-ww-edges
      visit(Edge{from, to, Relation::ww, -1, a, b});
    });
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
  // Visits the edges whose cycles are violations, and the pairs that must not close a return path.
  template <typename Visit>
  void rw_closings(std::int32_t read, std::int32_t a, std::int32_t b, Visit visit) const {
    add_rw(Relation::rw, rw_, read, a, b, [&](const Edge& e) {
      if (judges(e.from)) visit(e);
    });
    add_rw(Relation::closing, back_, read, a, b, visit);
  }

 private:
  // A step of some check's automaton on its product: for places T and S, it leads from node `from`
  // + T * `from_states` to node `to` + S * `to_states`.
  struct Step {
    Node from, to;
    std::int32_t from_states, to_states;
    Sites sites;
    Pairs pairs;         // the pairs to which the step applies
  };
  using Place = std::array<std::int32_t, 4>;  // indexed by Sites
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
  // The steps of a timeline: the states of its tails and heads, and the relation for each kind of
  // head.
  struct Line {
    Line(Relation relation, const Automaton::Step& step)
        : transaction(step), statement(step), to_transaction(relation), to_statement(relation) {}
    Automaton::Step transaction, statement;
    Relation to_transaction, to_statement;
  };
  // Returns the common timeline of COMMITs and statements, if there is one. On this timeline, an
  // answer precedes every request that was sent later, whether the two belong to COMMITs or to
  // statements. The relation of such an edge depends on whether its head is a COMMIT or a
  // statement.
  static std::optional<Line> shared_line(const Automaton& m);
  bool done_implies_real_time(const Automaton& m) const;
  // Returns true if the writer's COMMIT was answered before the statement of the read was sent.
  bool committed_before(std::int32_t writer, std::int32_t read) const {
    const std::int32_t t = problem.writer_txn[writer];
    // mutant: committed-in-any-case
    return t != problem.n && problem.commit_end[t] < problem.read_sent[read];
  }
  void add_between(std::size_t check, Relation relation, const Automaton::Step& step,
                   const std::vector<Moment>& first, std::vector<Moment>& heads);
  void add_times(std::size_t check, const Line& line, std::vector<Moment>& tails,
                 std::vector<Moment>& heads, std::int32_t initial);
  // Visits each session whose clock may be wrong, with the session's clock error, its tails by its
  // own clock, and its heads.
  template <typename Visit>
  void each_clock(std::size_t check, const std::vector<Moment>& tails,
                  const std::vector<Moment>& heads, Visit visit);
  void add_timeline(std::size_t check, const Line& line, std::vector<Moment>& tails,
                    std::vector<Moment>& heads, std::int32_t initial);
  void set_priorities(const AssumedOrders& assumed);
  void set_priorities(std::span<const std::int64_t> when);  // per transaction, including T0
  Node fresh(std::size_t check);
  std::int32_t transaction_of_label(Node v) const;

  Places transactions_, accesses_, statements_;
  std::vector<Node> base_;
  // For each check by statement, the first of a statement's states; 0 for other checks. The nodes
  // of transactions have all states and come first.
  std::vector<std::int32_t> apart_;
  std::vector<Step> wr_, ww_, rw_, back_;
  // True if a read that was sent after the answer to the writer's COMMIT adds no wr edge.
  bool times_imply_wr_ = false;
  std::vector<std::uint8_t> apart_reads_;  // see AssumedOrders::apart
  std::shared_ptr<const Kinds> kinds_;     // null if only items and predicates are distinguished
  std::vector<std::uint8_t> writer_kind_;  // the kind of each writer's key, if there are kinds
  std::vector<std::int32_t> transaction_;      // of each node, or -1
  std::vector<std::int32_t> auxiliary_check_;  // check of each auxiliary node
  std::vector<std::int32_t> turns_;  // the transactions in the order of priority_
  std::vector<std::int32_t> priority_;
  bool guesses_ = true;
  Node auxiliary_base_ = 0, version_base_ = -1, node_count_ = 0;
  std::int32_t order_check_ = -1;
};

}  // namespace isolang
