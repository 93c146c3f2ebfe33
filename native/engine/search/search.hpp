// The search for the choices that pruning leaves open: a CDCL solver with the theory of event
// graphs.
//
// A choice becomes a variable only when it is needed. A topological order of the known edges gives
// each key a version order and each read a likely source. If an edge that follows from these goes
// down in the order, the choice behind the edge is activated. An order of two writers becomes one
// variable, and a read becomes one variable for each candidate. The search assigns the activated
// variables, the order is kept topological for their edges, and the comparison is repeated until no
// edge goes down.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/zeros.hpp"
#include "engine/cdcl/cdcl.hpp"
#include "engine/graph/dynamic_order.hpp"
#include "engine/prune/pruner.hpp"
#include "engine/search/return_paths.hpp"

namespace isolang {

struct Model {
  std::vector<std::int32_t> source;  // per read: a writer index, or -1 if its transaction is out
  std::vector<std::int64_t> order_start;  // per key, into order_txn
  std::vector<std::int32_t> order_txn;    // writers in version order, without T0
};

// Keeps only transactions that are included or that an included transaction reads from. Reads of
// the other transactions lose their source.
void keep_included(Model& model, const Problem& problem);

class Search final : public Theory {
 public:
  struct Start {
    std::vector<std::int32_t>
        rank;  // a topological order of the known edges; empty for that of pruning
    std::span<const std::uint8_t>
        held;  // per transaction: 1 if it keeps its position in that order among all held transactions
  };
  // Prepares a search that may take about `max_bytes` of memory for its clauses. If it needs more,
  // it gives up for good (`full`). If transactions are held, `unsatisfiable` means only that they
  // cannot all keep their positions.
  Search(const Pruner& pruner, Budget& budget, std::uint64_t seed, std::size_t max_bytes,
         Start start = {});
  struct Effort {
    std::int64_t conflicts, decisions;
    std::size_t variables = std::numeric_limits<std::size_t>::max();  // in total
    std::size_t first_variables =
        std::numeric_limits<std::size_t>::max();  // by the first final check
    std::int64_t visits =
        std::numeric_limits<std::int64_t>::max();  // node visits while looking for nodes that have to move
  };
  // Runs with this much additional effort. It can be called again after `gave_up`.
  Cdcl::Result run(Effort more) {
    const auto sum = [](std::int64_t a, std::int64_t b) {
      return b > std::numeric_limits<std::int64_t>::max() - a ? b : a + b;
    };
    limit_ = more;
    limit_.visits = sum(order_.visited, more.visits);
    return sat_.solve(sum(sat_.conflicts, more.conflicts), sum(sat_.decisions, more.decisions));
  }
  bool full() const { return sat_.full(); }
  Model model() const;

  // Returns the transactions in which the last final check found a contradiction.
  std::vector<std::int32_t> wanted_transactions() const;
  // Returns, after `unsatisfiable`, the held transactions that take part in the refutation. With
  // `by_every_conflict`, they may take part in any conflict on the way to it.
  std::vector<std::int32_t> held_in_the_way(bool by_every_conflict) const;

  // The meaning of a solver clause that was not learned.
  struct Origin {
    enum class Kind { choice, inclusion, cycle } kind;
    std::int32_t read = -1;                      // choice: the read takes one of its sources
    std::size_t cycle_start = 0, cycle_end = 0;  // cycle: its edges in cycle_edges()
  };
  const Origin& origin(ClauseId id) const { return origins_.at(id); }
  // An edge of a cycle. Either pruning knew the edge, or the search added it (its literals are
  // variables, if it has any), or it merely holds transactions in their positions.
  struct CycleEdge {
    Edge edge;
    enum class Kind : std::uint8_t { known, added, holds } kind;
  };
  const std::vector<CycleEdge>& cycle_edges() const { return cycle_edges_; }

  struct Meaning {
    enum class Kind { before, source, in } kind;
    std::int32_t a, b;  // before: writers; source: read and writer; in: transaction
  };
  const Meaning& meaning(std::int32_t variable) const { return meaning_[variable]; }
  const Cdcl& sat() const { return sat_; }
  std::int64_t visited() const { return order_.visited; }
  std::int32_t rounds = 0;

  bool assign(Lit literal, std::vector<Lit>& conflict) override;
  std::size_t mark() const override { return order_.edges(); }
  void undo(std::size_t mark) override;
  void unassign(Lit literal) override;
  void forget_open(std::size_t mark) override;
  void lemma(ClauseId id) override;
  Lit choice(std::int32_t variable) override;
  Answer complete() override;
  bool out_of_effort() const override { return order_.visited > limit_.visits; }
  std::size_t bytes() const override {
    return cycle_edges_.capacity() * sizeof(CycleEdge) +
           origins_.size() * (sizeof(Origin) + 4 * sizeof(void*));
  }

