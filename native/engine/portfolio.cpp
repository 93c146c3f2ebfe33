#include "engine/portfolio.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "engine/anneal.hpp"
#include "engine/frontier.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kAlone = 1000;         // conflicts before anything else is tried
constexpr std::int32_t kLarge = 5000;         // transactions, from which on there are many small knots, and moves and
constexpr std::int64_t kAloneEach = 10;       // frontiers of the whole have little hope: so many conflicts for each
constexpr std::int64_t kConflicts = 250;      // a first turn of each; all grow by half a turn
constexpr std::int64_t kMoves = 800'000;
constexpr std::int64_t kStates = 20'000;
constexpr double kDemanding = 1.0;            // from this load on frontiers are worth more states:
constexpr std::int64_t kManyStates = 80'000;  // what is over-constrained has narrow layers
constexpr std::int32_t kCoolings = 3;         // annealing that is forced gives up after so many
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

Outcome race(Search& search, const Pruner& pruner, Strategy strategy, std::uint64_t seed, Budget& budget,
             const std::function<void(const char*, double)>& note) {
  Outcome outcome;
  const auto cdcl = [&](std::int64_t conflicts) {
    const std::int64_t done = search.sat().conflicts;
    budget.phase = "searching";
    const Cdcl::Result result = search.run(conflicts == kNoLimit ? kNoLimit : done + conflicts);
    outcome.by = Outcome::By::cdcl;
    if (result == Cdcl::Result::satisfiable) outcome.model = search.model();
    outcome.refuted = result == Cdcl::Result::unsatisfiable;
    return result != Cdcl::Result::gave_up;
  };
  const std::int64_t n = pruner.graph.problem.n, alone = n < kLarge ? kAlone : kAloneEach * n;
  if (strategy == Strategy::cdcl || (strategy == Strategy::automatic && cdcl(alone))) {
    if (strategy == Strategy::cdcl) cdcl(kNoLimit);
    return outcome;
  }
  const auto line = Timeline::of(pruner);
  const double load = Timeline::load(pruner.graph.problem);
  note("load", load);
  if (!line) {
    cdcl(kNoLimit);
    return outcome;
  }
  Annealing annealing(*line, budget, seed);
  const auto anneal = [&](std::int64_t moves) {
    budget.phase = "annealing";
    if (!annealing.run(moves)) return false;
    outcome.by = Outcome::By::anneal;
    outcome.model = annealing.model();
    return outcome.model.has_value();
  };
  std::optional<Frontiers> frontiers;
  try {
    frontiers.emplace(*line, budget);
    if (!frontiers->applies()) frontiers.reset();
  } catch (const std::bad_alloc&) {  // the others need less
  }
  const auto frontier = [&](std::int64_t states) {
    if (!frontiers) return false;
    budget.phase = "searching over frontiers";
    Frontiers::Answer answer = Frontiers::Answer::gave_up;
    try {
      answer = frontiers->run(states);
    } catch (const std::bad_alloc&) {
    }
    outcome.by = Outcome::By::frontier;
    if (answer == Frontiers::Answer::found) outcome.model = frontiers->model();
    outcome.refuted = answer == Frontiers::Answer::refuted;
    outcome.states = frontiers->expanded;
    note("frontier_states", static_cast<double>(frontiers->expanded));
    note("frontier_width", static_cast<double>(frontiers->width));
    note("frontier_deepest", frontiers->deepest);
    if (answer == Frontiers::Answer::gave_up || answer == Frontiers::Answer::found) frontiers.reset();
    return outcome.model || outcome.refuted;
  };
  const auto counted = [&] {
    note("annealing_moves", static_cast<double>(annealing.moves));
    note("annealing_coolings", annealing.coolings);
    note("annealing_best", static_cast<double>(annealing.best));
  };
  if (strategy == Strategy::anneal) {
    while (annealing.coolings < kCoolings)
      if (anneal(kMoves) || annealing.cost == 0) break;
    counted();
    if (!outcome.model) cdcl(kNoLimit);
    return outcome;
  }
  if (strategy == Strategy::frontier) {
    while (frontiers && !frontier(kStates)) {
    }
    if (!outcome.model && !outcome.refuted) cdcl(kNoLimit);
    return outcome;
  }
  for (double share = 1;; share *= 1.5) {
    const auto turn = [&](std::int64_t work) { return static_cast<std::int64_t>(static_cast<double>(work) * share); };
    if (anneal(turn(kMoves)) || frontier(turn(load > kDemanding ? kManyStates : kStates)) || cdcl(turn(kConflicts))) break;
  }
  counted();
  return outcome;
}

}  // namespace isolang
