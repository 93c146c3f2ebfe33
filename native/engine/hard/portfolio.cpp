// `Portfolio` first runs CDCL alone, and then rounds in which every search takes a turn. Turns may
// run in parallel, but their answers are taken in the order of the turns, so the outcome does not
// depend on the number of threads.
#include "engine/hard/portfolio.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "core/parallel.hpp"
#include "core/required.hpp"
#include "engine/hard/hard_search.hpp"
#include "engine/search/initial_linearization.hpp"
#include "engine/search/repair.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr Search::Effort kUnlimited{kNoLimit, kNoLimit};
constexpr Search::Effort kBeforeAll{100, 40'000};   // before all other attempts
constexpr Search::Effort kBeforeOthers{900, 360'000};  // before the other searches
constexpr std::int32_t kManyClusters =
    5000;  // from this many transactions on, a history consists of many small clusters
// CDCL gets one additional conflict for each group of this many transactions.
constexpr std::int64_t kTransactionsPerConflict = 5;
// The limits of CDCL's first turn among the other searches. Each further turn is longer by half.
constexpr Search::Effort kFirstTurn{3000, 400'000};
// The limits of the search for a proof, after an exhaustive search has refuted the history.
constexpr Search::Effort kProof{10'000, 2'000'000};
// The limits of the search for a proof, after necessary precedences have refuted the history. In this
// case, there may also be a proof without a cycle.
constexpr Search::Effort kCycle{500, 100'000};
constexpr RepairEffort kRepairOfOrder{3000, 0};
// From this load on, necessary precedences often refute the history, and they take almost no time.
constexpr double kPrecedencesFirst = 0.7;

OutOfMemory out_of_memory(std::size_t max_bytes) {
  return OutOfMemory("the searches filled the " + std::to_string(max_bytes / 1'000'000) +
                     " MB that they may hold without an answer");
}

class Portfolio {
 public:
  Portfolio(std::optional<Search>& search, const Pruner& pruner, const std::string& strategy,
            std::uint64_t seed, std::size_t max_bytes, Budget& budget, const Note& note, int turns)
      : search_(search),
        pruner_(pruner),
        automatic_(strategy == "auto"),
        seed_(seed),
        max_bytes_(max_bytes),
        budget_(budget),
        note_(note),
        turns_(turns),
        stop_(hard_searches().size() + 1),
        large_(pruner.graph.problem.n >= kManyClusters),
        first_(large_ ? Search::Effort{kBeforeAll.conflicts + kBeforeOthers.conflicts +
                                           pruner.graph.problem.n / kTransactionsPerConflict,
                                       kNoLimit}
                      : kBeforeAll) {
    for (const auto& stop : stop_) budgets_.push_back(budget.part(stop));
    budgets_[0].phase = "searching";
    for (std::size_t i = 0; i < hard_searches().size(); ++i) {
      budgets_[i + 1].phase = hard_searches()[i].phase;
      if (strategy == hard_searches()[i].name) only_ = i;
    }
  }

  Outcome run() {
    begin({});
    if (!automatic_ && !only_) return search_to_the_end();
    if (automatic_ && search(first_)) return cdcl_;
    region_ = HardRegion::of(pruner_);
    const double demand = region_ ? region_->load : load(pruner_.graph.problem);
    note_("load", demand);
    if (!region_) return turns_ == kAllTurns ? search_to_the_end() : Outcome{.gave_up = true};
    const auto decided_alone = [&] { return automatic_ && !large_ && search(kBeforeOthers); };
    const bool precedences_first = demand > kPrecedencesFirst;
    if (!precedences_first && decided_alone()) return cdcl_;
    if (large_) region_->linearization = initial_linearization(pruner_, budget_);
    // A large history has too many precedences for the searches that would use them.
    if (region_->linearization.empty() || only_) region_->find_precedences(budget_);
    if (precedences_first && !region_->impossible && decided_alone()) return cdcl_;
    for (std::size_t i = 0; i < hard_searches().size(); ++i) {
      others_.push_back(
          hard_searches()[i].make(*region_, seed_, share_of(max_bytes_), budgets_[i + 1]));
      others_.back()->outcome.by = static_cast<std::int32_t>(i) + 1;
    }
    if (automatic_) return in_turns();
    HardSearch& only = *others_[required(only_, "the strategy's search")];
    const bool decided = only.run_out();
    only.note(note_);
    return decided ? only.outcome : search_to_the_end();
  }

 private:
  void begin(std::vector<std::int32_t> rank) {
    search_.emplace(pruner_, budgets_[0], seed_, share_of(max_bytes_),
                    Search::Start{std::move(rank), {}});
  }

  // Returns true if CDCL has found an answer.
  bool search(Search::Effort effort) {
    Search& search = required(search_, "the search");
    if (search.full()) return false;
    const Cdcl::Result result = search.run(effort);
    cdcl_ = {.model = {}, .refuted = result == Cdcl::Result::unsatisfiable};
    if (result == Cdcl::Result::satisfiable) cdcl_.model = search.model();
    return result != Cdcl::Result::gave_up;
  }

  Outcome search_to_the_end() {
    if (!search(kUnlimited)) throw out_of_memory(max_bytes_);
    return cdcl_;
  }

  // Returns the first offer of the other searches.
  HardSearch::Offer offer() const {
    for (const auto& other : others_)
      if (const auto offered = other->offer(); offered.soon || !offered.order.empty())
        return offered;
    return {};
  }

  std::vector<std::int32_t> rank_of(std::span<const Node> order) {
    return rank_along(order, pruner_.successors(), budget_);
  }

  bool repaired(std::span<const Node> order) {
    budget_.phase = budgets_[0].phase = "repairing a total order";
    const Repair done = repair(search_, pruner_, budgets_[0], seed_, share_of(max_bytes_),
                               rank_of(order), kRepairOfOrder);
    budget_.phase = budgets_[0].phase = "searching";
    note_("repair_rounds", done.rounds);
    note_("repair_released", static_cast<double>(done.released));
    cdcl_ = {.model = {}, .refuted = done.result == Cdcl::Result::unsatisfiable};
    if (done.result == Cdcl::Result::satisfiable) cdcl_.model = required(search_, "the search").model();
    return done.result != Cdcl::Result::gave_up;
  }

  // Returns the answer. If another search has refuted the checks, its refutation has no readable
  // proof. But since a proof certainly exists, CDCL may find one, which is then part of the answer.
  Outcome answer_of(const Outcome& found) {
    if (!found.refuted) return found;
    if (const auto offered = offer(); !offered.order.empty()) begin(rank_of(offered.order));
    try {
      if (search(region_->impossible ? kCycle : kProof)) return cdcl_;
    } catch (const OutOfTime&) {  // the refutation remains
    }
    return found;
  }

  Outcome in_turns() {
    for (const auto& other : others_)
      if (const bool answered = other->begin(); other->note(note_), answered)
        return answer_of(other->outcome);
    std::int64_t least_wrong = kNoLimit;
    std::optional<Search::Effort>
        next;  // CDCL's next turn, on which the turns of the other searches do not depend
    double share = 1;
    for (int turn_number = 0; turn_number != turns_; ++turn_number, share *= 1.5) {
      const auto turn = [&](std::int64_t work) {
        return static_cast<std::int64_t>(static_cast<double>(work) * share);
      };
      std::vector<std::function<bool()>> ways{[&] { return next && search(*next); }};
      for (const auto& other : others_)
        ways.emplace_back([&other, share] { return other->take_turn(share); });
      const std::size_t first = first_to_answer(ways, stop_, pruner_.threads(), budget_);
      if (first == 0) return cdcl_;  // the other searches were stopped at some point
      for (std::size_t i = 0; i < others_.size(); ++i) {
        others_[i]->note(note_);
        if (first == i + 1) return answer_of(others_[i]->outcome);
      }
      const auto may_refute = [](const auto& other) { return other->may_refute(); };
      if (next && required(search_, "the search").full() && std::ranges::none_of(others_, may_refute)) return last_try();
      next.reset();
      // CDCL has already had its turn alone. It is faster if it starts from an offered order, so it waits if an offer
      // will come soon.
      const auto offered = offer();
      if (offered.soon) continue;
      if (offered.wrong < least_wrong) {
        least_wrong = offered.wrong;
        // mutant: no-repair
        if (large_ && repaired(offered.order)) return cdcl_;
        begin(rank_of(offered.order));
      }
      next = {turn(large_ ? first_.conflicts : kFirstTurn.conflicts),
              large_ ? kNoLimit : turn(kFirstTurn.decisions)};
    }
    return {.gave_up = true};
  }

  // Runs the other searches to the end, because no search is left that could refute.
  Outcome last_try() {
    for (const auto& other : others_)
      if (const bool answered = other->run_out(); other->note(note_), answered)
        return other->outcome;
    throw out_of_memory(max_bytes_);
  }

  std::optional<Search>& search_;
  const Pruner& pruner_;
  const bool automatic_;
  std::optional<std::size_t> only_;  // the only other search, if the strategy requests one
  const std::uint64_t seed_;
  const std::size_t max_bytes_;
  Budget& budget_;
  const Note& note_;
  const int turns_;
  // The flag and the budget of CDCL, and of each of the other searches.
  std::vector<std::atomic<bool>> stop_;
  std::vector<Budget> budgets_;

  const bool large_;
  const Search::Effort first_;
  Outcome cdcl_;
  std::unique_ptr<HardRegion> region_;
  std::vector<std::unique_ptr<HardSearch>> others_;
};

}  // namespace

std::vector<std::string> strategies() {
  std::vector<std::string> names{"auto", "cdcl"};
  for (const HardSearchKind& kind : hard_searches()) names.emplace_back(kind.name);
  return names;
}

double load(const Problem& problem) { return TotalOrder::load(problem); }

Outcome decide(std::optional<Search>& search, const Pruner& pruner, const std::string& strategy,
               std::uint64_t seed, std::size_t max_bytes, Budget& budget, const Note& note,
               int turns) {
  return Portfolio(search, pruner, strategy, seed, max_bytes, budget, note, turns).run();
}

}  // namespace isolang
