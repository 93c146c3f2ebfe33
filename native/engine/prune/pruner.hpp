// Pruning concludes everything about the choices that the known edges already imply. Each
// conclusion has a reason.
//
// A choice is impossible if one of its edges would close a cycle of known edges. If the order a, b
// of two writers of a key is impossible, then b precedes a: a ww edge from b, and an rw edge from
// each of b's readers, become known. An impossible candidate source is eliminated. If one candidate
// remains, it is the source.
//
// Return paths that a single rw must not close are tested with the other edges and never become
// edges themselves. They order writers. This is the saturation that makes RA and CC polynomial if
// each read has one source and no return path has a ww step (Biswas and Enea, On the complexity of
// checking transactional consistency, OOPSLA 2019). If return paths are longer than one pair, as at
// CC, the search saturates: it orders only the writers that its order contradicts, without decisions.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <ranges>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "core/index.hpp"
#include "core/zeros.hpp"
#include "engine/graph/clocks.hpp"
#include "engine/graph/event_graph.hpp"
#include "engine/prune/pair_set.hpp"
#include "engine/prune/writer_pairs.hpp"

namespace isolang {

// The reason why a choice is impossible: its edge `closing` would close a cycle with a path
// closing.to → closing.from of edges that were known before edge number `epoch`. In a direct check
// the path is one pair in Pruner::backs.
struct Impossible {
  Edge closing;
  std::uint32_t epoch;
  std::int32_t back = -1;  // an index into Pruner::backs, or -1
};

class Pruner {
 public:
  Pruner(EventGraph& graph, Budget& budget, std::size_t max_clock_bytes, std::size_t threads = 1);

  // Prunes until nothing more can be concluded. Returns false on a contradiction, see `cycles`,
  // `closed` and `read_without_candidates`.
  bool run() {
    while (!done())
      if (!advance()) return false;
    return true;
  }
  // Takes one step: a pass, or a substitute for the first pass. Afterwards `order` is a topological
  // order of all known edges. Returns false on a contradiction.
  bool advance();
  // Returns true at a fixpoint, or if the last pass has gained little.
  bool done() const { return done_; }

  // Postpones the rows that predicate reads did not find, and leaves them to the search. An order
  // found without these rows contradicts only a few per cent of them, and only those need a
  // decision. Call this before the first step.
  void defer_predicate_reads();
  bool defers() const { return deferring_; }
  // Continues with all reads, including the postponed ones. After this call, pruning is no longer
  // done.
  void take_up_predicate_reads();

  EventGraph& graph;
  std::vector<std::int32_t> order,
      rank;  // topological order of the known edges; the position of each node in it
  Clocks clocks;
  std::vector<std::int32_t>
      own_writer;  // per read: the reader's own write of the key (a writer index), or -1
  std::vector<std::int32_t> source;  // per read: its only possible source (a writer index), or -1
  std::vector<std::uint8_t> alive;   // per candidate: 1 unless it is eliminated
  std::vector<std::uint8_t>
      inclusion;  // per transaction, Inclusion; some optional transactions may have become `in`
  std::vector<std::int32_t> included_by;  // per transaction: the read that made it `in` here, or -1
  std::int32_t passes = 0;
  std::int64_t forced_orders = 0, eliminated_sources = 0;

  // Contradictions: cycles of known edges (their numbers, in order), a known rw pair that closes a
  // return path, or a read without any remaining source. Each cycle is a contradiction of its own.
  std::vector<std::vector<std::int32_t>> cycles;
  // Finds more cycles until there are enough of them, after `sort` has failed. A sweep over the graph
  // finds one in each strongly connected component, and cycles share only auxiliary nodes. There are
  // few sweeps, so this may miss cycles.
  void find_cycles(std::size_t enough);
  std::optional<Impossible> closed;
  std::int32_t read_without_candidates = -1;
  bool saturated = false;  // no remaining choice can close a return path

  // The conclusions, with enough about their reasons to derive them again (Refuter). There may be
  // millions of conclusions, and few are ever needed. What a pass concludes from the clocks follows
  // from the edges known before it. Per pass, from 1: the number of edges that were known before
  // it.
  std::vector<std::uint32_t> epochs;
  // Per read with a source: the pass that found it; 0 if the read never had another candidate.
  Zeros<std::uint8_t> resolved_in;
  // Per eliminated candidate: the pass that eliminated it; 0 if it was never possible.
  Zeros<std::uint8_t> eliminated_in;
  static constexpr std::int32_t kContradictory = 0, kClosesCycle = -1, kReason = -2;
  // Per eliminated candidate: 1 + the writer that follows it and that the reader cannot have missed; or
  // kContradictory if its transaction contradicts itself (Problem::impossible); or kClosesCycle if
  // its wr edge closes a cycle; or kReason - an index into `reasons`.
  Zeros<std::int32_t> eliminated_by;
  // For direct checks, the reasons themselves, because such checks may find more within a pass.
  struct Order {
    std::int32_t before, after;
    std::uint32_t number;  // number of edges known at that time
    Impossible reverse;
  };
  // There may be many, and nobody knows how many: a vector would take twice their memory, or more while it grows.
  std::deque<Order> orders;
  std::vector<Impossible> reasons;
  std::deque<Edge> backs;

