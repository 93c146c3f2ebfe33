#include "engine/portfolio.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "engine/anneal.hpp"
#include "engine/frontier.hpp"
#include "engine/landmarks.hpp"
#include "engine/likely_times.hpp"
#include "engine/repair.hpp"

namespace isolang {
namespace {

constexpr Search::Effort kFirst{100, 40'000};    // before anything else is tried,
constexpr Search::Effort kAlone{900, 360'000};   // and before other searches are
constexpr std::int32_t kLarge = 5000;    // transactions: from there on there are many small knots, and
constexpr std::int64_t kAloneEvery = 5;  // for every few of them CDCL has a conflict more
// A first turn of each, of about equal time; all grow by half a turn.
constexpr Search::Effort kConflicts{3000, 400'000};
constexpr Search::Effort kProof{10'000, 2'000'000};  // of what an exhausted search has refuted,
constexpr Search::Effort kCycle{500, 100'000};       // or landmarks, of which there is a proof without a cycle
constexpr std::int64_t kMoves = 3'000'000;
constexpr std::int64_t kSoon = 10'000'000;
constexpr std::int64_t kFirstCells = 1'000'000;  // before the rest: many contradictions show in few states
constexpr std::int64_t kCells = 8'000'000;       // of states
constexpr std::size_t kLandmarks = 5000;         // events: so many relaxations of so many
constexpr double kLandmarksFirst = 0.7;         // from this load on they often refute, and in no time
constexpr double kDemanding = 1.0;              // from this one on frontiers are worth more:
constexpr std::int64_t kManyCells = 30'000'000;  // what is over-constrained has narrow layers
constexpr std::int32_t kCoolings = 2;           // annealing that is alone gives up after so many
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

OutOfMemory out_of_memory(std::size_t max_bytes) {
  return OutOfMemory("the searches filled the " + std::to_string(max_bytes / 1'000'000) +
                     " MB that they may hold without an answer");
}

}  // namespace

Outcome race(std::optional<Search>& search, const Pruner& pruner, Strategy strategy, std::uint64_t seed,
             std::size_t max_bytes, Budget& budget, const std::function<void(const char*, double)>& note) {
  Outcome outcome;
  const auto begin = [&](std::vector<std::int32_t> rank) {
    search.emplace(pruner, budget, seed, share_of(max_bytes), Search::Start{std::move(rank), {}});
  };
  begin({});
  const auto cdcl = [&](Search::Effort effort) {
    if (search->full()) return false;
    budget.phase = "searching";
    const Cdcl::Result result = search->run(effort);
    outcome.by = Outcome::By::cdcl;
    if (result == Cdcl::Result::satisfiable) outcome.model = search->model();
    outcome.refuted = result == Cdcl::Result::unsatisfiable;
    return result != Cdcl::Result::gave_up;
  };
  const auto cdcl_to_the_end = [&] {
    if (!cdcl({kNoLimit, kNoLimit})) throw out_of_memory(max_bytes);
  };
  const std::int64_t n = pruner.graph.problem.n;
  const bool large = n >= kLarge;
  const Search::Effort first =
      large ? Search::Effort{kFirst.conflicts + kAlone.conflicts + n / kAloneEvery, kNoLimit} : kFirst;
  if (strategy == Strategy::cdcl) {
    cdcl_to_the_end();
    return outcome;
  }
  if (strategy == Strategy::automatic && cdcl(first)) return outcome;
  auto line = Timeline::of(pruner);
  const double load = Timeline::load(pruner.graph.problem);
  note("load", load);
  if (!line) {
    cdcl_to_the_end();
    return outcome;
  }
  const auto decided_alone = [&] { return strategy == Strategy::automatic && !large && cdcl(kAlone); };
  const bool landmarks_first = load > kLandmarksFirst;
  if (!landmarks_first && decided_alone()) return outcome;
  const auto likely = large ? likely_line(pruner, budget) : std::vector<Node>();
  std::optional<Chains> chains;
  std::optional<Frontiers> frontiers;
  bool impossible = false;
  if (likely.empty() || strategy == Strategy::frontier) {  // else they would be far too wide
    try {
      if (auto made = Chains::of(*line, budget)) chains.emplace(std::move(*made));
      budget.phase = "looking for landmarks";
      if (chains && chains->events.size() <= kLandmarks) {
        impossible = !add_landmarks(*chains, budget);
        if (!impossible) line->precede(chains->edges());  // so that annealing stays within them, too
      }
      if (chains && !impossible) frontiers.emplace(*chains, budget, share_of(max_bytes));
    } catch (const std::bad_alloc&) {  // the others need less
    }
  }
  if (landmarks_first && !impossible && decided_alone()) return outcome;
  budget.phase = "annealing";
  Annealing annealing(*line, budget, seed, likely);
  const auto anneal = [&](std::int64_t moves) {
    budget.phase = "annealing";
    if (!annealing.run(moves)) return false;
    outcome.by = Outcome::By::anneal;
    outcome.model = annealing.model();
    return outcome.model.has_value();
  };
  const auto frontier = [&](std::int64_t cells) {
    if (impossible) {
      outcome.by = Outcome::By::frontier;
      outcome.refuted = true;
      note("frontier_states", 0);
      return true;
    }
    if (!frontiers) return false;
    budget.phase = "searching over frontiers";
    Frontiers::Answer answer = Frontiers::Answer::gave_up;
    try {
      answer = frontiers->run(std::max<std::int64_t>(1, cells / frontiers->state_cells()));
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
  const auto anneal_to_the_end = [&](std::int32_t coolings) {
    const std::int32_t last = annealing.coolings + coolings;
    while (annealing.coolings < last)
      if (anneal(kMoves)) return true;
    return false;
  };
  const auto frozen = [&] { return rank_along(annealing.frozen(), pruner.successors(), budget); };
  const auto repaired = [&] {
    budget.phase = "repairing what annealing has left";
    const Repair done = repair(search, pruner, budget, seed, share_of(max_bytes), frozen());
    note("repair_rounds", done.rounds);
    note("repair_released", static_cast<double>(done.released));
    if (!done.succeeded) return false;
    outcome.by = Outcome::By::cdcl;
    outcome.model = search->model();
    return true;
  };
  if (strategy == Strategy::anneal) {
    if (!anneal_to_the_end(kCoolings)) cdcl_to_the_end();
    counted();
    return outcome;
  }
  if (strategy == Strategy::frontier) {
    while (!frontier(kCells) && frontiers) {
    }
    if (!outcome.model && !outcome.refuted) cdcl_to_the_end();
    return outcome;
  }
  std::int64_t started_from = kNoLimit;
  // An exhausted search leaves no proof to read; now that there certainly is one, CDCL may find it.
  const auto prove = [&] {
    const Outcome exhausted = outcome;
    if (!annealing.frozen().empty()) begin(frozen());
    try {
      if (!cdcl(impossible ? kCycle : kProof)) outcome = exhausted;
    } catch (const OutOfTime&) {  // what is refuted stays so
      outcome = exhausted;
    }
  };
  const auto refuted_or_found = [&](std::int64_t cells) {
    if (!frontier(cells)) return false;
    if (outcome.refuted) prove();
    return true;
  };
  if (refuted_or_found(kFirstCells)) return outcome;
  for (double share = 1;; share *= 1.5) {
    const auto turn = [&](std::int64_t work) { return static_cast<std::int64_t>(static_cast<double>(work) * share); };
    if (likely.empty() ? anneal(turn(kMoves)) : anneal_to_the_end(1)) break;
    if (refuted_or_found(turn(load > kDemanding ? kManyCells : kCells))) break;
    // CDCL has had its turn alone, and will do better from where annealing freezes, if that is soon.
    if (annealing.coolings == 0 && annealing.moves_left() < kSoon) continue;
    if (annealing.coolings > 0 && annealing.frozen_cost < started_from) {
      started_from = annealing.frozen_cost;
      if (large && repaired()) break;
      begin(frozen());
    }
    if (cdcl({turn(large ? first.conflicts : kConflicts.conflicts), large ? kNoLimit : turn(kConflicts.decisions)}))
      break;
    if (frontiers || !search->full()) continue;
    if (!anneal_to_the_end(kCoolings)) throw out_of_memory(max_bytes);
    break;
  }
  counted();
  return outcome;
}

}  // namespace isolang
