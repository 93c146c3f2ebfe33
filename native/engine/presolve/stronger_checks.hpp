// Checks that are stronger than those asked for and easier to search for: what meets them meets the
// others, and most histories have a model that does.
#pragma once
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "engine/graph/automaton.hpp"

namespace isolang {

// For checks with return paths, which a search sees only once it has chosen everything: one event
// graph, in which they become cycles: the product has the rw pairs as edges, though never two in a
// row. SOUND BECAUSE a cycle that one rw closes is among its cycles, and so is every cycle of the
// other checks, whose steps it has. Nothing where the checks are not over one state, or where no
// search is needed.
std::optional<std::vector<Automaton>> as_one_cycle(const Problem& problem,
                                                   const std::vector<Automaton>& automata);

// Still stronger, with half the nodes: any number of rw pairs in a row. Nothing, too, where few
// reads are ambiguous: if it fails, it has cost as much as the other one, which is only little
// where there is little to search for.
std::optional<std::vector<Automaton>> as_one_total_order(const Problem& problem,
                                                         const std::vector<Automaton>& automata);

// For checks with tests, and return paths of several states or of one key: over one state and all
// keys, as if every transaction passed, and any step could follow any other. Their sessions are chains then, and clocks are short. One automaton that forbids all
// cycles of the steps of any check, and one for each check with return paths, over its own steps.
// SOUND BECAUSE every word of a check is one of theirs. Nothing where no check is of these.
std::optional<std::vector<Automaton>> as_one_state(const std::vector<Automaton>& automata);

}  // namespace isolang
