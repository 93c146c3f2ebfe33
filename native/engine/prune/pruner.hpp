// Pruning: everything about the choices that the known edges already imply, each conclusion with
// its reason.
//
// A choice is impossible if one edge that it adds would close a cycle of known edges. For writers
// a, b of a key whose order a, b is impossible, b precedes a: a ww edge from b, and an rw edge from
// each of b's readers, become known. A candidate source that is impossible is eliminated; the last
// one left is the source.
//
// Return paths that a single rw must not close are tested with the others and never become edges:
// they order writers, which is the saturation by which RA and CC are polynomial (Biswas and Enea,
// On the complexity of checking transactional consistency, OOPSLA 2019) where each read has one
// source and no return path has a ww step.
#pragma once
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <unordered_set>
#include <vector>

#include "core/budget.hpp"
#include "core/index.hpp"
#include "engine/graph/clocks.hpp"
#include "engine/graph/event_graph.hpp"
#include "engine/prune/writer_pairs.hpp"

namespace isolang {

// Why a choice is impossible: its edge `closing` would close a cycle with a path closing.to →
// closing.from of edges that were known before edge number `epoch`; in a direct check, with one
// pair in Pruner::backs.
struct Impossible {
  Edge closing;
  std::uint32_t epoch;
  std::int32_t back = -1;  // into Pruner::backs, or none
};

class Pruner {
 public:
  Pruner(EventGraph& graph, Budget& budget, std::size_t max_clock_bytes, std::size_t threads = 1);

  // To the end. False: contradiction, see `cycle`, `closed` and `read_without_candidates`.
  bool run() {
    while (!done())
      if (!advance()) return false;
    return true;
  }
  // A step: one pass, or what takes the place of the first. The order is then one of all the known
  // edges. Returns false if the known edges have a cycle.
  bool advance();
  // At a fixpoint, or the last pass has gained little.
  bool done() const { return done_; }

  // Before the first step: leaves what predicate reads did not find to a search. Of a hundred such
  // reads an order of the others contradicts a few, and only those must be decided.
  void defer_predicate_reads();
  bool defers() const { return deferring_; }
  // Goes on with all reads; it is not done then.
  void take_up_predicate_reads();

  EventGraph& graph;
  std::vector<std::int32_t> order,
      rank;  // topological order of the known edges, and each node's place in it
  Clocks clocks;
  std::vector<std::int32_t>
      own_writer;  // per read: the reader's own write of the key (a writer index), or -1
  std::vector<std::int32_t> source;  // per read: its only possible source (a writer index), or -1
  std::vector<std::uint8_t> alive;   // per candidate: not eliminated
  std::vector<std::uint8_t>
      inclusion;  // Inclusion per transaction, optional ones may have become `in`
  std::vector<std::int32_t> included_by;  // per transaction: the read that made it `in` here, or -1
  std::int32_t passes = 0;
  std::int64_t forced_orders = 0, eliminated_sources = 0;

  // Contradictions: a cycle of known edges (their numbers, in order), a known rw pair that closes a
  // return path, or a read without any source left.
  std::vector<std::int32_t> cycle;
  std::optional<Impossible> closed;
  std::int32_t read_without_candidates = -1;
  bool saturated = false;  // what remains to be chosen closes no return path, whatever is chosen

  // The conclusions, with as much of their reasons as it takes to find them again (Refuter): there
  // may be millions, and few are ever asked for. What a pass concludes from the clocks follows from
  // the edges that were known before it.
  std::vector<std::uint32_t> epochs;  // per pass, from 1: how many edges those are
  std::vector<std::uint8_t>
      resolved_in;  // per read with a source: by that pass; 0: it never had another
  std::vector<std::uint8_t> eliminated_in;  // per eliminated candidate: by that pass; 0: it never was one
  static constexpr std::int32_t kContradictory = -1, kClosesCycle = -2, kReason = -3;
  // Per candidate that is eliminated: the writer that follows it and that the reader cannot have
  // missed; or its transaction contradicts itself (Problem::impossible); or its wr edge closes a
  // cycle; or kReason - an index into `reasons`.
  std::vector<std::int32_t> eliminated_by;
  // Of direct checks, which tell more within a pass: the reasons themselves.
  struct Order {
    std::int32_t before, after;
    std::uint32_t number;  // edges known then
    Impossible reverse;
  };
  std::vector<Order> orders;
  std::vector<Impossible> reasons;
  std::vector<Edge> backs;

  // After run() without a contradiction: for each pair of writers of each key whether its order is
  // settled, as flat lists of pairs. T0's writers come first and are left out.
  struct Pairs {
    std::vector<std::int32_t> settled;  // before, after
    std::vector<std::int32_t> open;     // either may come first
  };
  Pairs pairs();
  // The order of each pair of the key's writers is known, and so are all edges of it and of settled
  // reads, or implied.
  bool settled(std::int32_t key) const;
  bool at_fixpoint() const {
    return gained_ == 0;
  }  // else settled reads may lack edges to settled writers

  // The known return paths of direct checks from a writer of the key to a read: no source of the
  // read precedes that writer. The closing edges lack their source.
  struct ReturnPath {
    std::int32_t writer;
    Edge closing, back;
  };
  template <typename SourceOf>
  void direct_return_paths(std::int32_t read, SourceOf source_of,
                           std::vector<ReturnPath>& found) const;
  auto reads_of(std::int32_t txn) const {
    const auto t = idx(txn);
    return std::views::iota(first_read_[t], first_read_[t + 1]);
  }

