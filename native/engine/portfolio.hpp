// Several searches for one problem, in turns: the first answer counts.
//
// CDCL goes first and alone, for most histories never meet anything else. What it does not decide soon may lie in the
// hard region (few values, few keys, much concurrency), where other searches are better: annealing finds models, frontiers
// decide what is over-constrained. Turns are counted in work, never in time, so that equal seeds give equal runs.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "engine/search.hpp"

namespace isolang {

enum class Strategy : std::uint8_t { automatic, cdcl, anneal, frontier };

struct Outcome {
  enum class By : std::uint8_t { cdcl, anneal, frontier } by = By::cdcl;
  std::optional<Model> model;
  bool refuted = false;
  std::int64_t states = 0;  // of the search over frontiers, if it is what refuted
};

// `note` gets what was counted, by name.
Outcome race(Search& search, const Pruner& pruner, Strategy strategy, std::uint64_t seed, Budget& budget,
             const std::function<void(const char*, double)>& note);

}  // namespace isolang
