// Predicate reads in which some set-reads are not stored as operations. These set-reads are still part of the history's
// meaning.
#pragma once
#include <algorithm>

#include "core/history.hpp"

namespace isolang {

// The value of History::statement_known for such a predicate read. Other predicate reads with known
// results have 1 or kPart.
inline constexpr std::uint8_t kImplicit = 3;

inline bool is_implicit(const History& h) {
  return std::ranges::find(h.statement_known, kImplicit) != h.statement_known.end();
}

}  // namespace isolang
