// Orders that no check demands, taken as facts to begin with: what meets the checks together with
// them meets the checks, and with them the clocks know far more. Where an assumed order is refuted,
// it is withdrawn from the transactions to blame.
//
// Two assumed orders. Session order, for checks without it. And for histories of many short
// sessions the order in which the history tells them, as if `window` clients had taken turns: each
// transaction precedes the one that comes `window` places later. Databases do not work in that
// order, but what stands far apart in it has nearly always taken place in it; and so any number of
// sessions becomes `window` chains.
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

class Presolve {
 public:
  Presolve(const Problem& problem, const std::vector<Automaton>& automata);

  bool any() const { return of_sessions_ || given_.window > 0; }
  // The order of the history is one of them: without it the clocks would know next to nothing.
  bool of_the_history() const { return given_.window > 0; }
  const std::vector<Automaton>& automata() const { return automata_; }
  const AssumedOrders& given() const { return given_; }

  // Withdraws the assumed orders that a refutation of the stronger checks leans on. False: it leans
  // on none, and refutes the weaker checks as well.
  bool blame(const std::vector<ProofStep>& refutation);

 private:
  void guess_order();
  void isolate(std::int32_t txn);

  const Problem& problem_;
  std::vector<Automaton> automata_;
  AssumedOrders given_;
  bool of_sessions_;
};

}  // namespace isolang
