// Checks that are stronger than the requested checks and easier to search for. A model of the
// stronger checks is a model of the requested ones, and most histories have such a model.
#pragma once
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "engine/graph/automaton.hpp"

namespace isolang {

// For checks with return paths, which a search can test only after all choices are made: one event
// graph in which these paths become cycles. The product has the rw pairs as edges, but never two in
// a row. SOUND BECAUSE every cycle that one rw closes is a cycle of this product, and so is every
// cycle of the other checks, whose steps the product has. Returns nothing if the checks are not
// over one state, or if no search is needed.
std::optional<std::vector<Automaton>> as_one_cycle(const Problem& problem,
                                                   const std::vector<Automaton>& automata);

// An even stronger check with half as many nodes, which allows any number of rw pairs in a row.
// Also returns nothing if few reads are ambiguous: a failed attempt costs as much as as_one_cycle,
// which costs little if there is little to search for.
std::optional<std::vector<Automaton>> as_one_total_order(const Problem& problem,
                                                         const std::vector<Automaton>& automata);

// The same check for a history with times, whatever its reads are, but only for checks that forbid
// walks through the product. If such walks need thousands of chains, a search that knows the times
// can do without them: see Presolve.
std::optional<std::vector<Automaton>> as_one_order_of_times(const Problem& problem,
                                                            const std::vector<Automaton>& automata);

// For checks with tests, and with return paths of several states or of one key: checks over one
// state and all keys, as if every transaction passed the tests and any step could follow any other.
// Their sessions are chains, and their clocks are short. One automaton forbids all cycles of the
// steps of any check, and each check with return paths has one more automaton over its own steps.
// SOUND BECAUSE every word of a check is a word of one of these automata. Returns nothing if there
// is no such check.
std::optional<std::vector<Automaton>> as_one_state(const std::vector<Automaton>& automata);

}  // namespace isolang
