// The moments of transactions and of statements that given relations compare, as the history has them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/history.hpp"

namespace isolang::certify {

class Moments {
 public:
  explicit Moments(const History& history) : h_(history) {}

  bool known() const { return h_.has_time || h_.has_operation_times(); }
  // COMMIT was sent not before; the others were answered by then, if the transaction is committed. A history without times of
  // operations has only those of transactions.
  std::int64_t commit_sent(std::int32_t t) const;
  std::int64_t commit_answered(std::int32_t t) const;
  std::int64_t first_answered(std::int32_t t) const;
  std::int64_t write_answered(std::int32_t t, std::int32_t key) const;  // the first write of the key
  bool writes(std::int32_t t, std::int32_t key) const { return first_write(t, key) >= 0; }

  // Of the statement of an operation of `t`.
  std::int64_t sent(std::int64_t op, std::int32_t t) const {
    return h_.has_operation_times() ? h_.op_begin[op] : h_.txn_begin[t];
  }
  std::int64_t answered(std::int64_t op, std::int32_t t) const {
    if (!committed(t)) return kTimeUnknownEnd;
    return h_.has_operation_times() ? h_.op_end[op] : h_.txn_end[t];
  }

  // Of what `a` did, and what `b` did: in one session by its clock, whatever that of others says.
  bool before(std::int64_t answered, std::int32_t a, std::int64_t sent, std::int32_t b) const {
    if (answered == kTimeUnknownEnd || sent == kTimeUnknownBegin) return false;
    // mutant: checker-one-clock-for-all
    return answered < sent || (h_.txn_session[a] == h_.txn_session[b] && own(answered, a) < sent);
  }
  std::int64_t own_end(std::int32_t t) const {
    return h_.txn_own_end.empty() ? own(h_.txn_end[t], t) : h_.txn_own_end[t];
  }
  // An answer to `t`, as what its session sends compares with it.
  std::int64_t own(std::int64_t answered, std::int32_t t) const {
    return h_.slack.empty() ? answered : by_own_clock(answered, h_.slack[h_.txn_session[t]]);
  }

 private:
  std::int64_t first_write(std::int32_t t, std::int32_t key) const;
  std::pair<std::size_t, std::size_t> statements(std::int32_t t) const;
  bool committed(std::int32_t t) const {
    return h_.txn_status[t] == static_cast<std::uint8_t>(Status::committed);
  }
  const History& h_;
};

}  // namespace isolang::certify