 private:
  struct Arrow {
    Node from, to;
  };
  static std::vector<Arrow> holds(const EventGraph& graph, const Start& start);
  std::int32_t source_variable(std::size_t candidate) const { return source_variable_[candidate] - 1; }  // -1: none
  Arrow permanent(std::size_t number) const {
    const std::size_t known = graph_.edges.size();
    return number < known ? Arrow{graph_.edges[number].from, graph_.edges[number].to}
                          : holds_[number - known];
  }
  std::int32_t variable(Meaning meaning, std::int32_t at);  // at: the approximate time, as a rank
  std::int32_t find_order(std::int32_t a, std::int32_t b) const;
  void activate_order(std::int32_t a, std::int32_t b, std::int32_t read);
  std::int32_t place_of(std::int32_t read) const;
  void activate_read(std::int32_t read);
  std::int32_t in_variable(std::int32_t txn);  // -1 if it is certainly in
  bool certain(std::int32_t txn) const {
    return pruner_.inclusion[txn] == static_cast<std::uint8_t>(Inclusion::in);
  }
  bool add(const Edge& edge, std::int32_t variable, std::int32_t another);
  void collect(const Edge& edge, std::vector<Lit>& conflict) const;
  std::vector<std::int32_t> shown_order() const;
  std::int32_t rank(Node v) const { return order_.rank(v); }
  std::int32_t likely_source(std::int32_t read) const;
  std::int32_t current_source(std::int32_t read) const;
  std::int32_t descent_of_order(std::int32_t a, std::int32_t b) const;
  std::int32_t descent_of_source(std::int32_t read, std::int32_t candidate) const;
  std::int32_t nearest_source(std::int32_t read) const;  // returns a variable
  void compact_order();
  void note_moved();
  struct WantedChoices;
  void final_check();
  bool too_many(WantedChoices& wants) const;
  void restart_search();
  template <typename WeightOf, typename Fetch, typename Look>
  void look_at_each(std::span<const std::int32_t> items, WeightOf weight_of, Fetch fetch,
                    Look look);
  template <typename Visit>
  void each_source(std::int32_t read, Visit visit) const;
  void fetch_key(std::span<const std::int32_t> keys) const;
  void fetch_read(std::span<const std::int32_t> reads) const;
  std::size_t wanted_variables() const;
  void sort_writers(std::int32_t key);
  void check_key(std::int32_t key, WantedChoices& wants);
  void check_read(std::int32_t read, WantedChoices& wants);
  bool goes_up(std::int32_t read, std::int32_t source) const;
  std::int32_t next_missed(std::int32_t read, std::int32_t source, std::int32_t place) const;
  bool is_in(std::int32_t txn) const;
  // Returns true if the choice closes some paths, after adding clauses that forbid them.
  bool forbid_return_paths();

  const Pruner& pruner_;
  const EventGraph& graph_;
  const Problem& p_;
  Budget& budget_;
  Cdcl sat_;
  bool may_start_anew_;       // no start order was given
  std::vector<Arrow> holds_;  // permanent edges in addition to the known ones
  DynamicOrder order_;
  struct Added {
    Edge edge;
    // Two variables that the edge depends on, which may be the same. They are stored because
    // otherwise `collect` would have to look them up.
    std::int32_t variable,
        another;
  };
  std::vector<Added> added_;  // the edges of order_ in addition to the permanent ones
  std::size_t permanent_;
  Effort limit_{};

  std::vector<Meaning> meaning_;
  std::vector<std::uint8_t> processed_;  // per variable: 1 if its edges are in the order
  std::unordered_map<std::uint64_t, std::int32_t> order_variable_;
  Zeros<std::int32_t> source_variable_;  // per candidate: 1 + its variable, or 0
  std::vector<std::int32_t> in_variable_;      // per transaction, or -1
  Zeros<std::uint8_t> active_read_;
  Zeros<std::int32_t> sources_taken_;  // per read: how many of its source variables are true
  // For each of the few writers mentioned by some variable, the variables that mention it.
  class Named {
   public:
    explicit Named(std::size_t writers) : list_(writers) {}
    void add(std::int32_t writer, std::int32_t variable);
    std::span<const std::int32_t> of(std::int32_t writer) const;

   private:
    Zeros<std::int32_t> list_;  // per writer: 1 + an index into lists_, or 0
    std::vector<std::vector<std::int32_t>> lists_;
  };
  Named orders_at_, sources_at_;
  Adjacency readers_;               // per writer: the reads that certainly take it as their source
  std::vector<CycleEdge> pending_;  // the cycle found last
  std::unordered_map<ClauseId, Origin> origins_;
  std::vector<CycleEdge> cycle_edges_;

  // For each transaction and key: 1 if one of its nodes has moved since the last final check.
  std::vector<std::uint8_t> stale_txn_, stale_key_;
  std::vector<std::uint8_t> settled_key_;            // 1 if no pair of the key's writers is open
  // The reads to check. All edges of other reads are known.
  std::vector<std::int32_t> checked_reads_;
  std::vector<std::uint8_t> read_key_;               // 1 if one of those reads reads the key
  // Results of the last final check.
  std::vector<std::int32_t> writers_, place_;  // writers by key and rank; the position of each writer
  std::vector<std::int32_t> lowest_;  // per rw step and position: the lowest target from there on
  struct WantedOrder {
    std::int32_t a, b, read;  // `read` misses its source a because of b; -1 if no read does
  };
  struct WantedChoices {
    std::vector<WantedOrder> orders;
    std::vector<std::int32_t> reads;
    bool too_many = false;
  };
  bool too_many_ = false;  // the wanted choices are not all listed
  std::vector<WantedOrder> want_order_;
  std::vector<std::int32_t> want_read_;
  std::size_t wanted_before_ = 0;     // number of wanted choices found by the last final check but one
  std::vector<std::int32_t> source_;  // per read: its source, or -1 if its transaction is out
  ReturnPaths return_paths_;
  // For each transaction, 1 if its return paths must be checked again, because the source of one of
  // its reads, or the position of a writer of a key that it reads, may have changed since the last
  // check. If pruning knows the sources of all its reads, it has also ordered the writers.
  std::vector<std::uint8_t> new_paths_,
      open_txn_;  // open_txn_: 1 if the sources of some of its reads are not known
};

}  // namespace isolang
