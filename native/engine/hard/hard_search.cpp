// Adapts annealing and state search to the interface `HardSearch`: a turn does a bounded amount of
// work and reports whether the search has an answer. `HardRegion` is their common input. It is
// computed once, and necessary precedences add edges to it.
#include "engine/hard/hard_search.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "engine/hard/annealing.hpp"
#include "engine/hard/necessary_precedences.hpp"
#include "engine/hard/state_search.hpp"

namespace isolang {
namespace {

constexpr std::size_t kMaxEvents =
    5000;  // because necessary precedences need a relaxation of all events for every event
// The turns of all searches take about equal time.
constexpr std::int64_t kMovesPerTurn = 3'000'000;
// The number of moves until the first cooling ends. CDCL starts only after this cooling.
constexpr std::int64_t kFirstMoves = 10'000'000;
constexpr std::int64_t kFirstCells =
    1'000'000;  // cells of states in the first turn, because many contradictions show up within a few
constexpr std::int64_t kCells = 8'000'000;
constexpr double kHighLoad = 1.0;               // from this load on, states get longer turns
// Cells of states in a longer turn. Such a turn is longer because the layers of an over-constrained
// history are narrow.
constexpr std::int64_t kMaxLayerCells = 30'000'000;
// Annealing that runs alone gives up after this many coolings.
constexpr std::int32_t kCoolings = 2;

std::int64_t times(double share, std::int64_t work) {
  return static_cast<std::int64_t>(static_cast<double>(work) * share);
}

// Takes turns of annealing. This search never refutes.
class AnnealingTurns final : public HardSearch {
 public:
  AnnealingTurns(const HardRegion& region, std::uint64_t seed, Budget& budget)
      : from_near_(!region.linearization.empty()),
        annealing_(region.total_order, budget, seed, region.linearization) {}

  bool take_turn(double share) override {
    begun_ = true;
    return from_near_ ? cool(1) : anneal(times(share, kMovesPerTurn));
  }
  bool run_out() override {
    begun_ = true;
    return cool(kCoolings);
  }
  Offer offer() const override {
    if (annealing_.coolings == 0)
      return {.soon = annealing_.moves_left() < kFirstMoves, .order = annealing_.frozen()};
    return {.order = annealing_.frozen(), .wrong = annealing_.frozen_cost};
  }
  void note(const Note& note) const override {
    if (!begun_) return;
    note("annealing_moves", static_cast<double>(annealing_.moves));
    note("annealing_coolings", annealing_.coolings);
    note("annealing_best", static_cast<double>(annealing_.best));
  }

 private:
  bool anneal(std::int64_t moves) {
    if (!annealing_.run(moves)) return false;
    outcome.model = annealing_.model();
    return outcome.model.has_value();
  }
  bool cool(std::int32_t coolings) {
    const std::int32_t last = annealing_.coolings + coolings;
    bool answered = false;
    while (!answered && annealing_.coolings < last) answered = anneal(kMovesPerTurn);
    return answered;
  }

  bool from_near_, begun_ = false;
  Annealing annealing_;
};

// Takes turns of the state search. This search also refutes if the necessary precedences contradict
// each other.
class StateTurns final : public HardSearch {
 public:
  StateTurns(const HardRegion& region, std::size_t max_bytes, Budget& budget)
      : turn_(region.load > kHighLoad ? kMaxLayerCells : kCells), impossible_(region.impossible) {
    if (!region.chains || impossible_) return;
    try {
      search_.emplace(*region.chains, budget, max_bytes);
    } catch (const std::bad_alloc&) {  // the other searches need less memory
    }
  }

  bool begin() override { return expand(kFirstCells); }
  bool take_turn(double share) override { return expand(times(share, turn_)); }
  bool run_out() override {
    bool answered = false;
    while (!answered && search_) answered = expand(kCells);
    return answered || expand(0);
  }
  bool may_refute() const override { return search_.has_value(); }
  void note(const Note& note) const override {
    if (outcome.states == 0 && !outcome.refuted) return;
    note("state_search_states", static_cast<double>(outcome.states));
    note("state_search_width", static_cast<double>(width_));
    note("state_search_deepest", deepest_);
  }

 private:
  bool expand(std::int64_t cells) {
    outcome.refuted = impossible_;
    if (impossible_ || !search_) return impossible_;
    StateSearch::Answer answer = StateSearch::Answer::gave_up;
    try {
      answer = search_->run(std::max<std::int64_t>(1, cells / search_->state_cells()));
    } catch (const std::bad_alloc&) {  // the other searches need less memory
    }
    if (answer == StateSearch::Answer::found) outcome.model = search_->model();
    outcome.refuted = answer == StateSearch::Answer::refuted;
    outcome.states = search_->expanded;
    width_ = search_->width;
    deepest_ = search_->deepest;
    if (answer == StateSearch::Answer::gave_up || answer == StateSearch::Answer::found)
      search_.reset();
    return outcome.model || outcome.refuted;
  }

  std::int64_t turn_;
  bool impossible_;
  std::optional<StateSearch> search_;
  std::int64_t width_ = 0;
  std::int32_t deepest_ = 0;
};

constexpr std::array<HardSearchKind, 2> kSearches{{
    {"anneal", "annealing",
     [](const HardRegion& region, std::uint64_t seed, std::size_t,
        Budget& budget) -> std::unique_ptr<HardSearch> {
       return std::make_unique<AnnealingTurns>(region, seed, budget);
     }},
    {"states", "searching over states",
     [](const HardRegion& region, std::uint64_t, std::size_t max_bytes,
        Budget& budget) -> std::unique_ptr<HardSearch> {
       return std::make_unique<StateTurns>(region, max_bytes, budget);
     }},
}};

}  // namespace

std::span<const HardSearchKind> hard_searches() { return kSearches; }

std::unique_ptr<HardRegion> HardRegion::of(const Pruner& pruner) {
  auto order = TotalOrder::of(pruner);
  if (!order) return nullptr;
  return std::unique_ptr<HardRegion>(new HardRegion{.total_order = std::move(*order),
                                                    .load = isolang::load(pruner.graph.problem)});
}

void HardRegion::find_precedences(Budget& budget) {
  try {
    if (auto made = Chains::of(total_order, budget)) chains.emplace(std::move(*made));
    budget.phase = "finding necessary precedences";
    // ablation: no-necessary-precedences
    if (chains && chains->events.size() <= kMaxEvents) {
      impossible = !add_necessary_precedences(*chains, budget);
      // mutant: annealing-unconstrained
      if (!impossible) total_order.precede(chains->edges());
    }
  } catch (const std::bad_alloc&) {  // the searches need less memory
  }
  budget.phase = "searching";
}

}  // namespace isolang
