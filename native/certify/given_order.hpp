// irreflexive e, where words of e have a step of an order that the history gives, and the steps need not
// compose: `rt ; rw ; ww`. In such an order, a transaction that ended at some time precedes all that begin later.
#pragma once
#include <span>

#include "certify/choice.hpp"
#include "certify/expression.hpp"

namespace isolang::certify {

inline constexpr Relation kOrdersOfTime[] = {Relation::rt, Relation::group_rt};
inline constexpr Relation kGivenOrders[] = {Relation::rt, Relation::group_rt, Relation::so};

// Whether some transaction returns to itself by one word with a step of these orders that no word takes
// twice from the same place. The words without such a step stay in `words`; all others go. Of places that
// are transactions. Throws NotCertified when there are too many groups, or sessions.
bool returns_by_order(const History& history, const Choice& choice, Positions& words,
                      std::span<const Relation> orders, Budget& budget);

// Whether there is a word; none is empty.
bool any_word(const Positions& words);

}  // namespace isolang::certify
