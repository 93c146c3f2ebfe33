// `solve` tries the checks in turn, from easy to exact: stronger checks first, then the requested
// checks with assumed orders, and at last without them. Each try is an `Attempt` with its own event
// graph. A model found by any try is a model of the requested checks. A refutation counts only if
// each of its cycles violates a requested check.
#include "engine/solve.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>

#include "core/index.hpp"
#include "core/prefetch.hpp"
#include "core/required.hpp"
#include "engine/hard/portfolio.hpp"
#include "engine/presolve/presolve.hpp"
#include "engine/presolve/reads_apart.hpp"
#include "engine/presolve/stronger_checks.hpp"
#include "engine/search/initial_linearization.hpp"
#include "engine/search/repair.hpp"
#include "engine/search/settled_model.hpp"

namespace isolang {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<std::int32_t> sources_by_operation(const History& h, const Problem& p,
                                               const Model& model) {
  constexpr std::int32_t kPrefetchDistance = 16;  // number of reads; their writers may be anywhere in memory
  std::vector<std::int32_t> source(h.op_kind.size(), -1);
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    if (const std::int32_t ahead = r + kPrefetchDistance; ahead < p.reads() && model.source[ahead] >= 0)
      prefetch(&p.writer_txn[model.source[ahead]]);
    if (model.source[r] >= 0) source[p.read_op[r]] = p.writer_txn[model.source[r]];
  }
  // mutant: merged-no-source
  for (std::size_t i = 0; i < p.merged_op.size(); ++i)
    source[p.merged_op[i]] = source[p.read_op[p.merged_into[i]]];
  return source;
}

namespace {

constexpr const char* kSearch = "the search of an attempt";

constexpr std::int64_t kPresolveConflicts = 2000;
constexpr int kPresolves = 64, kTimedPresolves = 8, kTimedTurns = 2;
// If the order of the history is assumed, a large history consists of many small clusters, and a
// search without this order would not succeed.
constexpr int kLongPresolves = 16;
constexpr std::size_t kFurtherRefutations = 64;  // in each round
// A history with at most this many transactions is also searched without assumed orders.
constexpr std::int32_t kFewTransactions = 2000;
constexpr int kRoundsApart = 16;  // rounds in which predicate reads are set apart
constexpr std::int64_t kPresolveConflictsEach = 10;  // for each transaction
// A likely order is repaired if there are more candidates per read than this.
constexpr std::size_t kRepairedCandidates = 2;
constexpr RepairEffort kRepair{400, 1000};
// Limits of a search before pruning has ended. It may take kConflicts conflicts, and one more for
// every kConflictEvery transactions; kDecisionsEach decisions for each transaction; and kVisitsEach
// visits for each node (searches that ended took 7 at most, while moves over long distances in a
// million transactions take thousands). The limits on variables are per transaction, in total and
// by the first final check, before any pass and after one. If orders must be chosen and more than
// kOpenCandidates candidates are open for each transaction, no search is tried.
constexpr std::int64_t kConflicts = 400, kConflictEvery = 50, kDecisionsEach = 5, kVisitsEach = 10;
constexpr std::int64_t kDecisionsOfTry = 20;  // decisions per transaction, with assumed times
constexpr double kOpenCandidates = 2, kUnpruned = 0.2, kUnprunedFirst = 0.1, kPruned = 0.75,
                 kPrunedFirst = 0.43;
// Limits of a search with deferred predicate reads, which has many easy choices. The constants
// limit the decisions per transaction and in any history, the visits per node, and the variables
// per transaction.
constexpr std::int64_t kDeferredDecisionsEach = 100, kDeferredDecisions = 500'000,
                       kDeferredVisitsEach = 100;
constexpr double kDeferred = 16;

std::int64_t presolve_conflicts(const Problem& problem, const Presolve& presolve) {
  return presolve.of_the_history()
             ? std::max(kPresolveConflicts, kPresolveConflictsEach * problem.n)
             : kPresolveConflicts;
}

// One attempt to decide the checks with one event graph. The graph is pruned and searched, and a
// refutation is constructed if no model exists.
class Attempt {
 public:
  Attempt(const Problem& problem, const std::vector<Automaton>& automata,
          const AssumedOrders& assumed, const SolveOptions& options, Budget& budget,
          Solution& solution)
      : options_(options),
        budget_(budget),
        solution_(solution),
        graph_(problem, automata, assumed),
        pruner_(prepare()) {
    // ablation: no-deferred-reads
    if (options.strategy == "auto") pruner_.defer_predicate_reads();
  }

