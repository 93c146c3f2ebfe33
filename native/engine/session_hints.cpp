#include "engine/session_hints.hpp"

namespace isolang {

std::optional<std::vector<Automaton>> with_sessions(std::vector<Automaton> automata) {
  bool stronger = false;
  for (Automaton& m : automata) {
    auto& so = m.steps[static_cast<std::size_t>(Relation::so)];
    if (!so.empty()) continue;
    so = m.of(m.of(Relation::init).empty() ? Relation::wr : Relation::init);
    if (so.empty()) continue;
    m.so_repeatable = m.repeats(Relation::so);
    m.so_is_hint = stronger = true;
  }
  if (!stronger) return std::nullopt;
  return automata;
}

bool SessionHints::blame(const std::vector<ProofStep>& refutation, const std::vector<Automaton>& stronger) {
  bool leans = false;
  // The two ends of each stretch of session order become sessions of their own: the read at fault is often one of them,
  // and the next refutation would otherwise only come in by its other side.
  const auto isolate = [&](std::int32_t txn) {
    breaks_[static_cast<std::size_t>(txn)] = 1;
    for (std::int32_t next = txn + 1; next < problem_.n; ++next)
      if (problem_.session[static_cast<std::size_t>(next)] == problem_.session[static_cast<std::size_t>(txn)]) {
        breaks_[static_cast<std::size_t>(next)] = 1;
        break;
      }
  };
  for (const ProofStep& step : refutation) {
    if (step.kind != ProofStep::Kind::cycle || !stronger[static_cast<std::size_t>(step.check)].so_is_hint) continue;
    for (const ProofEdge& e : step.edges) {
      if (e.relation != Relation::so) continue;
      leans = true;
      isolate(e.from);
      isolate(e.to);
    }
  }
  return leans;
}

}  // namespace isolang
