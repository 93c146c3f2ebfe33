// The search for the choices that pruning leaves open: the theory of event graphs under a CDCL
// solver.
//
// Nothing becomes a variable before it is needed. A topological order of the known edges gives each
// key a version order and each read a likely source; only where an edge derived from those goes
// down the order is the choice behind it activated (an order of two writers: one variable; a read:
// one variable per candidate). The search assigns the activated ones, the order is kept topological
// under them, and the comparison is repeated until nothing goes down.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/cdcl/cdcl.hpp"
#include "engine/graph/dynamic_order.hpp"
#include "engine/prune/pruner.hpp"
#include "engine/search/return_paths.hpp"

namespace isolang {

struct Model {
  std::vector<std::int32_t> source;  // per read: a writer index, or -1 (its transaction is out)
  std::vector<std::int64_t> order_start;  // per key, into order_txn
  std::vector<std::int32_t> order_txn;    // writers in version order, T0 left out
};

// Leaves in only what an included transaction reads from; the reads of the others lose their
// source.
void keep_included(Model& model, const Problem& problem);

class Search final : public Theory {
 public:
  struct Start {
    std::vector<std::int32_t>
        rank;  // a topological order of the known edges; empty: that of pruning
    std::span<const std::uint8_t>
        held;  // per transaction: keeps its place in that order among all that are held
  };
  // Of memory, the search may take about this many bytes for its clauses; then it gives up for good
  // (`full`). With transactions held, `unsatisfiable` means only that these cannot stay.
  Search(const Pruner& pruner, Budget& budget, std::uint64_t seed, std::size_t max_bytes,
         Start start = {});
  struct Effort {
    std::int64_t conflicts, decisions;
    std::size_t variables = std::numeric_limits<std::size_t>::max();  // in all
    std::size_t first_variables =
        std::numeric_limits<std::size_t>::max();  // by the first final check
    std::int64_t visits =
        std::numeric_limits<std::int64_t>::max();  // of nodes that may have to move
  };
  // So much more. After `gave_up` it can be called again.
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

  // The transactions that the last final check found something wrong with.
  std::vector<std::int32_t> wanted_transactions() const;
  // After `unsatisfiable`: held ones that are in the way, by the refutation or by every conflict on
  // the way to it.
  std::vector<std::int32_t> held_in_the_way(bool by_every_conflict) const;

  // What a clause of the solver stands for, if it is not a learned one.
  struct Origin {
    enum class Kind { choice, inclusion, cycle } kind;
    std::int32_t read = -1;                      // choice: one of the sources of this read
    std::size_t cycle_start = 0, cycle_end = 0;  // cycle: its edges in cycle_edges()
  };
  const Origin& origin(ClauseId id) const { return origins_.at(id); }
  // An edge of a cycle: known to pruning; or the search has added it (the literals behind it are
  // variables, as far as there are any); or it only holds transactions in their places.
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
  Arrow permanent(std::size_t number) const {
    const std::size_t known = graph_.edges.size();
    return number < known ? Arrow{graph_.edges[number].from, graph_.edges[number].to}
                          : holds_[number - known];
  }
  std::int32_t variable(Meaning meaning, std::int32_t at);  // at: about when, in ranks
  std::int32_t find_order(std::int32_t a, std::int32_t b) const;
  void activate_order(std::int32_t a, std::int32_t b, std::int32_t read);
  std::int32_t place_of(std::int32_t read) const;
  void activate_read(std::int32_t read);
  std::int32_t in_variable(std::int32_t txn);  // -1 if it certainly is in
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
  std::int32_t nearest_source(std::int32_t read) const;  // its variable
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
  bool forbid_return_paths();  // true: the choice closed some, and clauses now say so

  const Pruner& pruner_;
  const EventGraph& graph_;
  const Problem& p_;
  Budget& budget_;
  Cdcl sat_;
  bool may_start_anew_;       // the order to start from was not given
  std::vector<Arrow> holds_;  // permanent edges beyond the known ones
  DynamicOrder order_;
  struct Added {
    Edge edge;
    std::int32_t variable,
        another;  // that it leans on, perhaps the same (`collect` would have to look them up)
  };
  std::vector<Added> added_;  // the edges of order_ beyond the permanent ones
  std::size_t permanent_;
  Effort limit_{};

  std::vector<Meaning> meaning_;
  std::vector<std::uint8_t> processed_;  // per variable: its edges are in
  std::unordered_map<std::uint64_t, std::int32_t> order_variable_;
  std::vector<std::int32_t> source_variable_;  // per candidate, or -1
  std::vector<std::int32_t> in_variable_;      // per transaction, or -1
  std::vector<std::uint8_t> active_read_;
  std::vector<std::int32_t> sources_taken_;  // per read: its source variables that are true
  // Of the few writers that variables name, those variables.
  class Named {
   public:
    explicit Named(std::size_t writers) : list_(writers, -1) {}
    void add(std::int32_t writer, std::int32_t variable);
    std::span<const std::int32_t> of(std::int32_t writer) const;

   private:
    std::vector<std::int32_t> list_;  // per writer, into lists_; -1: none
    std::vector<std::vector<std::int32_t>> lists_;
  };
  Named orders_at_, sources_at_;
  Adjacency readers_;               // per writer: reads that certainly take it
  std::vector<CycleEdge> pending_;  // the cycle just found
  std::unordered_map<ClauseId, Origin> origins_;
  std::vector<CycleEdge> cycle_edges_;

  std::vector<std::uint8_t> stale_txn_, stale_key_;  // something moved since the last final check
  std::vector<std::uint8_t> settled_key_;            // no pair of its writers is open
  std::vector<std::int32_t> checked_reads_;          // all others have only edges that are known
  std::vector<std::uint8_t> read_key_;               // by one of those
  // Of the last final check.
  std::vector<std::int32_t> writers_, place_;  // writers by key and rank; each one's place
  std::vector<std::int32_t> lowest_;  // per rw step and place: the lowest target from there on
  struct WantedOrder {
    std::int32_t a, b, read;  // the read that misses its source a because of b, or -1
  };
  struct WantedChoices {
    std::vector<WantedOrder> orders;
    std::vector<std::int32_t> reads;
    bool too_many = false;
  };
  bool too_many_ = false;  // not all wanted choices are listed
  std::vector<WantedOrder> want_order_;
  std::vector<std::int32_t> want_read_;
  std::size_t wanted_before_ = 0;     // how many of both, by the last but one
  std::vector<std::int32_t> source_;  // per read: its source, -1 if its transaction is out
  ReturnPaths return_paths_;
  // Per transaction: the source of one of its reads, or the place of a writer of such a key, may
  // have changed since its return paths were looked at. Where pruning knows all the sources, it has
  // ordered the writers.
  std::vector<std::uint8_t> new_paths_,
      open_txn_;  // open_txn_: the sources of some of its reads are not known
};

}  // namespace isolang