  // Completes the pruning. Returns false if pruning alone shows that a check is violated.
  bool prune() {
    pruner_.take_up_predicate_reads();
    while (open_ && !pruner_.done()) advance();
    return open_;
  }

  // Runs one pass of pruning, and a search if it is likely to be short.
  Cdcl::Result begin() {
    if (!open_ || pruner_.done()) return Cdcl::Result::gave_up;
    return search_between_passes(1, std::numeric_limits<std::int64_t>::max());
  }

  // Tries to search early. If this gives no answer, runs a last search with at most this many
  // conflicts.
  Cdcl::Result search(std::int64_t max_conflicts) {
    if (const auto result = search_early(max_conflicts); result != Cdcl::Result::gave_up)
      return result;
    return search({max_conflicts, std::numeric_limits<std::int64_t>::max()});
  }

  // Tries to search early. If this gives no answer, runs all searches for this many turns; if
  // `turns` is 0, runs one short search. A refutation counts only if CDCL can prove it.
  Cdcl::Result try_to_decide(int turns) {
    if (const auto result = search_early(kPresolveConflicts); result != Cdcl::Result::gave_up)
      return result;
    if (turns == 0)
      return search({kConflicts + n() / kConflictEvery, n() * kDecisionsOfTry});
    Outcome outcome = decide(turns);
    if (outcome.model) {
      solution_.model = std::move(outcome.model);
      return Cdcl::Result::satisfiable;
    }
    return outcome.refuted && outcome.by == 0 ? Cdcl::Result::unsatisfiable
                                              : Cdcl::Result::gave_up;
  }

  // Repairs the likely order, as the first pass of pruning leaves it. May give up.
  Cdcl::Result repair() {
    advance();
    if (!open_) return Cdcl::Result::unsatisfiable;
    budget_.phase = "repairing the likely order";
    const Repair done = isolang::repair(search_, pruner_, budget_, options_.seed,
                                        share_of(options_.max_search_bytes), pruner_.rank, kRepair);
    note("repair_rounds", done.rounds);
    note("repair_released", done.released);
    note_search();
    if (done.result == Cdcl::Result::satisfiable) solution_.model = required(search_, kSearch).model();
    return done.result;
  }

  // Decides the checks completely, by the search that finishes first.
  Outcome decide() {
    if (const auto result = search_early(std::numeric_limits<std::int64_t>::max());
        result != Cdcl::Result::gave_up) {
      if (open_) note("decided_by", 0);
      return {.model = std::move(solution_.model),
              .refuted = result == Cdcl::Result::unsatisfiable};
    }
    return decide(kAllTurns);
  }
  template <typename T>
  void note(const char* name, T value) {
    for (auto& [known, sum] : solution_.statistics)
      if (known == name) {  // in a second attempt, times add up and sizes are replaced
        sum = known.starts_with("seconds") ? sum + static_cast<double>(value)
                                           : static_cast<double>(value);
        return;
      }
    solution_.statistics.emplace_back(name, static_cast<double>(value));
  }

  std::vector<ProofStep> refutation() {
    watch_.lap();
    budget_.phase = "refuting";
    Refuter refuter(pruner_, budget_);
    auto steps = open_ ? refuter.from_search(required(search_, kSearch)) : refuter.from_pruning();
    note("seconds_refute", watch_.lap());
    return steps;
  }

