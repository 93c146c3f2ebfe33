// Orders that no check requires, but that the search initially treats as facts. A model that
// satisfies the checks together with these orders satisfies the checks, and the clocks know far
// more with them. If an assumed order is refuted, it is withdrawn for the transactions in the
// refutation.
//
// There are three assumed orders. The first is session order, for checks without it. The second,
// for histories of many short sessions, is the order in which the history lists transactions, as if
// `window` clients had taken turns: each transaction precedes the one `window` positions later.
// Databases do not work in that order, but transactions that are far apart in the list nearly
// always ran in the order of the list. Any number of sessions thus becomes `window` chains. The
// third, for histories with times, is real time: most databases respect it even if they do not
// promise it, and then few choices remain. Recorded times are stretched by as much as the reads
// contradict them, because clocks may be skewed and replicas may lag.
#pragma once
#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "engine/graph/automaton.hpp"
#include "engine/graph/event_graph.hpp"
#include "engine/proof/refutation.hpp"

namespace isolang {

// Adds session order to the checks without it, on the steps of `init`, or on those of `wr` if the
// check has no step of `init`. Returns true if there was such a check. SOUND BECAUSE every edge of
// the weaker product is an edge of the stronger product: so contains init, and additional steps
// only add edges.
bool add_sessions(std::vector<Automaton>& automata);
// Does the same for real time, on the steps of `so`.
void add_real_time(std::vector<Automaton>& automata);

class Presolve {
 public:
  enum class Orders { of_the_history, of_time };
  Presolve(const Problem& problem, const std::vector<Automaton>& automata, Orders orders);

  bool any() const { return of_sessions_ || of_the_history() || of_time(); }
  // Returns true if the order of the history is assumed. Without this order, the clocks would know
  // almost nothing.
  bool of_the_history() const { return given_.window > 0; }
  bool of_time() const { return !given_.times.begin.empty(); }
  // Returns true if all but a few reads agree with the recorded times even if the times are not
  // stretched.
  bool times_fit() const { return times_fit_; }
  const std::vector<Automaton>& automata() const { return automata_; }
  const AssumedOrders& given() const { return given_; }

  // Marks transactions of a refutation of the stronger checks as doubtful: all of them if times are
  // assumed, otherwise those that an assumed order puts in order. Returns false if the refutation
  // depends on no assumed order and therefore refutes the weaker checks as well.
  bool doubt(const std::vector<ProofStep>& refutation);
  // Ends a round of refutations: withdraws the assumed orders of the doubtful transactions. If the
  // refutations depended on more recorded times than those of the round before, stretches all
  // times.
  void end_round();

 private:
  void guess_order();
  void adopt_times();
  void isolate(const std::vector<std::uint8_t>& txns);
  void forget_times(std::int32_t txn);
  void stretch_times(std::int64_t margin);

  const Problem& problem_;
  std::vector<Automaton> automata_;
  AssumedOrders given_;
  std::vector<std::uint8_t> doubtful_;  // per transaction, including T0: 1 if a refutation of this round names it
  bool of_sessions_, times_fit_ = false;
  std::int64_t margin_ = 0;     // the margin of the next stretch
  // Number of real-time pairs used by the refutations of this round and of the last one.
  std::size_t forgotten_ = 0, forgotten_before_ = 0;
};

}  // namespace isolang
