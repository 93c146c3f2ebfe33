// Lowers predicate reads: derives, from the rows that they returned, the other keys for which they found no matching
// row.
//
// A predicate read becomes operations of one statement: a read of each returned row, and a set-read of each other key
// that ever held a matching row. For levels whose reads see a snapshot, or the version from which an anti-dependency
// starts, these operations express everything (see docs/predicates.md for the argument). If there are too many
// set-reads, they are left implicit: see core/implicit.hpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// Returns a predicate in its canonical text, from the canonical text of a form: `{:table T :where P}`, P alone, or
// Elle's `:true`, `[:= v]` and `[:mod m r]`. Throws std::invalid_argument, with the reason, for a form that is not a
// predicate or cannot be evaluated here.
std::string canonical_predicate(std::string_view form);

// Returns the table of a predicate in canonical text, as the first part of its keys; empty for all keys.
std::string table_of_predicate(std::string_view predicate);

// Thrown if a predicate read cannot be understood, because its predicate cannot be evaluated on some row, or because of
// a row that it returned.
struct PredicateError {
  std::int64_t txn, position;
  std::string what;
};

// Up to this number, set-reads of predicate reads are always written out.
inline constexpr std::int64_t kWrittenOut = 1'000;
// Puts the set-reads of all predicate reads into the history, in place of the existing ones. If there are more than
// `most`, and each predicate can be judged for every row, adds only those decided by the transaction's own write.
// Throws PredicateError.
void lower_predicates(History& history, std::int64_t most = kWrittenOut);

// A predicate read, by its number, and a key that it did not return.
struct Missed {
  std::int32_t statement, key;
  auto operator<=>(const Missed&) const = default;
};
// Write out set-reads of an implicit history as operations: either the given ones (ascending, none of them present yet)
// or all of them.
void write_out(History& history, std::span<const Missed> missed);
void write_out_all(History& history);
// Returns all implicit set-reads of these predicate reads (ascending), but no more than the first `most`.
std::vector<Missed> missed_by(const History& history, std::span<const std::int32_t> statements, std::int64_t most);
// Returns the implicit set-reads that at most one version of their key satisfies, but no more than the first `most`.
std::vector<Missed> nearly_decided(const History& history, std::int64_t most);
// Makes written-out set-reads implicit again. If some predicate cannot be judged for some row, returns false and
// changes nothing.
bool leave_implicit(History& history);

// What predicate reads of an implicit history return if transactions take effect in a certain
// order.
struct Replay {
  // The set-reads that a matching row contradicts, and the rows that were returned although the key has another row
  // then; both ascending.
  std::vector<Missed> missed, returned;
  std::vector<std::int32_t> source;  // the sources of the given rows; -1 for those of `returned`
};
// Replays a history. The writes of `commits` take effect in this order, and each predicate read sees the first `seen`
// of them, or is skipped if its `seen` is -1. `rows` are the returned rows, as operation numbers in ascending
// order; none of them comes after a write of its key by the same transaction.
Replay replay(const History& history, std::span<const std::int32_t> commits, std::span<const std::int64_t> seen,
              std::span<const std::int64_t> rows);

}  // namespace isolang
