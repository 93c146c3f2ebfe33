// One order of all that a model includes: when each transaction commits, and what its reads see.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "core/problem.hpp"

namespace isolang {

// What the order keeps besides `wr` and `rw`.
struct Kept {
  bool so = false, rt = false, group_rt = false, done = false, late = false, locked = false;
  // A transaction reads at its COMMIT; else it has a view before, which rw leads from and all else
  // to. With `versions_only`, ww leads from COMMIT to COMMIT.
  bool serial = false, versions_only = false;
  // The rw of item reads alone.
  bool item_rw = false;
  // No rw: each predicate read has a view of its own. With `as_modelled`, versions are ordered as the model has
  // them.
  bool by_statement = false, as_modelled = false;
};
struct CommitOrder {
  std::vector<std::int32_t> commits;    // the included transactions
  std::vector<std::int64_t> seen;       // per predicate read: of the first so many; -1: it is not included
  std::vector<std::int32_t> order_txn;  // by it; as the model has them where a read says so
};

// The operations of each predicate read, from `start` to before `end`, and its transaction.
struct PredicateReads {
  std::span<const std::int32_t> txn;
  std::span<const std::int64_t> start, end;
};

// `source`: per operation, as a witness has it. As near to the times as it can be, or else to the order
// of the history: a version is where that order has it, unless a read forbids that.
// Nothing if what is to be kept forms a cycle.
std::optional<CommitOrder> commit_order(const Problem& problem, const PredicateReads& statements, std::span<const std::int32_t> source,
                                            std::span<const std::int64_t> order_start,
                                            std::span<const std::int32_t> order_txn, Kept kept,
                                            Budget& budget);

}  // namespace isolang
