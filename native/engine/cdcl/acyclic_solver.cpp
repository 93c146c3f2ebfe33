// The theory of the solver: when the literal of an edge becomes true, the edge is inserted into a
// dynamic topological order, and when the literal becomes open again, the edge is removed. A cycle
// yields a conflict clause of its edges' literals. `rebuild` makes permanent the edges whose
// literals are fixed at level 0.
#include "engine/cdcl/acyclic_solver.hpp"

#include <algorithm>
#include <numeric>

#include "core/index.hpp"
#include "core/required.hpp"
#include "engine/graph/topological_order.hpp"

namespace isolang {

std::int32_t AcyclicSolver::new_variable(bool phase, std::int32_t group) {
  phase_.push_back(phase ? 1 : 0);
  processed_.push_back(0);
  edges_of_.emplace_back();
  edges_of_.emplace_back();
  return sat_.new_variable(group);
}

void AcyclicSolver::add_clause(std::vector<Lit> literals) {
  std::ranges::sort(literals, {}, &Lit::code);
  literals.erase(std::ranges::unique(literals).begin(), literals.end());
  for (std::size_t i = 1; i < literals.size(); ++i)
    if (literals[i - 1] == ~literals[i]) return;  // a tautology
  sat_.restart();
  sat_.add_clause(std::move(literals));
}

void AcyclicSolver::add_edge(const GuardedEdge& edge) {
  dirty_ = true;
  if (edge.literal)
    edges_of_[edge.literal->code].push_back(static_cast<std::int32_t>(edges_.size()));
  edges_.push_back(edge);
}

// Makes permanent the edges whose literals are fixed. Returns false if these edges have a cycle.
// Call this at level 0.
bool AcyclicSolver::rebuild() {
  number_.clear();
  std::vector<std::int32_t> from, to;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const auto& [u, v, literal] = edges_[e];
    if (literal && (sat_.value(*literal) <= 0 || !processed_[literal->variable()])) continue;
    if (u == v) return false;
    from.push_back(u);
    to.push_back(v);
    number_.push_back(static_cast<std::int32_t>(e));
  }
  const Adjacency out = group_by(
      nodes_, from.size(), [&](std::size_t i) { return from[i]; },
      [&](std::size_t i) { return to[i]; });
  std::vector<std::int32_t> priority(idx(nodes_)), rank(idx(nodes_));
  std::iota(priority.begin(), priority.end(), 0);
  const auto order = topological_order(out, priority, budget_);
  if (order.size() < idx(nodes_)) return false;
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int32_t>(i);
  order_.emplace(
      from.size(), [&](std::size_t i) { return from[i]; }, [&](std::size_t i) { return to[i]; },
      std::move(rank));
  dirty_ = false;
  return true;
}

Cdcl::Result AcyclicSolver::solve(const Budget& budget, std::int64_t max_conflicts,
                                  const std::vector<Lit>& assumptions) {
  budget_ = budget;
  if (order_) sat_.restart();
  if (dirty_ && !rebuild()) sat_.add_clause({});
  const Cdcl::Result result = sat_.solve(sat_.conflicts + max_conflicts, assumptions);
  if (result == Cdcl::Result::satisfiable) {
    model_.resize(phase_.size());
    for (std::int32_t v = 0; v < sat_.variables(); ++v)
      model_[v] = sat_.value(Lit::positive(v)) > 0 ? 1 : 0;
  }
  return result;
}

bool AcyclicSolver::assign(Lit literal, std::vector<Lit>& conflict) {
  processed_[literal.variable()] = 1;
  DynamicOrder& order = required(order_, "the order of the edges");
  for (const std::int32_t e : edges_of_[literal.code]) {
    if (order.add(edges_[e].from, edges_[e].to)) {
      number_.push_back(e);
      continue;
    }
    conflict.assign(1, ~literal);
    for (const std::int32_t on_path : order.path)
      if (const auto& l = edges_[number_[on_path]].literal) conflict.push_back(~*l);
    std::ranges::sort(conflict, {}, &Lit::code);
    conflict.erase(std::ranges::unique(conflict).begin(), conflict.end());
    return false;
  }
  return true;
}

void AcyclicSolver::undo(std::size_t mark) {
  required(order_, "the order of the edges").shrink(mark);
  number_.resize(mark);
}

void AcyclicSolver::forget_open(std::size_t mark) {
  for (std::size_t number = mark; number < number_.size(); ++number)
    // mutant: open-edges-stay
    if (const auto& l = edges_[number_[number]].literal; l && sat_.value(*l) == 0)
      required(order_, "the order of the edges").remove(static_cast<std::int32_t>(number));
}

void AcyclicSolver::unassign(Lit literal) {
  processed_[literal.variable()] = 0;
  phase_[literal.variable()] = literal.negated() ? 0 : 1;
}

}  // namespace isolang