  // Returns refutations besides `refutation`, at most this many. Each is for another cycle of known
  // edges.
  std::vector<std::vector<ProofStep>> further_refutations(std::size_t most) {
    std::vector<std::vector<ProofStep>> found;
    if (open_ || pruner_.cycles.empty()) return found;
    watch_.lap();
    pruner_.find_cycles(most + 1);
    Refuter refuter(pruner_, budget_);
    for (std::size_t i = 1; i < pruner_.cycles.size() && found.size() < most; ++i)
      found.push_back(refuter.from_pruning(i));
    note("seconds_refute", watch_.lap());
    return found;
  }

 private:
  Outcome decide(int turns) {
    watch_.lap();
    const auto tell = [&](const char* name, double value) { note(name, value); };
    Outcome outcome = isolang::decide(search_, pruner_, options_.strategy, options_.seed,
                                      options_.max_search_bytes, budget_, tell, turns);
    note("decided_by", outcome.by);
    note_search();
    return outcome;
  }

  // Tries one search between passes of pruning, if its first final check shows that it is likely to be short. Such a
  // search often decides the remaining choices faster than the next pass. Afterwards, pruning is complete or the answer
  // is known. If the caller requested a strategy, pruning comes first.
  Cdcl::Result search_early(std::int64_t max_conflicts) {
    if (options_.strategy != "auto") prune();
    const auto result =
        search_between_passes(std::numeric_limits<std::int64_t>::max(), max_conflicts);
    if (result != Cdcl::Result::gave_up || !pruner_.defers()) return result;
    return prune() ? Cdcl::Result::gave_up : Cdcl::Result::unsatisfiable;
  }
  Cdcl::Result search_between_passes(std::int64_t passes_left, std::int64_t max_conflicts) {
    const auto share = [&](double each) {
      return static_cast<std::size_t>(static_cast<double>(n()) * each);
    };
    const bool anti_dependencies = std::ranges::any_of(
        graph_.automata, [](const Automaton& m) { return !m.of(Relation::rw).empty(); });
    for (; open_ && !pruner_.done() && passes_left > 0; --passes_left) {
      advance();
      // ablation: no-early-search
      if (!open_) break;
      if (is_settled()) return Cdcl::Result::satisfiable;
      const bool last = pruner_.done();
      if (last && !pruner_.defers()) break;
      const auto passes = static_cast<std::uint32_t>(pruner_.passes);
      const bool pruned = passes > 0;
      if (pruned && !last && !std::has_single_bit(passes))
        continue;  // a final check costs about as much as a late pass
      if (anti_dependencies && pruner_.open_candidates() > share(kOpenCandidates)) continue;
      const std::int64_t conflicts = std::min(max_conflicts, kConflicts + n() / kConflictEvery);
      const auto result =
          pruner_.defers()
              ? search({conflicts, kDeferredDecisions + n() * kDeferredDecisionsEach, share(kDeferred),
                        share(kDeferred), graph_.nodes() * kDeferredVisitsEach})
              : search({conflicts, n() * kDecisionsEach, share(pruned ? kPruned : kUnpruned),
                        share(pruned ? kPrunedFirst : kUnprunedFirst),
                        graph_.nodes() * kVisitsEach});
      if (result != Cdcl::Result::gave_up) return result;
      if (pruned && required(search_, kSearch).rounds > 1)
        prune();  // only one search is tried, except that a search which gave up in its first round may be tried again
    }
    // mutant: early-refutation
    return open_ ? Cdcl::Result::gave_up : Cdcl::Result::unsatisfiable;
  }

  // Returns true, with the model, if pruning has decided everything.
  bool is_settled() {
    if (!pruner_.done() || options_.strategy != "auto") return false;
    solution_.model = settled_model(pruner_);
    if (!solution_.model) return false;
    for (const char* const none : {"variables", "decisions", "decisions_kept", "nodes_visited", "conflicts", "restarts"})
      note(none, 0);
    note("seconds_search", watch_.lap());
    return true;
  }

  Cdcl::Result search(Search::Effort effort) {
    watch_.lap();
    budget_.phase = "searching";
    pruner_.make_room_for_search();
    search_.emplace(pruner_, budget_, options_.seed, share_of(options_.max_search_bytes));
    const Cdcl::Result result = search_->run(effort);
    note_search();
    if (result == Cdcl::Result::satisfiable) solution_.model = search_->model();
    return result;
  }

