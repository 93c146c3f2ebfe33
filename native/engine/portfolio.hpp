// Several searches for one problem, in turns: the first answer counts.
//
// CDCL goes first and alone, for most histories never meet anything else. What it does not decide soon may lie in the
// hard region (few values, few keys, much concurrency), where other searches are better: annealing finds models,
// frontiers decide what is over-constrained. Turns are counted in work, never in time, so that equal seeds give equal
// runs. Where there are threads, a turn of CDCL and the next turns of the others are taken at once, as neither depends
// on the other: what counts is still the answer that would have come first in turn.
//
// Where annealing froze, nearly every read is satisfied. CDCL starts again from that order: only what is wrong with it
// becomes a variable, and then what stands in the way of mending it, so that a contradiction of a few transactions is
// not looked for among all.
//
// A large history is mended more than annealed: its likely line (likely_times.hpp) is near to a model, a short cooling
// brings it nearer, and what that leaves is repaired (repair.hpp). Frontiers of the whole have no hope there.
//
// Clauses are kept for the proof and states for the comparison, so both searches that can refute grow. Each has half of
// the memory that the searches may take. When both have given up, annealing goes on for a while, and then OutOfMemory
// is thrown.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "engine/search.hpp"

namespace isolang {

enum class Strategy : std::uint8_t { automatic, cdcl, anneal, frontier };

// The share of each of the searches that grow.
inline std::size_t share_of(std::size_t max_bytes) { return max_bytes / 2; }

struct Outcome {
  enum class By : std::uint8_t { cdcl, anneal, frontier } by = By::cdcl;
  std::optional<Model> model;
  bool refuted = false;
  std::int64_t states = 0;  // of the search over frontiers, if it is what refuted
};

// `search`: where the refuting search is to be found afterwards, if it was that of CDCL; it is not to be run again.
// `note` gets what was counted, by name. Throws OutOfTime, OutOfMemory; the search has its own share of `max_bytes`.
Outcome race(std::optional<Search>& search, const Pruner& pruner, Strategy strategy, std::uint64_t seed,
             std::size_t max_bytes, Budget& budget, const std::function<void(const char*, double)>& note);

}  // namespace isolang
