// The engine: problem and automata in, model or refutation out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/budget.hpp"
#include "engine/graph/event_graph.hpp"
#include "engine/hard/portfolio.hpp"
#include "engine/proof/refutation.hpp"

namespace isolang {

struct Solution {
  std::optional<Model> model;
  std::vector<ProofStep> refutation;  // if no model exists
  std::vector<std::pair<std::string, double>> statistics;
};

struct SolveOptions {
  std::uint64_t seed = 0;
  std::size_t max_clock_bytes = std::size_t{1} << 29;
  std::size_t max_search_bytes = std::size_t{1} << 30;  // about
  std::size_t threads = 1;                              // the answer does not depend on them
  // Look for a model of stronger checks first, where most histories have one that is found sooner.
  bool presolve = true;
  std::string strategy = "auto";  // one of strategies()
};

// Throws OutOfTime, OutOfMemory (of the searches), std::bad_alloc. The problem's anomalies are the
// caller's business.
Solution solve(const Problem& problem, const std::vector<Automaton>& automata,
               const SolveOptions& options, Budget& budget);

// The model's sources per operation: the transaction that each external read takes its value from
// (T0 is n), else -1.
std::vector<std::int32_t> sources_by_operation(const History& history, const Problem& problem,
                                               const Model& model);

}  // namespace isolang
