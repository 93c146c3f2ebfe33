// Decides what pruning and a short search leave open. This is the only file of the folder that
// others include.
//
// CDCL goes first and alone, for most histories never meet anything else. What it does not decide
// soon may lie in the hard region (few values, few keys, much concurrency), where the other
// searches of this folder (hard_search.hpp) are better. All of them then take turns, and the first
// answer counts. Turns are counted in work, never in time, so that equal seeds give equal runs.
// Where there are threads, a turn of CDCL and the next turns of the others are taken at once, as
// none depends on another: what counts is still the answer that would have come first in turn.
//
// A search that has brought a total order near to a model offers it to CDCL to start from: only
// what is wrong with it becomes a variable, and then what prevents its repair, so
// that the search for a contradiction of a few transactions does not visit all. In a large history, what
// is offered is repaired first (repair.hpp).
//
// Clauses are kept for the proof, and searches that can refute keep their states, so both grow.
// CDCL has half of the memory that the searches may take, the others share the rest. When those
// that can refute have given up, the others go on for a while, and then OutOfMemory is thrown.
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

// What decides: "auto", all in turns; "cdcl"; or the name of another search, first and to its end.
std::vector<std::string> strategies();

// The share of CDCL, and that of the searches besides it.
inline std::size_t share_of(std::size_t max_bytes) { return max_bytes / 2; }

inline constexpr int kAllTurns = -1;

struct Outcome {
  std::int32_t by = 0;  // 0: CDCL, whose search has the proof; else as in strategies(), from "cdcl"
  std::optional<Model> model{};
  bool refuted = false;
  std::int64_t states = 0;  // of an exhaustive search, if it is what refuted
  bool gave_up = false;     // after the last turn
};

// How hard a history is: what its reads demand against what its concurrency leaves open,
// Σ over reads -ln(share of the writers of the key that the read could take) ÷ ln(number of
// interleavings of the sessions). Beyond about 0.5 it is hard to decide.
double load(const Problem& problem);

// `search`: where the refuting search is to be found afterwards, if it was CDCL; it is not to be
// run again. `note` gets what was counted, by name. Throws OutOfTime, OutOfMemory; the search has
// its own share of `max_bytes`. After this many turns of the other searches it gives up.
Outcome decide(std::optional<Search>& search, const Pruner& pruner, const std::string& strategy,
               std::uint64_t seed, std::size_t max_bytes, Budget& budget, const Note& note,
               int turns = kAllTurns);

}  // namespace isolang
