#include "engine/portfolio.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/parallel.hpp"
#include "engine/anneal.hpp"
#include "engine/frontier.hpp"
#include "engine/landmarks.hpp"
#include "engine/likely_times.hpp"
#include "engine/repair.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr Search::Effort kNoEnd{kNoLimit, kNoLimit};
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

OutOfMemory out_of_memory(std::size_t max_bytes) {
  return OutOfMemory("the searches filled the " + std::to_string(max_bytes / 1'000'000) +
                     " MB that they may hold without an answer");
}

class Portfolio {
 public:
  Portfolio(std::optional<Search>& search, const Pruner& pruner, Strategy strategy, std::uint64_t seed,
            std::size_t max_bytes, Budget& budget, const std::function<void(const char*, double)>& note)
      : search_(search),
        pruner_(pruner),
        strategy_(strategy),
        seed_(seed),
        max_bytes_(max_bytes),
        budget_(budget),
        note_(note),
        budgets_{budget.part(stop_[0]), budget.part(stop_[1]), budget.part(stop_[2])},
        large_(pruner.graph.problem.n >= kLarge),
        first_(large_ ? Search::Effort{kFirst.conflicts + kAlone.conflicts + pruner.graph.problem.n / kAloneEvery,
                                       kNoLimit}
                      : kFirst) {
    own_budget(By::cdcl).phase = "searching";
    own_budget(By::anneal).phase = "annealing";
    own_budget(By::frontier).phase = "searching over frontiers";
  }

  Outcome run() {
    begin({});
    if (strategy_ == Strategy::cdcl) return search_to_the_end();
    if (strategy_ == Strategy::automatic && search(first_)) return found(By::cdcl);
    if (auto line = Timeline::of(pruner_)) line_.emplace(std::move(*line));
    load_ = Timeline::load(pruner_.graph.problem);
    note_("load", load_);
    if (!line_) return search_to_the_end();
    const auto decided_alone = [&] { return strategy_ == Strategy::automatic && !large_ && search(kAlone); };
    const bool landmarks_first = load_ > kLandmarksFirst;
    if (!landmarks_first && decided_alone()) return found(By::cdcl);
    if (large_) likely_ = likely_line(pruner_, budget_);
    if (likely_.empty() || strategy_ == Strategy::frontier) look_for_landmarks();  // else they would be far too wide
    if (landmarks_first && !impossible_ && decided_alone()) return found(By::cdcl);
    annealing_.emplace(*line_, own_budget(By::anneal), seed_, likely_);
    if (strategy_ == Strategy::automatic) return in_turns();
    const By by = strategy_ == Strategy::anneal ? By::anneal : By::frontier;
    const bool decided = by == By::anneal ? anneal_to_the_end(kCoolings) : expand_to_the_end();
    count(by);
    return decided ? found(by) : search_to_the_end();
  }

 private:
  using By = Outcome::By;

  Budget& own_budget(By by) { return budgets_[static_cast<std::size_t>(by)]; }
  Outcome& found(By by) { return found_[static_cast<std::size_t>(by)]; }

  void begin(std::vector<std::int32_t> rank) {
    search_.emplace(pruner_, own_budget(By::cdcl), seed_, share_of(max_bytes_), Search::Start{std::move(rank), {}});
  }

  // Each of the three: whether it has found an answer.
  bool search(Search::Effort effort) {
    if (search_->full()) return false;
    const Cdcl::Result result = search_->run(effort);
    found(By::cdcl) = {.by = By::cdcl, .model = {}, .refuted = result == Cdcl::Result::unsatisfiable};
    if (result == Cdcl::Result::satisfiable) found(By::cdcl).model = search_->model();
    return result != Cdcl::Result::gave_up;
  }

  bool anneal(std::int64_t moves) {
    if (!annealing_->run(moves)) return false;
    found(By::anneal) = {.by = By::anneal, .model = annealing_->model()};
    return found(By::anneal).model.has_value();
  }

  bool expand(std::int64_t cells) {
    Outcome& outcome = found(By::frontier) = {.by = By::frontier, .model = {}};
    outcome.refuted = impossible_;
    if (impossible_ || !frontiers_) return impossible_;
    Frontiers::Answer answer = Frontiers::Answer::gave_up;
    try {
      answer = frontiers_->run(std::max<std::int64_t>(1, cells / frontiers_->state_cells()));
    } catch (const std::bad_alloc&) {  // the others need less
    }
    if (answer == Frontiers::Answer::found) outcome.model = frontiers_->model();
    outcome.refuted = answer == Frontiers::Answer::refuted;
    outcome.states = frontiers_->expanded;
    width_ = frontiers_->width;
    deepest_ = frontiers_->deepest;
    if (answer == Frontiers::Answer::gave_up || answer == Frontiers::Answer::found) frontiers_.reset();
    return outcome.model || outcome.refuted;
  }

  void count(By by) {
    if (by == By::anneal) {
      note_("annealing_moves", static_cast<double>(annealing_->moves));
      note_("annealing_coolings", annealing_->coolings);
      note_("annealing_best", static_cast<double>(annealing_->best));
    } else {
      note_("frontier_states", static_cast<double>(found(By::frontier).states));
      note_("frontier_width", static_cast<double>(width_));
      note_("frontier_deepest", deepest_);
    }
  }

  Outcome search_to_the_end() {
    if (!search(kNoEnd)) throw out_of_memory(max_bytes_);
    return found(By::cdcl);
  }

