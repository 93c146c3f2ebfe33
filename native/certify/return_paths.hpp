// Decides `irreflexive e` for an e some of whose words end in an rw that no step can follow: for an rw pair s -> b, no
// walk from b to s may spell a word of U, where U is the set of words that may precede that rw.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "certify/choice.hpp"
#include "certify/expression.hpp"

namespace isolang::certify {

struct SingleRw {
  Positions without;  // the words of e that do not end in such an rw
  // U, for each of rw, irw and prw in which such words end.
  std::vector<std::pair<Relation, Positions>> before;
};
// Returns nothing if e has no such rw.
std::optional<SingleRw> single_rw(const Positions& positions);

// Returns whether some rw pair of the choice closes a return path. With `by_statement`, reads are at the places of
// their statements. Throws NotCertified if the problem is too large to decide, or if the return paths contain cycles
// that another check should have forbidden.
bool closes_return_path(const History& history, const Choice& choice, Relation closing,
                        const Positions& before, bool by_statement, Budget& budget);
// Returns the words that may precede the wr, for an `irreflexive e` whose words end in their only wr. Returns nothing
// if e is not of this form.
std::optional<Positions> before_source(const Positions& positions);
// Returns whether a walk of these words leads from a reader to the source of its read.
bool leads_back_to_source(const History& history, const Choice& choice, const Positions& before,
                          Budget& budget);
// Returns whether an rw pair closes a return path that consists of a single wr pair whose read precedes that of the rw
// pair.
bool closes_earlier_read(const History& history, const Choice& choice, Budget& budget);

}  // namespace isolang::certify
