// Predicate reads: what they returned, and of which other keys they say that no row was there.
//
// A predicate read becomes operations of one statement: a read of each returned row, and a set-read
// of each other key that ever held a matching row. For levels whose reads see a snapshot, or the
// version that an anti-dependency starts from, that says all (docs/predicates.md has the argument).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// A predicate in its canonical text, from the canonical text of a form: of `{:table T :where P}`, of
// P alone, or of Elle's `:true`, `[:= v]` and `[:mod m r]`. Throws std::invalid_argument, with what is
// wrong, for what is no predicate or cannot be evaluated here.
std::string canonical_predicate(std::string_view form);

// Why a predicate read cannot be understood: it cannot be evaluated on some row, or returned one that
// it could not.
struct PredicateError {
  std::int64_t txn, position;
  std::string what;
};
// The set-reads of all predicate reads go into the history, in place of those that are there from
// before. Throws PredicateError.
void lower_predicates(History& history);

}  // namespace isolang