  void advance() {
    search_.reset();
    budget_.phase = "pruning";
    open_ = pruner_.advance();
    note("edges_after_pruning", graph_.edges.size());
    if (pruner_.passes > 0) note("chains", pruner_.clocks.chains());
    note("prune_passes", pruner_.passes);
    note("orders_forced", pruner_.forced_orders);
    note("sources_eliminated", pruner_.eliminated_sources);
    note("seconds_prune", watch_.lap());
  }

  void note_search() {
    const Search& search = required(search_, kSearch);
    note("variables", search.sat().variables());
    note("decisions", search.sat().decisions);
    note("decisions_kept", search.sat().decisions_kept);
    note("nodes_visited", static_cast<double>(search.visited()));
    note("conflicts", search.sat().conflicts);
    note("restarts", search.sat().restarts);
    note("rounds", search.rounds);
    note("seconds_search", watch_.lap());
  }

  Pruner prepare() {
    if (!options_.likely_order.empty()) graph_.follow(options_.likely_order);
    note("nodes", graph_.nodes());
    note("edges_known", graph_.edges.size());
    note("seconds_graph", watch_.lap());
    return Pruner(graph_, budget_, options_.max_clock_bytes, options_.threads);
  }

  std::int64_t n() const { return graph_.problem.n; }

  Stopwatch watch_;
  const SolveOptions& options_;
  Budget& budget_;
  Solution& solution_;
  EventGraph graph_;
  Pruner pruner_;
  std::optional<Search> search_;
  bool open_ = true;
};

}  // namespace

namespace {

// Adapts the checks to the kinds of pairs in the history. Steps that concern only other kinds are
// removed, and a step that concerns all existing kinds no longer distinguishes pairs.
std::vector<Automaton> for_the_history(const Problem& problem, std::vector<Automaton> automata) {
  Pairs there = 0, transactions = 0;
  const auto kinds = std::ranges::find_if(automata, [](const Automaton& m) { return m.kinds != nullptr; });
  if (kinds == automata.end()) {
    there = 3 | kWriterPairs;
  } else {
    for (const std::uint8_t kind : kinds->kinds->of_key) there |= Pairs{3} << (2 * kind);
    for (const std::uint8_t kind : kinds->kinds->of_transaction) transactions |= Pairs{1} << kind;
  }
  // mutant: predicate-reads-forgotten
  if (problem.read_predicate.empty()) there &= kItemPairs;
  for (Automaton& m : automata) {
    for (std::size_t r = 0; r < kRelations; ++r) {
      auto& pairs = m.pairs[r];
      const bool of_names = r == idx(Relation::label) || r == idx(Relation::level);
      const Pairs all = of_names ? transactions : there;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < pairs.size(); ++i)
        if ((pairs[i] & all) != 0) {
          m.steps[r][kept] = m.steps[r][i];
          // T0 has no name, so a test of names stays a test.
          pairs[kept++] = (all & ~pairs[i]) == 0 && !of_names ? kAllPairs : pairs[i];
        }
      if (pairs.empty()) continue;
      m.steps[r].resize(kept);
      pairs.resize(kept);
      if (std::ranges::all_of(pairs, [](Pairs p) { return p == kAllPairs; })) pairs.clear();
    }
    if ((m.back.rw_pairs & there) == 0) m.back.by_rw.clear();
    if ((there & ~m.back.rw_pairs) == 0) m.back.rw_pairs = kAllPairs;
  }
  return automata;
}

