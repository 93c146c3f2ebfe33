// Checks with tests, made stronger: over one state, as if every transaction passed, and any step could follow any
// other. Their sessions are chains then, and clocks are short; what meets them meets the checks, and most histories do.
#pragma once
#include <optional>
#include <vector>

#include "engine/automaton.hpp"

namespace isolang {

// One automaton that forbids all cycles of the steps of any check, and one for each check with ways back, over its own
// steps. SOUND BECAUSE every word of a check is one of theirs. Nothing where no check has a test.
std::optional<std::vector<Automaton>> as_one_state(const std::vector<Automaton>& automata);

}  // namespace isolang
