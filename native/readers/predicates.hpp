// Predicate reads: what they returned, and of which other keys they say that no row was there.
//
// A predicate read becomes operations of one statement: a read of each returned row, and a set-read
// of each other key that ever held a matching row. For levels whose reads see a snapshot, or the
// version that an anti-dependency starts from, that says all (docs/predicates.md has the argument).
// Where these set-reads are too many, they are left implicit: core/implicit.hpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// A predicate in its canonical text, from the canonical text of a form: of `{:table T :where P}`, of
// P alone, or of Elle's `:true`, `[:= v]` and `[:mod m r]`. Throws std::invalid_argument, with the
// reason, for what is not a predicate or cannot be evaluated here.
std::string canonical_predicate(std::string_view form);

// The table of a predicate in its canonical text, as the first part of its keys; empty for all keys.
std::string table_of_predicate(std::string_view predicate);

// Why a predicate read cannot be understood: it cannot be evaluated on some row, or returned one that
// it could not.
struct PredicateError {
  std::int64_t txn, position;
  std::string what;
};

// So many set-reads of predicate reads are written out, whatever they are.
inline constexpr std::int64_t kWrittenOut = 1'000;
// The set-reads of all predicate reads go into the history, in place of those that are there from
// before. If there are more than `most`, and each predicate can be judged of every row, only those do
// that an own write decides. Throws PredicateError.
void lower_predicates(History& history, std::int64_t most = kWrittenOut);

// A predicate read, by its number, and a key that it did not return.
struct Missed {
  std::int32_t statement, key;
  auto operator<=>(const Missed&) const = default;
};
// Of an implicit history: these set-reads (ascending, none of them there), or all, as operations.
void write_out(History& history, std::span<const Missed> missed);
void write_out_all(History& history);
// All implicit set-reads of these predicate reads (ascending), but the first `most` of them only.
std::vector<Missed> missed_by(const History& history, std::span<const std::int32_t> statements, std::int64_t most);
// The implicit set-reads that at most one version of their key satisfies, but the first `most` only.
std::vector<Missed> nearly_decided(const History& history, std::int64_t most);
// The opposite of writing out; false, and nothing is changed, if some predicate cannot be judged of some row.
bool leave_implicit(History& history);

// Of an implicit history: the set-reads that a matching row contradicts, ascending. `commits`:
// transactions as their writes take effect, one after the other; a predicate read sees those of the
// first `seen` of them, and is left out if that is -1.
std::vector<Missed> contradicted(const History& history, std::span<const std::int32_t> commits,
                                 std::span<const std::int64_t> seen);

}  // namespace isolang
