// Orders that no check demands, taken as facts to begin with: what meets the checks together with
// them meets the checks, and with them the clocks know far more. Where an assumed order is refuted,
// it is withdrawn from the transactions to blame.
//
// Three assumed orders. Session order, for checks without it. For histories of many short sessions
// the order in which the history lists them, as if `window` clients had taken turns: each
// transaction precedes the one that comes `window` places later. Databases do not work in that
// order, but transactions far apart in it nearly always took place in that order; and so any number of
// sessions becomes `window` chains. And for histories with times, real time: most databases keep
// it where they do not promise it, and then little is left to choose. Recorded times are stretched
// by what the reads contradict them by: clocks are skewed, replicas lag.
#pragma once
#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "engine/graph/automaton.hpp"
#include "engine/graph/event_graph.hpp"
#include "engine/proof/refutation.hpp"

namespace isolang {

// The same checks with session order where they have none, on the steps of `init` or else of `wr`,
// and whether there was such a check. SOUND BECAUSE every edge of the weaker product is an edge of
// the stronger: so contains init, and steps that are added only add edges.
bool add_sessions(std::vector<Automaton>& automata);
// The same for real time, on the steps of `so`.
void add_real_time(std::vector<Automaton>& automata);

class Presolve {
 public:
  enum class Orders { of_the_history, of_time };
  Presolve(const Problem& problem, const std::vector<Automaton>& automata, Orders orders);

  bool any() const { return of_sessions_ || of_the_history() || of_time(); }
  // The order of the history is one of them: without it the clocks would know next to nothing.
  bool of_the_history() const { return given_.window > 0; }
  bool of_time() const { return !given_.times.begin.empty(); }
  // All reads but a few agree with the recorded times as they are.
  bool times_fit() const { return times_fit_; }
  const std::vector<Automaton>& automata() const { return automata_; }
  const AssumedOrders& given() const { return given_; }

  // Withdraws the assumed orders that a refutation of the stronger checks leans on. False: it leans
  // on none, and refutes the weaker checks as well.
  bool blame(const std::vector<ProofStep>& refutation);

 private:
  void guess_order();
  void believe_times();
  void isolate(std::int32_t txn);
  void forget_times(std::int32_t txn);
  void stretch_times(std::int64_t margin);

  const Problem& problem_;
  std::vector<Automaton> automata_;
  AssumedOrders given_;
  bool of_sessions_, times_fit_ = false;
  std::int64_t margin_ = 0;     // of the next stretch
  std::size_t forgotten_ = 0;  // pairs of real time that the last refutation leant on
};

}  // namespace isolang
