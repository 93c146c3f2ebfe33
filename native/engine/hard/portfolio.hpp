// Decides the histories that pruning and a short search leave open. This is the only file of this
// folder that is included from outside.
//
// CDCL runs first and alone, because it decides most histories. If it does not decide a history
// soon, the history may be in the hard region (few values, few keys, much concurrency), where the
// other searches of this folder (hard_search.hpp) are better. All searches then take turns, and the
// first answer is taken. Turns are measured in work, never in time, because equal seeds must give
// equal runs. With several threads, a turn of CDCL and the next turns of the other searches run in
// parallel, because none depends on another. The answer is still the one that would have come first
// in turn.
//
// A search that has found a total order close to a model offers it to CDCL as a starting point.
// Only the choices that contradict this order become variables, and later those that prevent a
// repair. The search for a contradiction of a few transactions thus does not visit all
// transactions. In a large history, the offered order is repaired first (search/repair.hpp).
//
// Clauses are kept for the proof, and searches that can refute keep their states, so both take more
// and more memory. CDCL has half of the memory that the searches may take, and the other searches
// share the rest. When the searches that can refute have given up, the other searches continue for
// a while. Then OutOfMemory is thrown.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/search/search.hpp"

namespace isolang {

using Note = std::function<void(const char* name, double value)>;

// Returns the names of the strategies: "auto", in which all searches take turns; "cdcl"; and the
// name of each other search, which then runs first and to completion.
std::vector<std::string> strategies();

// Returns the share of CDCL. The other searches together have the same share.
inline std::size_t share_of(std::size_t max_bytes) { return max_bytes / 2; }

inline constexpr int kAllTurns = -1;

struct Outcome {
  // 0 for CDCL, whose search has the proof; otherwise the index in strategies(), counted from
  // "cdcl".
  std::int32_t by = 0;
  std::optional<Model> model{};
  bool refuted = false;
  std::int64_t states = 0;  // number of states of the exhaustive search, if that search has refuted the checks
  bool gave_up = false;     // after the last turn
};

// Returns how hard a history is to decide: how much its reads constrain the order, relative to its
// freedom. This is Σ over reads -ln(share of the writers of the key that the read could have as its
// source) ÷ ln(number of interleavings of the sessions). Beyond about 0.5, a history is hard to
// decide.
double load(const Problem& problem);

// Runs the searches in turns until one of them has an answer, or gives up after `turns` turns of
// the other searches. If CDCL has refuted the checks, `search` then holds its search, which must
// not run again. `note` receives statistics by name. Throws OutOfTime or OutOfMemory. The search
// has its own share of `max_bytes`.
Outcome decide(std::optional<Search>& search, const Pruner& pruner, const std::string& strategy,
               std::uint64_t seed, std::size_t max_bytes, Budget& budget, const Note& note,
               int turns = kAllTurns);

}  // namespace isolang
