// Clauses over literals, and edges that are present if their literal is true. The present edges
// must be acyclic. The encodings for outside solvers have the same input. The solver is a CDCL
// solver whose theory is the acyclicity of one graph (as in MonoSAT and clingo). This is pure
// logic: variables and nodes are numbers.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/budget.hpp"
#include "core/index.hpp"
#include "core/required.hpp"
#include "engine/cdcl/cdcl.hpp"
#include "engine/graph/dynamic_order.hpp"

namespace isolang {

class AcyclicSolver final : private Theory {
 public:
  // Several graphs can use disjoint ranges of nodes.
  AcyclicSolver(std::int32_t nodes, std::uint64_t seed)
      : sat_(*this, budget_, seed), nodes_(nodes) {}
  AcyclicSolver(const AcyclicSolver&) = delete;
  AcyclicSolver& operator=(const AcyclicSolver&) = delete;

  struct GuardedEdge {
    std::int32_t from, to;
    std::optional<Lit> literal;  // an edge without a literal is always present
  };

  std::int32_t new_variable(bool phase, std::int32_t group = 0);  // lower groups are decided first
  // Call these before the first call to solve, or between two calls.
  void add_clause(std::vector<Lit> literals);
  void add_edge(const GuardedEdge& edge);
  Cdcl::Result solve(const Budget& budget, std::int64_t max_conflicts,
                     const std::vector<Lit>& assumptions);

  // Returns the value of a variable in the last `satisfiable` answer. It is false for variables
  // that were created later.
  bool model(std::int32_t variable) const {
    return idx(variable) < model_.size() && model_[variable] != 0;
  }
  // Returns the assumptions that contradict each other in the last `unsatisfiable` answer. The list
  // is empty if the clauses alone contradict each other.
  const std::vector<Lit>& core() const { return sat_.failed_assumptions; }
  const Cdcl& sat() const { return sat_; }
  std::int32_t nodes() const { return nodes_; }
  std::size_t edges() const { return edges_.size(); }

 private:
  bool assign(Lit literal, std::vector<Lit>& conflict) override;
  std::size_t mark() const override { return required(order_, "the order of the edges").edges(); }
  void undo(std::size_t mark) override;
  void unassign(Lit literal) override;
  void forget_open(std::size_t mark) override;
  void lemma(ClauseId) override {}
  Lit choice(std::int32_t variable) override {
    return phase_[variable] != 0 ? Lit::positive(variable) : Lit::negative(variable);
  }
  Answer complete() override { return Answer::consistent; }

  bool rebuild();

  Budget budget_;
  Cdcl sat_;
  std::int32_t nodes_;
  std::vector<GuardedEdge> edges_;
  std::vector<std::vector<std::int32_t>> edges_of_;  // per literal code
  std::vector<std::uint8_t> phase_, processed_, model_;
  std::optional<DynamicOrder> order_;
  std::vector<std::int32_t> number_;  // edge of order_ -> edge of edges_
  bool dirty_ = true;                 // edges were added since order_ was built
};

}  // namespace isolang