// If all reads are item reads, a check of components may become a check of cycles.
std::vector<Automaton> without_predicate_reads(std::vector<Automaton> automata) {
  // A check of components becomes `acyclic` if another check forbids the cycles that it allows.
  const auto forbids = [](const Automaton& m, const Automaton::Reads& component) {
    // A check that itself relies on another one (covered_by) forbids only some of its cycles.
    if (m.states > 1 || !m.judges || !m.places_are_transactions() || m.covered_by >= 0) return false;
    for (std::size_t r = 0; r < kRelations; ++r)
      if ((component[r] & kItemPairs) != 0 && (m.steps[r].empty() || !m.pairs[r].empty())) return false;
    return true;
  };
  std::vector<bool> superfluous(automata.size(), false);
  for (std::size_t c = 0; c < automata.size(); ++c) automata[c].number = static_cast<std::int32_t>(c);
  for (Automaton& m : automata) {
    if (!m.of_components()) continue;
    Automaton::Reads open = m.component;
    for (std::size_t r = 0; r < kRelations; ++r)
      if ((m.closing[r] & kItemPairs) != 0) open[r] = 0;
    const auto covers = std::ranges::find_if(
        automata, [&](const Automaton& other) { return &other != &m && forbids(other, open); });
    if (covers == automata.end()) continue;
    m.covered_by = covers->number;
    bool has_all = covers->epsilon.empty() && !covers->forbids_return_paths();
    for (std::size_t r = 0; r < kRelations; ++r) {
      if ((m.component[r] & kItemPairs) != 0) m.steps[r] = {{0, 0}};
      if (tells_writers(m.component[r])) m.pairs[r] = {m.component[r]};
      has_all &= covers->steps[r].empty() || !m.steps[r].empty();
    }
    m.component = {};
    if (has_all) superfluous[idx(m.covered_by)] = true;
  }
  std::vector<Automaton> kept;
  for (Automaton& m : automata)
    if (!superfluous[idx(m.number)]) kept.push_back(std::move(m));
  return kept;
}

// Sets the number of the requested check that a cycle violates. All reads are item reads, so only
// item pairs close.
void number(ProofStep& step, const std::vector<Automaton>& automata) {
  if (step.kind != ProofStep::Kind::cycle) return;
  const Automaton& m = automata[idx(step.check)];
  const bool closes = std::ranges::any_of(step.edges, [&](const ProofEdge& e) {
    // mutant: predicate-pairs-close
    return idx(e.relation) < kRelations && (m.closing[idx(e.relation)] & kItemPairs) != 0;
  });
  // mutant: cycle-of-another-check
  step.check = m.covered_by >= 0 && !closes ? m.covered_by : m.number;
}

// Returns true if statements are places and many of them were sent together with another statement.
// Returns false if each transaction sent all its reads together, as in histories where only
// transactions have times.
bool many_together(const Problem& problem, const std::vector<Automaton>& automata) {
  if (std::ranges::none_of(automata, &Automaton::by_statement)) return false;
  std::int32_t together = 0;
  bool apart = false;
  for (std::int32_t r = 1; r < problem.reads(); ++r)
    if (problem.read_txn[r] == problem.read_txn[r - 1]) {
      const bool both = reads_together(problem, r);
      together += static_cast<std::int32_t>(both);
      apart |= !both;
    }
  return apart && 4 * together >= problem.reads();
}

