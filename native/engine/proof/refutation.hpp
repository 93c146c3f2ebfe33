// Refutations: the reasons why no model satisfies the axioms, as steps that an independent checker
// can follow (docs/architecture.md).
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/search/search.hpp"

namespace isolang {

struct ProofEdge {
  Relation relation;
  std::int32_t from, to, key;
  std::int64_t op;
  std::int32_t writer;
};

struct ProofLiteral {
  enum class Kind : std::uint8_t { before, source, in } kind;
  bool positive;
  std::int32_t key, a, b;  // before: key, a, b; source: b is the source; in: a
  std::int64_t op;         // source
};

struct ProofStep {
  enum class Kind : std::uint8_t { anomaly, choice, cycle, order, rup, exhaustion } kind;
  std::int64_t op = -1;                  // choice
  Anomaly anomaly{};  // anomaly: of an indeterminate transaction, which therefore cannot be in
  std::int32_t check = -1, key = -1;     // cycle; order
  std::vector<ProofEdge> edges{};        // cycle: a closed walk from state 0 to state 0
  std::vector<std::int32_t> txns{};      // order
  std::vector<ProofLiteral> literals{};  // rup
  std::int64_t states = 0;  // exhaustion: the number of states that an exhaustive search visited
};

// Collects exactly the steps that the contradiction needs, premises first.
//
// Pruning recorded which pass drew a conclusion, but not why. What a pass concludes from the clocks
// follows from the edges known before it and from sources found by earlier passes, and is derived
// again here. A derivation therefore needs only conclusions of earlier passes, or an order that the
// same pass can derive from those.
class Refuter {
 public:
  explicit Refuter(const Pruner& pruner, Budget& budget);
  // The pruner found a contradiction; if it is a cycle, this is the number of the cycle.
  std::vector<ProofStep> from_pruning(std::size_t number = 0);
  std::vector<ProofStep> from_search(const Search&);  // the search found a contradiction

 private:
  void known(const Edge& edge);  // proves the literals of an edge known to pruning
  void before(std::int32_t a, std::int32_t b);
  void derive_before(std::int32_t a, std::int32_t b, std::int32_t pass);
  void source(std::int32_t read, std::int32_t writer);
  void eliminated(std::int32_t read, std::int32_t writer);
  void choice(std::int32_t read);
  void inclusion(std::int32_t txn);
  void contradictory(std::int32_t txn);
  void impossible(const Impossible& why, bool closing_order_known);
  void closes(const Edge& closing, std::vector<Edge> path, bool refutes_source);
  bool refuted(const std::vector<Edge>& closings, std::int32_t pass, bool refutes_source);
  void cycle(const std::vector<Edge>& edges);
  std::vector<ProofEdge> between_operations(const std::vector<Edge>& edges,
                                            std::size_t first) const;
  bool in_one_statement(std::int64_t op, std::int64_t other) const;
  std::optional<std::vector<Edge>> path(Node from, Node to, std::size_t epoch);
  // Returns the path of edges known at that time that `closing` closes.
  std::vector<Edge> known_path(const Edge& closing, std::size_t epoch);
  std::size_t first_edge(std::int32_t a, std::int32_t b) const;
  // Returns the pass that added the edge; 0 if the edge was known before the first pass.
  std::int32_t pass_of(std::size_t edge) const;
  std::size_t epoch_of(std::int32_t pass) const;
  ProofLiteral literal(const Search& search, Lit l) const;

  const Pruner& pruner_;
  const EventGraph& graph_;
  const Problem& p_;
  Budget& budget_;
  Adjacency outgoing_, incoming_;  // node -> edge numbers
  Adjacency readers_;              // writer -> reads that certainly take it as their source
  std::unordered_map<std::uint64_t, std::size_t> order_of_;  // into Pruner::orders
  // Pairs of writers whose order is shown by list reads or by stated versions.
  std::unordered_set<std::uint64_t> shown_;
  std::unordered_set<std::uint64_t> done_order_, done_eliminated_;
  std::unordered_set<std::int32_t> done_choice_, done_inclusion_, done_impossible_;
  std::vector<std::int32_t> included_by_;  // per indeterminate transaction, a read that includes it
  std::vector<std::int32_t> via_;
  std::vector<ProofStep> steps_;
};

}  // namespace isolang
