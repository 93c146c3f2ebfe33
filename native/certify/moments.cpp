// Bounds unknown times of operations by the known times of operations before and after them. Every function makes at
// most two passes over the operations of one transaction.
#include "certify/moments.hpp"

#include <algorithm>

namespace isolang::certify {

// Returns the latest known time at which `t` began, or sent an operation or a predicate read at or before position
// `place`.
std::int64_t Moments::sent_by(std::int32_t t, std::int64_t place) const {
  // mutant: checker-begin-says-nothing
  std::int64_t latest = h_.bounds_operations() ? h_.txn_begin[t] : kTimeUnknownBegin;
  if (!h_.has_operation_times()) return latest;
  for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1] && op <= place; ++op)
    // mutant: checker-commit-sent
    latest = std::max(latest, h_.op_begin[op]);
  // A predicate read without rows has no operations, but it was sent nevertheless.
  const auto [low, high] = statements(t);
  for (std::size_t s = low; s < high && h_.statement_start[s] <= place; ++s)
    // mutant: checker-statement-sent
    latest = std::max(latest, h_.statement_sent[s]);
  return latest;
}

// Returns the earliest known time at which `t` ended, or at which its COMMIT, an operation from position `place` on, or
// a predicate read after that position was answered.
std::int64_t Moments::answered_from(std::int32_t t, std::int64_t place) const {
  std::int64_t earliest = commit_answered(t);
  // mutant: checker-indeterminate-answers
  if (!h_.has_operation_times() || !committed(t)) return earliest;
  for (std::int64_t op = h_.op_start[t + 1] - 1; op >= h_.op_start[t] && op >= place; --op)
    // mutant: checker-later-answers
    earliest = std::min(earliest, h_.op_end[op]);
  const auto [low, high] = statements(t);
  for (std::size_t s = high; s > low && h_.statement_start[s - 1] > place; --s)
    // mutant: checker-silent-answers
    earliest = std::min(earliest, h_.statement_answered[s - 1]);
  return earliest;
}

std::int64_t Moments::commit_sent(std::int32_t t) const {
  const std::int64_t latest = sent_by(t, h_.op_start[t + 1]);
  return h_.has_operation_times() ? std::max(latest, h_.commit_begin[t]) : latest;
}

std::int64_t Moments::commit_answered(std::int32_t t) const {
  // mutant: checker-indeterminate-commit
  if (!committed(t)) return kTimeUnknownEnd;
  // mutant: checker-end-says-nothing
  const std::int64_t end = h_.bounds_operations() ? h_.txn_end[t] : kTimeUnknownEnd;
  return h_.has_operation_times() ? std::min(end, h_.commit_end[t]) : end;
}

// All operations and predicate reads come after the position just before the first operation.
std::int64_t Moments::first_answered(std::int32_t t) const {
  // mutant: checker-first-statement
  return answered_from(t, h_.op_start[t] - 1);
}

// Returns the range of the transaction's predicate reads (predicate reads are sorted by transaction). The range is
// empty if predicate reads have no times.
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
  return op < 0 ? kTimeUnknownEnd : answered(op, t);
}

// Computes the times of all operations in two passes, because each operation is bounded by the operations before it and
// by those after it.
void Moments::statements_of(std::int32_t t, std::vector<Span>& found) const {
  const std::int64_t first = h_.op_start[t], last = h_.op_start[t + 1];
  found.assign(idx(last - first), Span{sent_by(t, first), answered_from(t, last - 1)});
  if (!h_.has_operation_times() || found.empty()) return;
  const auto [low, high] = statements(t);
  for (std::int64_t op = first + 1, s = static_cast<std::int64_t>(low); op < last; ++op) {
    std::int64_t& sent = found[idx(op - first)].sent;
    sent = std::max(found[idx(op - first - 1)].sent, h_.op_begin[op]);
    for (; idx(s) < high && h_.statement_start[idx(s)] <= op; ++s)
      sent = std::max(sent, h_.statement_sent[idx(s)]);
  }
  if (!committed(t)) return;
  for (std::int64_t op = last - 2, s = static_cast<std::int64_t>(high); op >= first; --op) {
    std::int64_t& answered = found[idx(op - first)].answered;
    answered = std::min(found[idx(op - first + 1)].answered, h_.op_end[op]);
    for (; idx(s) > low && h_.statement_start[idx(s - 1)] > op; --s)
      answered = std::min(answered, h_.statement_answered[idx(s - 1)]);
  }
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
