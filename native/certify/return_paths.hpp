// irreflexive e, where words of e end in an rw that nothing can follow: for an rw pair s -> b, no
// walk from b to s spells a word of U, the words that may precede that rw.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "certify/choice.hpp"
#include "certify/expression.hpp"

namespace isolang::certify {

struct SingleRw {
  Positions without;  // the words of e that do not end so
  // U, for each of rw, irw and prw that such words end in.
  std::vector<std::pair<Relation, Positions>> before;
};
// Empty if there is no such rw.
std::optional<SingleRw> single_rw(const Positions& positions);

// Does some rw pair of the choice close a return path? Throws NotCertified when that is too large
// to decide, or when the return paths run in cycles, which another check should have forbidden.
// `by_statement`: reads are at the places of their statements.
bool closes_return_path(const History& history, const Choice& choice, Relation closing,
                        const Positions& before, bool by_statement, Budget& budget);
// For irreflexive e, where words of e end in their only wr: what may precede it. Empty if not.
std::optional<Positions> before_source(const Positions& positions);
// Does a walk of these words lead from a reader to what it read from?
bool leads_back_to_source(const History& history, const Choice& choice, const Positions& before,
                          Budget& budget);
// The same where the only return path is a wr pair whose read precedes the one of the rw pair.
bool closes_earlier_read(const History& history, const Choice& choice, Budget& budget);

}  // namespace isolang::certify
