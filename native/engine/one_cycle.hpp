// One event graph for checks with ways back, stronger than all of them together. What meets it meets them, and most
// histories have a model that does: it is worth a look before a search that sees ways back only once it has chosen all.
#pragma once
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "engine/automaton.hpp"

namespace isolang {

// Ways back become cycles: the product has the rw pairs as edges, though never two in a row. SOUND BECAUSE a cycle that
// one rw closes is among its cycles, and so is every cycle of the other checks, whose steps it has. Nothing where the
// checks are not over one state, or where no search is needed.
std::optional<std::vector<Automaton>> as_one_cycle(const Problem& problem, const std::vector<Automaton>& automata);

// Still stronger, with half the nodes: any number of rw pairs in a row. Nothing, too, where few reads are ambiguous: if
// it fails, it has cost as much as the other one, which is only little where there is little to search for.
std::optional<std::vector<Automaton>> as_one_line(const Problem& problem, const std::vector<Automaton>& automata);

}  // namespace isolang