  bool anneal_to_the_end(std::int32_t coolings) {
    const std::int32_t last = annealing_->coolings + coolings;
    bool answered = false;
    while (!answered && annealing_->coolings < last) answered = anneal(kMoves);
    return answered;
  }

  bool expand_to_the_end() {
    bool answered = false;
    while (!answered && frontiers_) answered = expand(kCells);
    return answered || expand(0);  // landmarks may have the answer
  }

  void look_for_landmarks() {
    try {
      if (auto made = Chains::of(*line_, budget_)) chains_.emplace(std::move(*made));
      budget_.phase = "looking for landmarks";
      if (chains_ && chains_->events.size() <= kLandmarks) {
        impossible_ = !add_landmarks(*chains_, budget_);
        if (!impossible_) line_->precede(chains_->edges());  // so that annealing stays within them, too
      }
      if (chains_ && !impossible_) frontiers_.emplace(*chains_, own_budget(By::frontier), share_of(max_bytes_));
    } catch (const std::bad_alloc&) {  // the others need less
    }
    budget_.phase = "searching";
  }

  std::vector<std::int32_t> frozen() { return rank_along(annealing_->frozen(), pruner_.successors(), budget_); }

  bool repaired() {
    budget_.phase = own_budget(By::cdcl).phase = "repairing what annealing has left";
    const Repair done = repair(search_, pruner_, own_budget(By::cdcl), seed_, share_of(max_bytes_), frozen());
    budget_.phase = own_budget(By::cdcl).phase = "searching";
    note_("repair_rounds", done.rounds);
    note_("repair_released", static_cast<double>(done.released));
    if (done.succeeded) found(By::cdcl) = {.by = By::cdcl, .model = search_->model()};
    return done.succeeded;
  }

  // An exhausted search leaves no proof to read; now that there certainly is one, CDCL may find it.
  Outcome answer_of_frontiers() {
    if (!found(By::frontier).refuted) return found(By::frontier);
    if (!annealing_->frozen().empty()) begin(frozen());
    try {
      if (search(impossible_ ? kCycle : kProof)) return found(By::cdcl);
    } catch (const OutOfTime&) {  // what is refuted stays so
    }
    return found(By::frontier);
  }

  Outcome in_turns() {
    const bool expanded = expand(kFirstCells);
    if (expanded || found(By::frontier).states > 0) count(By::frontier);
    if (expanded) return answer_of_frontiers();
    std::int64_t started_from = kNoLimit;
    std::optional<Search::Effort> next;  // turn of CDCL; what the others do in theirs does not depend on it
    for (double share = 1;; share *= 1.5) {
      const auto turn = [&](std::int64_t work) { return static_cast<std::int64_t>(static_cast<double>(work) * share); };
      const std::array<std::function<bool()>, 3> ways{
          [&] { return next && search(*next); },
          [&] { return likely_.empty() ? anneal(turn(kMoves)) : anneal_to_the_end(1); },
          [&] { return expand(turn(load_ > kDemanding ? kManyCells : kCells)); },
      };
      const auto first = static_cast<By>(first_to_answer(ways, stop_, pruner_.threads(), budget_));
      if (first == By::cdcl) return found(By::cdcl);  // the others were stopped somewhere
      count(By::anneal);
      if (first == By::anneal) return found(By::anneal);
      if (found(By::frontier).states > 0) count(By::frontier);
      if (first == By::frontier) return answer_of_frontiers();
      if (next && !frontiers_ && search_->full()) {
        if (!anneal_to_the_end(kCoolings)) throw out_of_memory(max_bytes_);
        count(By::anneal);
        return found(By::anneal);
      }
      next.reset();
      // CDCL has had its turn alone, and will do better from where annealing freezes, if that is soon.
      if (annealing_->coolings == 0 && annealing_->moves_left() < kSoon) continue;
      if (annealing_->coolings > 0 && annealing_->frozen_cost < started_from) {
        started_from = annealing_->frozen_cost;
        if (large_ && repaired()) return found(By::cdcl);
        begin(frozen());
      }
      next = {turn(large_ ? first_.conflicts : kConflicts.conflicts), large_ ? kNoLimit : turn(kConflicts.decisions)};
    }
  }

  std::optional<Search>& search_;
  const Pruner& pruner_;
  const Strategy strategy_;
  const std::uint64_t seed_;
  const std::size_t max_bytes_;
  Budget& budget_;
  const std::function<void(const char*, double)>& note_;
  // Of each of the three, by its number in Outcome::By.
  std::array<std::atomic<bool>, 3> stop_{};
  std::array<Budget, 3> budgets_;
  std::array<Outcome, 3> found_;

  const bool large_;
  const Search::Effort first_;
  double load_ = 0;
  std::optional<Timeline> line_;
  std::vector<Node> likely_;
  std::optional<Chains> chains_;
  bool impossible_ = false;  // by landmarks
  std::optional<Annealing> annealing_;
  std::optional<Frontiers> frontiers_;
  std::int64_t width_ = 0;  // of the frontiers
  std::int32_t deepest_ = 0;
};

}  // namespace

Outcome race(std::optional<Search>& search, const Pruner& pruner, Strategy strategy, std::uint64_t seed,
             std::size_t max_bytes, Budget& budget, const std::function<void(const char*, double)>& note) {
  return Portfolio(search, pruner, strategy, seed, max_bytes, budget, note).run();
}

}  // namespace isolang
