// Decides `irreflexive e` if words of e contain a step of an order known from the history and the steps need not
// compose, as in `rt ; rw ; ww`. In such an order, a transaction that has ended precedes all transactions that begin
// later.
#pragma once
#include <span>

#include "certify/choice.hpp"
#include "certify/expression.hpp"

namespace isolang::certify {

inline constexpr Relation kOrdersOfTime[] = {Relation::rt, Relation::group_rt};
inline constexpr Relation kGivenOrders[] = {Relation::rt, Relation::group_rt, Relation::so};

// Returns whether some transaction returns to itself by a single word that contains a step of these orders. Only steps
// at positions that a word passes at most once are considered. Afterwards `words` contains only the words without such
// a step. All places must be transactions. Throws NotCertified if there are too many groups or sessions.
bool returns_by_order(const History& history, const Choice& choice, Positions& words,
                      std::span<const Relation> orders, Budget& budget);

// Returns whether the language contains any word. The empty word is never one of them.
bool any_word(const Positions& words);

}  // namespace isolang::certify
