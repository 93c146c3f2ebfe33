// Predicate reads whose set-reads are not all operations: those that are not hold all the same.
#pragma once
#include <algorithm>

#include "core/history.hpp"

namespace isolang {

// History::statement_known of such a predicate read. Others that are known are 1, or kPart.
inline constexpr std::uint8_t kImplicit = 3;

inline bool is_implicit(const History& h) {
  return std::ranges::find(h.statement_known, kImplicit) != h.statement_known.end();
}

}  // namespace isolang
