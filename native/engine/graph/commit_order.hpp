// One order of all transactions that a model includes: when each transaction commits, and what its
// reads see.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "core/problem.hpp"

namespace isolang {

// Which relations the order keeps, in addition to `wr` and `rw`.
struct KeptRelations {
  bool so = false, rt = false, group_rt = false, done = false, late = false, locked = false;
  // With `serial`, a transaction reads at its COMMIT. Otherwise it has a view before its COMMIT: rw
  // leads from the view, and all other relations lead to the view. With `versions_only`, ww leads
  // from COMMIT to COMMIT.
  bool serial = false, versions_only = false;
  // Only the rw of item reads is kept.
  bool item_rw = false;
  // With `by_statement`, no rw is kept, and each predicate read has a separate view. With
  // `as_modelled`, versions are ordered as in the model, and reads keep their sources.
  bool by_statement = false, as_modelled = false;
};
struct CommitOrder {
  std::vector<std::int32_t> commits;    // the included transactions in the order of their COMMITs
  // For each predicate read, how many transactions it sees, counted from the start of `commits`; -1
  // if its transaction is not included.
  std::vector<std::int64_t> seen;
  // The version orders. Versions are in the order of `commits`, unless a read requires their order
  // in the model.
  std::vector<std::int32_t> order_txn;
  // The source of each operation: the writer of the last version that the read sees according to
  // `commits` or, if that writer is not a candidate, the source in the model.
  std::vector<std::int32_t> source;
};

// For each predicate read, its transaction, and the range of its operations from `start` to before
// `end`.
struct PredicateReads {
  std::span<const std::int32_t> txn;
  std::span<const std::int64_t> start, end;
};

// Returns a commit order of a witness, or nothing if the kept relations form a cycle. `source`
// holds the source of each operation, as in a witness. The commit order is as close as possible to
// the times or, if the history has none, to the order of the history. It also decides the position
// of each version, unless a read forbids this position, and the source of each read with several
// candidates.
std::optional<CommitOrder> commit_order(const Problem& problem, const PredicateReads& statements, std::span<const std::int32_t> source,
                                            std::span<const std::int64_t> order_start,
                                            std::span<const std::int32_t> order_txn, KeptRelations kept,
                                            Budget& budget);

}  // namespace isolang
