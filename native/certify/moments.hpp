// The transaction and statement times that are compared by relations such as rt and done. They are computed from the
// times stated in the history.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/history.hpp"

namespace isolang::certify {

class Moments {
 public:
  explicit Moments(const History& history) : h_(history) {}

  bool known() const { return h_.has_time || h_.has_operation_times(); }
  // When COMMIT was sent, and when COMMIT or the first statement was answered, as defined in docs/times.md: the request
  // was sent no earlier than the sending time, and its answer had arrived by the answer time. Only committed
  // transactions have answers.
  std::int64_t commit_sent(std::int32_t t) const;
  std::int64_t commit_answered(std::int32_t t) const;
  std::int64_t first_answered(std::int32_t t) const;
  std::int64_t write_answered(std::int32_t t, std::int32_t key) const;  // the answer to the first write of the key
  bool writes(std::int32_t t, std::int32_t key) const { return first_write(t, key) >= 0; }

  // The times when the statement of an operation of `t` was sent and answered.
  std::int64_t sent(std::int64_t op, std::int32_t t) const { return sent_by(t, op); }
  std::int64_t answered(std::int64_t op, std::int32_t t) const { return answered_from(t, op); }
  // The times when each operation of `t` was sent and answered, computed for all operations
  // together.
  struct Span {
    std::int64_t sent, answered;
  };
  void statements_of(std::int32_t t, std::vector<Span>& found) const;

  // Returns whether an answer to `a` arrived before a request of `b` was sent. If both are in the same session, that
  // session's clock decides, whatever the error of other clocks.
  bool before(std::int64_t answered, std::int32_t a, std::int64_t sent, std::int32_t b) const {
    if (answered == kTimeUnknownEnd || sent == kTimeUnknownBegin) return false;
    // mutant: checker-one-clock-for-all
    return answered < sent || (h_.txn_session[a] == h_.txn_session[b] && own(answered, a) < sent);
  }
  std::int64_t own_end(std::int32_t t) const {
    return h_.txn_own_end.empty() ? own(h_.txn_end[t], t) : h_.txn_own_end[t];
  }
  // Returns the time of an answer to `t` by the clock of its own session.
  std::int64_t own(std::int64_t answered, std::int32_t t) const {
    return h_.slack.empty() ? answered : by_own_clock(answered, h_.slack[h_.txn_session[t]]);
  }

 private:
  std::int64_t sent_by(std::int32_t t, std::int64_t place) const;
  std::int64_t answered_from(std::int32_t t, std::int64_t place) const;
  std::int64_t first_write(std::int32_t t, std::int32_t key) const;
  std::pair<std::size_t, std::size_t> statements(std::int32_t t) const;
  bool committed(std::int32_t t) const {
    return h_.txn_status[t] == static_cast<std::uint8_t>(Status::committed);
  }
  const History& h_;
};

}  // namespace isolang::certify
