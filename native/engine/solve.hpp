// The engine decides a problem: for the automata of a specification's checks, it returns a model that satisfies all of
// them, or a refutation.
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
  std::vector<ProofStep> refutation;  // filled if no model exists
  std::vector<std::pair<std::string, double>> statistics;
};

struct SolveOptions {
  std::uint64_t seed = 0;
  std::size_t max_clock_bytes = std::size_t{1} << 29;
  std::size_t max_search_bytes = std::size_t{1} << 30;  // approximate
  std::size_t threads = 1;  // the answer does not depend on the number of threads
  // Whether to look first for a model of stronger checks. Most histories have one, and it takes less time to find.
  bool presolve = true;
  std::string strategy = "auto";  // one of strategies()
  // The transactions in a likely order, from which searches start; empty if none is known. The
  // answer may depend on it, but whether a model exists does not.
  std::vector<std::int32_t> likely_order{};
};

// Returns a model or a refutation. Throws OutOfTime, OutOfMemory (if the searches need too much
// memory) or std::bad_alloc. The caller must have handled the problem's anomalies.
Solution solve(const Problem& problem, const std::vector<Automaton>& automata,
               const SolveOptions& options, Budget& budget);

// Returns the model's source of each operation: for an external read, the transaction that it reads
// from (T0 is n); for any other operation, -1.
std::vector<std::int32_t> sources_by_operation(const History& history, const Problem& problem,
                                               const Model& model);

}  // namespace isolang
