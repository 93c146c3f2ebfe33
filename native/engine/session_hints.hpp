// Session order as a hint, for checks that do not demand it: what meets them together with session order meets them, and
// with it the clocks know far more. Where the hint is refuted, it is withdrawn from the transactions to blame.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "engine/automaton.hpp"
#include "engine/refutation.hpp"

namespace isolang {

// The same checks with session order where they have none, on the steps of `init` or else of `wr`; nothing if there is
// no such check. SOUND BECAUSE every edge of the weaker product is an edge of the stronger: so contains init, and steps
// that are added only add edges.
std::optional<std::vector<Automaton>> with_sessions(std::vector<Automaton> automata);

class SessionHints {
 public:
  explicit SessionHints(const Problem& problem) : problem_(problem), breaks_(static_cast<std::size_t>(problem.n), 0) {}

  // Per transaction: no session order over its begin.
  const std::vector<std::uint8_t>& breaks() const { return breaks_; }

  // Withdraws the hints that a refutation of the stronger checks leans on. False: it leans on none, and refutes the
  // weaker checks as well.
  bool blame(const std::vector<ProofStep>& refutation, const std::vector<Automaton>& stronger);

 private:
  const Problem& problem_;
  std::vector<std::uint8_t> breaks_;
};

}  // namespace isolang
