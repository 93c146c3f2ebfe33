#include "certify/moments.hpp"

#include <algorithm>

namespace isolang::certify {

// After the last operation was sent, whether or not its own sending is known.
std::int64_t Moments::commit_sent(std::int32_t t) const {
  if (!h_.has_operation_times()) return h_.txn_begin[t];
  std::int64_t sent = h_.commit_begin[t];
  for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
    // mutant: checker-commit-sent
    sent = std::max(sent, h_.op_begin[op]);
  // A predicate read that says nothing of any row has no operations, and was sent all the same.
  const auto [low, high] = statements(t);
  for (std::size_t s = low; s < high; ++s)
    // mutant: checker-statement-sent
    sent = std::max(sent, h_.statement_sent[s]);
  return sent;
}

std::int64_t Moments::commit_answered(std::int32_t t) const {
  // mutant: checker-indeterminate-commit
  if (!committed(t)) return kTimeUnknownEnd;
  return h_.has_operation_times() ? h_.commit_end[t] : h_.txn_end[t];
}

std::int64_t Moments::first_answered(std::int32_t t) const {
  // mutant: checker-first-indeterminate
  if (!h_.has_operation_times() || !committed(t)) return commit_answered(t);
  const auto [low, high] = statements(t);
  // mutant: checker-first-statement
  if (low < high && h_.statement_start[low] == h_.op_start[t]) return h_.statement_answered[low];
  // mutant: checker-first-answer
  return h_.op_start[t] < h_.op_start[t + 1] ? h_.op_end[h_.op_start[t]] : kTimeUnknownEnd;
}

// The predicate reads of a transaction that have times: they stand in the order of transactions.
std::pair<std::size_t, std::size_t> Moments::statements(std::int32_t t) const {
  if (h_.statement_sent.empty()) return {0, 0};
  const auto found = std::ranges::equal_range(h_.statement_txn, t);
  const auto place = [&](auto at) {
    return static_cast<std::size_t>(at - h_.statement_txn.begin());
  };
  return {place(found.begin()), place(found.end())};
}

std::int64_t Moments::write_answered(std::int32_t t, std::int32_t key) const {
  const std::int64_t op = first_write(t, key);
  if (op < 0) return kTimeUnknownEnd;
  // mutant: checker-indeterminate-locks
  return h_.has_operation_times() && committed(t) ? h_.op_end[op] : commit_answered(t);
}

std::int64_t Moments::first_write(std::int32_t t, std::int32_t key) const {
  for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) {
    const auto kind = static_cast<OpKind>(h_.op_kind[op]);
    // mutant: checker-failed-write
    if (h_.op_key[op] == key && h_.op_ok[op] != 0 &&
        (kind == OpKind::write || kind == OpKind::append))
      return op;
  }
  return -1;
}

}  // namespace isolang::certify