  // For each pair of writers of a key, whether its order is settled, as flat lists of pairs. The
  // writes of T0 come first and are left out. Call pairs() after run() has returned true.
  struct Pairs {
    std::vector<std::int32_t> settled;  // before, after
    std::vector<std::int32_t> open;     // either may come first
  };
  Pairs pairs();
  // Returns true if the order of each pair of the key's writers is known, and all edges of these
  // orders and of settled reads are known or implied.
  bool settled(std::int32_t key) const;
  bool at_fixpoint() const {
    return gained_ == 0;
  }  // otherwise settled reads may lack edges to settled writers

  // A known return path from a writer of the key to a read, for a check that is decided directly. It implies that no
  // source of the read precedes the writer. The source end of `closing` is filled in later.
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
  // Returns the keys of `writers_of`, in the same order. Only for checks that forbid return paths.
  std::span<const std::int32_t> keys_written_by(std::int32_t txn) const {
    const auto first = idx(writers_by_txn_.start[idx(txn)]), last = idx(writers_by_txn_.start[idx(txn) + 1]);
    return std::span(keys_by_txn_).subspan(first, last - first);
  }
  std::int32_t write_of(std::int32_t txn, std::int32_t key) const;  // a writer, or -1; as keys_written_by
  std::size_t candidates_left(std::int32_t read) const;  // number of candidates not eliminated
  std::size_t open_candidates() const;  // of reads without a certain source, unless deferred
  Adjacency readers() const;            // writer -> reads that certainly take it as their source
  // Frees what the next pass computes anew, before a search begins. Call pairs() no more.
  void make_room_for_search() { readers_ = {}; }
  const Adjacency& successors() const { return successors_; }  // by known edges
  std::size_t threads() const { return threads_; }             // maximum number of threads
  bool included_reader(std::int32_t read) const {
    return inclusion[graph.problem.read_txn[read]] == static_cast<std::uint8_t>(Inclusion::in);
  }

 private:
  friend class KeyPruner;

  // Applies the direct checks, then sorts the known edges. Returns false on a contradiction.
  bool settle();
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
  void fetch_sources(std::int32_t txn) const;
  bool order_behind_source(std::int32_t writer, Edge closing, const Edge& back);
  Impossible because(const Edge& closing, const std::optional<Edge>& back = std::nullopt);
  std::uint32_t epoch() const { return epochs.empty() ? 0 : epochs.back(); }
  void find_own_writers();
  bool deferred(std::size_t read) const {
    return deferring_ && graph.problem.read_predicate[read] != 0;
  }
  void find_open_reads();
  void find_session_writers();
  void allocate_rows();
  bool initial(std::int32_t writer) const {
    return graph.problem.writer_txn[writer] == graph.problem.n;
  }

  Budget& budget_;
  const std::size_t max_clock_bytes_, threads_;
  Adjacency successors_;  // along known edges, as of the last settle
  Adjacency readers_;     // writer -> reads that certainly take it as their source
  WriterPairs pairs_;
  const bool orders_compose_;

  // For each transaction, the index of its first read, and at the end the number of reads. Reads
  // are in the order of their transactions.
  std::vector<std::int32_t> first_read_;
  Adjacency open_reads_;  // key -> its reads with several candidates, unless deferred
  std::vector<std::uint8_t> changed_;  // per transaction, see note_changes
  std::vector<std::uint8_t>
      restless_;  // per key: 1 if one of its writers has a new reader since the last pass
  bool every_read_ = false;  // the next pass must examine all reads
  bool one_by_one_ =
      false;  // what a pass concludes about a key may depend on its conclusions about other keys
  // Both are empty if no return path leads along so.
  std::vector<std::int32_t>
      session_writer_;  // per read: the last writer of its key before it in its session, or -1
  // For each writer: the previous writer of its key in its session, or -1.
  std::vector<std::int32_t> session_before_;
  Adjacency writers_by_txn_;
  std::vector<std::int32_t> keys_by_txn_;  // for each item of writers_by_txn_, its key; or empty, if no check needs it
  bool direct_ = false;                               // some check is direct
  PairSet ordered_behind_;                            // pairs handled by prune_direct
  std::vector<std::uint8_t>
      resolved_txn_;  // 1 if the source of one of its reads has been found since the last prune_direct
  // The last read of each key by the current transaction, together with the transaction; and for
  // each read, the previous read of its key.
  std::vector<std::pair<std::int32_t, std::int32_t>> last_read_;
  std::vector<std::int32_t> read_before_;
  std::vector<std::int32_t> key_of_;  // per writer
  std::int64_t gained_ = 0;
  std::int64_t open_;       // gain of the previous pass, at least 1,000; initially, the number of candidates
  int sweeps_ = 0;          // sweeps for cycles
  std::size_t sorted_ = 0;  // number of edges that `order` respects
  bool begun_ = false, done_ = false, deferring_ = false;
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
        if (graph.sessions_order_versions) break;  // this writer follows the ones before it
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