Solution solve_checks(const Problem& problem, const std::vector<Automaton>& automata,
                      const SolveOptions& options, Budget& budget) {
  Solution solution;
  std::optional<Attempt> plain, presolved;
  const auto begin = [&](std::optional<Attempt>& attempt, const std::vector<Automaton>& checks,
                         const AssumedOrders& assumed) {
    budget.phase = "building the event graph";
    attempt.emplace(problem, checks, assumed, options, budget, solution);
  };
  const bool forced = options.strategy != "auto" && options.strategy != "cdcl";
  const auto search_stronger = [&](const std::vector<Automaton>& checks) {
    const Presolve presolve(problem, checks, Presolve::Orders::of_the_history);
    begin(presolved, presolve.automata(), presolve.given());
    return presolved->search(kPresolveConflicts);
  };
  // Withdraws what the refutations of a round assume. Returns false if one of them assumes nothing
  // and is the solution.
  const auto withdraw = [&](Presolve& presolve) {
    solution.refutation = presolved->refutation();
    if (!presolve.doubt(solution.refutation)) return false;
    for (auto& steps : presolved->further_refutations(kFurtherRefutations)) {
      solution.refutation = std::move(steps);
      if (!presolve.doubt(solution.refutation)) return false;
    }
    solution.refutation.clear();
    presolve.end_round();
    return true;
  };
  std::optional<ReadsApart> apart =
      options.presolve && !forced ? ReadsApart::of(problem, automata) : std::nullopt;
  // Most databases run transactions in an order that agrees with their times, whatever level they
  // promise.
  // ablation: no-order-of-times
  if (options.presolve && !forced && has_short_sessions(problem))
    if (const auto checks = as_one_order_of_times(problem, automata)) {
      const Presolve timed(problem, *checks, Presolve::Orders::of_time);
      if (timed.of_time() && timed.times_fit()) {
        begin(presolved, timed.automata(), timed.given());
        if (presolved->try_to_decide(0) == Cdcl::Result::satisfiable) return solution;
        presolved.reset();
      }
    }
  bool stronger_refuted = apart && apart->any();
  if (options.presolve && !forced && !stronger_refuted)
    for (const auto& checks : {as_one_total_order(problem, automata),
                               as_one_cycle(problem, automata), as_one_state(automata)})
      if (checks) {
        const Cdcl::Result result = search_stronger(*checks);
        if (result == Cdcl::Result::satisfiable) return solution;
        stronger_refuted |= result == Cdcl::Result::unsatisfiable;
      }
  // ablation: no-reads-apart
  for (int i = 0; stronger_refuted && apart && i < kRoundsApart; ++i) {
    const auto search_apart = [&](const std::vector<Automaton>& checks, const AssumedOrders& assumed) {
      begin(presolved, checks, assumed);
      presolved->note("rounds_apart", i + 1);
      return presolved->search(kPresolveConflicts);
    };
    std::vector<ProofStep> steps;
    bool leans = true;  // whether the last refutation depends on assumed orders
    if (apart->any()) {  // first with session order, because most databases respect it
      Presolve sessions(problem, apart->automata(), Presolve::Orders::of_the_history);
      AssumedOrders assumed = sessions.given();
      assumed.apart = apart->given().apart;
      const Cdcl::Result result = search_apart(sessions.automata(), assumed);
      if (result == Cdcl::Result::satisfiable) return solution;
      if (result == Cdcl::Result::unsatisfiable) {
        steps = presolved->refutation();
        leans = sessions.doubt(steps);
      }
    }
    if (leans) {
      const Cdcl::Result result = search_apart(apart->automata(), apart->given());
      if (result == Cdcl::Result::satisfiable) return solution;
      if (result == Cdcl::Result::gave_up) break;
      steps = presolved->refutation();
    }
    const auto verdict = apart->judge(steps);
    if (verdict == ReadsApart::Verdict::refuted) {
      solution.refutation = std::move(steps);
      return solution;
    }
    if (verdict == ReadsApart::Verdict::open) break;
  }
  const bool all_apart = apart && apart->set_all_apart();
  const auto begin_plain = [&]() -> Attempt& {
    if (apart && all_apart)
      begin(plain, apart->automata(), apart->given());
    else
      begin(plain, automata, {});
    return *plain;
  };
  const auto refute = [&] {
    solution.refutation = required(plain, "the attempt without assumed orders").refutation();
    if (apart && all_apart && apart->judge(solution.refutation) != ReadsApart::Verdict::refuted)
      throw std::logic_error("a cycle of a stronger check violates no requested check");
  };
  // Returns whether a result of `plain` decides the history, and completes a refutation.
  const auto decides = [&](Cdcl::Result result) {
    if (result == Cdcl::Result::unsatisfiable) refute();
    return result != Cdcl::Result::gave_up;
  };
  // A likely order contradicts few reads. If a single rw closes a forbidden walk, the order of the
  // search has no edges for rw, so a transaction that moves passes writers that its reads missed.
  // Then these reads are wrong, and if many reads are ambiguous, this goes on until the search covers
  // the whole history. The repair holds all transactions that need not move. (If no check has several
  // states, as at CC, clocks show most orders, and the other searches are fast.)
  // ablation: no-repaired-order
  if (options.presolve && !forced && !options.likely_order.empty() &&
      std::ranges::any_of(automata, &Automaton::forbids_return_paths) &&
      std::ranges::any_of(automata, [](const Automaton& m) { return m.states > 1; }) && !apart &&
      problem.candidate.size() > kRepairedCandidates * idx(problem.reads())) {
    if (decides(begin_plain().repair())) return solution;
    plain.reset();
  }
  // SOUND BECAUSE every walk of the checks is also a walk of the graph in which statements that
  // were sent together are one: what leads to each of them leads to all of them, and what leads
  // away from each leads away from all.
  // ablation: no-statements-together
  if (options.presolve && !forced && many_together(problem, automata)) {
    begin(presolved, automata, {.together = true});
    if (presolved->begin() == Cdcl::Result::satisfiable) return solution;
    presolved.reset();
  }
  // Recorded times decide most open choices, if the database respects them. They are not needed if
  // one pass decides the checks without them.
  if (options.presolve && !forced && problem.has_time) {
    if (!Presolve(problem, automata, Presolve::Orders::of_the_history).any()) {
      if (decides(begin_plain().begin())) return solution;
    }
    if (Presolve timed(problem, automata, Presolve::Orders::of_time); timed.of_time()) {
      for (int i = 0; i < kTimedPresolves; ++i) {
        begin(presolved, timed.automata(), timed.given());
        presolved->note("timed_rounds", i + 1);
        const Cdcl::Result result = presolved->try_to_decide(timed.times_fit() ? kTimedTurns : 0);
        if (result == Cdcl::Result::satisfiable) return solution;
        if (result == Cdcl::Result::gave_up) break;
        if (!withdraw(timed)) return solution;
        if (i > 0 || plain) continue;
        // The checks may be violated without the times, and one pass finds most violations. It costs
        // as much as one of the rounds that would follow.
        if (decides(begin_plain().begin())) return solution;
        plain.reset();
      }
    }
  }
  // Without session order, or with sessions of one transaction each, clocks show few orders, and the search takes long.
  // But most real histories have a model that also respects an assumed order almost everywhere, and it costs little to
  // look for such a model first.
  if (Presolve presolve(problem, automata, Presolve::Orders::of_the_history);
      presolve.any() && !forced) {
    for (int i = 0; i < (presolve.of_the_history() ? kLongPresolves : kPresolves); ++i) {
      begin(presolved, presolve.automata(), presolve.given());
      if (presolve.of_the_history()) {
        presolved->note("presolve_window", presolve.given().window);
        presolved->note("presolve_rounds", i + 1);
      }
      const Cdcl::Result result = presolved->search(presolve_conflicts(problem, presolve));
      if (result == Cdcl::Result::satisfiable) return solution;
      if (result == Cdcl::Result::gave_up) break;
      if (!withdraw(presolve)) return solution;
      if (i > 0 || presolve.of_the_history()) continue;
      begin_plain();
      if (problem.n > kFewTransactions) {
        // More passes would cost more than another round. They follow if the rounds give up.
        if (decides(plain->begin())) return solution;
        continue;
      }
      // A search without the assumed orders then costs less than many rounds.
      if (decides(plain->try_to_decide(0))) return solution;
    }
  }
  presolved.reset();
  if (!plain) begin_plain();
  Outcome outcome = plain->decide();
  if (!outcome.refuted) {
    solution.model = std::move(outcome.model);
  } else if (outcome.by == 0) {
    refute();
  } else {
    ProofStep step{ProofStep::Kind::exhaustion};
    step.states = outcome.states;
    solution.refutation.push_back(std::move(step));
  }
  return solution;
}

}  // namespace

Solution solve(const Problem& problem, const std::vector<Automaton>& checks,
               const SolveOptions& options, Budget& budget) {
  std::vector<Automaton> automata = for_the_history(problem, checks);
  if (!problem.read_predicate.empty()) return solve_checks(problem, automata, options, budget);
  automata = without_predicate_reads(std::move(automata));
  Solution solution = solve_checks(problem, automata, options, budget);
  for (ProofStep& step : solution.refutation) number(step, automata);
  return solution;
}

}  // namespace isolang