  std::int32_t key_of(std::int32_t writer) const { return key_of_[writer]; }
  std::span<const std::int32_t> writers_of(std::int32_t txn) const {
    return writers_by_txn_.of(txn);
  }
  std::span<const std::int32_t> keys_of_writers() const { return key_of_; }
  std::int32_t write_of(std::int32_t txn, std::int32_t key) const;  // a writer, or -1
  std::size_t candidates_left(std::int32_t read) const;             // not eliminated
  std::size_t open_candidates() const;  // of reads without a certain source, if not deferred
  Adjacency readers() const;            // writer -> reads that certainly take it
  const Adjacency& successors() const { return successors_; }  // by known edges
  std::size_t threads() const { return threads_; }             // that may work at once
  bool included_reader(std::int32_t read) const {
    return inclusion[graph.problem.read_txn[read]] == static_cast<std::uint8_t>(Inclusion::in);
  }

 private:
  friend class KeyPruner;

  bool
  settle();  // what is direct, then a topological order of the known edges; false: contradiction
  bool sort();
  bool pass();
  bool left_to_do(std::int32_t key) const;
  bool prune_keys(std::span<const std::int32_t> keys, bool every_read);
  bool worthwhile();
  bool begin_directly();
  void note_changes();
  bool is_quiet(std::int32_t key) const;
  bool is_quiet_writer(std::int32_t writer) const;
  Adjacency latest_readers() const;
  void resolve(std::int32_t read, std::int32_t writer, Growing<Edge>& added);
  bool prune_direct();
  bool prune_direct(std::int32_t txn);
  bool order_behind_source(std::int32_t writer, Edge closing, const Edge& back);
  Impossible because(const Edge& closing, const std::optional<Edge>& back = std::nullopt);
  std::uint32_t epoch() const { return epochs.empty() ? 0 : epochs.back(); }
  void find_own_writers();
  bool deferred(std::size_t read) const {
    return deferring_ && graph.problem.read_predicate[read] != 0;
  }
  void find_open_reads();
  void find_session_writers();
  bool initial(std::int32_t writer) const {
    return graph.problem.writer_txn[writer] == graph.problem.n;
  }

  Budget& budget_;
  const std::size_t max_clock_bytes_, threads_;
  Adjacency successors_;  // by known edges, as of the last settle
  Adjacency readers_;     // writer -> reads that certainly take it
  WriterPairs pairs_;

  std::vector<std::int32_t>
      first_read_;        // per transaction, and the end: reads are in the order of their transactions
  Adjacency open_reads_;  // key -> its reads of several candidates, if not deferred
  std::vector<std::uint8_t> changed_;  // per transaction, see note_changes
  std::vector<std::uint8_t>
      restless_;             // per key: one of its writers has another reader than in the last pass
  bool every_read_ = false;  // look at all reads in the next pass
  bool one_by_one_ =
      false;  // what a pass concludes of a key may depend on what it concludes of others
  std::vector<std::int32_t>
      session_writer_;  // per read: the last writer of its key before it in its session, or -1
  std::vector<std::int32_t> session_before_;  // per writer: the one before it in its session, or -1
  Adjacency writers_by_txn_;
  bool direct_ = false;                               // some check is direct
  std::unordered_set<std::uint64_t> ordered_behind_;  // pairs that prune_direct has dealt with
  std::vector<std::uint8_t>
      resolved_txn_;  // a read of it has got its source since prune_direct saw it
  // Of the current transaction: the last of its reads of each key, with that transaction; each
  // read's predecessor there.
  std::vector<std::pair<std::int32_t, std::int32_t>> last_read_;
  std::vector<std::int32_t> read_before_;
  std::vector<std::int32_t> key_of_;  // per writer
  std::int64_t gained_ = 0;
  std::int64_t open_;       // what the last pass but one had left, about
  std::size_t sorted_ = 0;  // the edges that `order` respects
  bool begun_ = false, done_ = false, deferring_ = false;
  bool one_pass_ = false;  // one pass finds all that follows
};

template <typename SourceOf>
void Pruner::direct_return_paths(std::int32_t read, SourceOf source_of,
                                 std::vector<ReturnPath>& found) const {
  const Problem& p = graph.problem;
  const std::int32_t reader = p.read_txn[read], key = p.read_key[read];
  found.clear();
  for (std::size_t c = 0; c < graph.automata.size(); ++c) {
    const Automaton& m = graph.automata[c];
    if (!m.direct()) continue;
    const Node here = graph.label(c, reader);
    const auto add = [&](std::int32_t b, Relation relation, std::int32_t other) {
      const Node there = graph.label(c, p.writer_txn[b]);
      const std::int32_t from = relation == Relation::wr ? source_of(other) : -1;
      found.push_back(
          {b, {here, there, Relation::closing, read, -1, b}, {there, here, relation, other, from, -1}});
    };
    if (m.back.so)
      for (std::int32_t b = session_writer_[read]; b >= 0; b = session_before_[b]) {
        add(b, Relation::so, -1);
        if (graph.sessions_order_versions) break;  // those before it precede it
      }
    if (!m.back.wr && !m.back.earlier_wr) continue;
    for (const std::int32_t other : reads_of(reader)) {
      const std::int32_t seen = source_of(other);
      if (other == read || seen < 0 || initial(seen)) continue;
      if (!m.back.wr && !p.reads_first(other, read)) continue;
      if (const std::int32_t b = write_of(p.writer_txn[seen], key); b >= 0)
        add(b, Relation::wr, other);
    }
  }
}

}  // namespace isolang
