#include "certify/by_statement.hpp"

#include "certify/moments.hpp"
#include "core/index.hpp"

namespace isolang::certify {

ByStatement by_statement(const History& h, const Choice& c) {
  ByStatement result;
  History& history = result.history;
  result.choice = c;
  const Moments moments(h);
  const std::int32_t n = h.transactions();
  history.has_time = h.has_time;
  history.sessions = h.sessions;
  history.txn_session = h.txn_session;
  history.txn_status = h.txn_status;
  history.txn_group = h.txn_group;
  history.txn_begin = h.txn_begin;
  history.txn_end = h.txn_end;
  history.slack = h.slack;
  for (std::int32_t t = 0; t < n; ++t) {
    history.commit_begin.push_back(moments.commit_sent(t));
    history.commit_end.push_back(moments.commit_answered(t));
  }
  history.op_start = h.op_start;
  history.op_kind = h.op_kind;
  history.op_ok = h.op_ok;
  history.op_key = h.op_key;
  history.op_begin = h.op_begin;
  history.op_end = h.op_end;
  for (std::int32_t t = 0; t < n && !h.has_operation_times(); ++t)
    for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
      history.op_begin.push_back(h.txn_begin[t]);
      history.op_end.push_back(h.txn_end[t]);
    }
  std::int64_t last = -1;
  for (std::size_t i = 0; i < c.reads.size(); ++i) {
    const std::int64_t op = c.op[i];
    const std::int32_t scan = h.statement_of(op), owner = c.reads[i].reader;
    const std::int64_t first = scan < 0 ? op : h.statement_start[scan];
    // mutant: checker-statement-of-each-row
    if (first != last) {
      history.statement_txn.push_back(owner);
      history.statement_sent.push_back(moments.sent(op, owner));
      history.statement_answered.push_back(moments.answered(op, owner));
      history.txn_session.push_back(h.sessions);
      history.txn_status.push_back(static_cast<std::uint8_t>(Status::aborted));
      history.txn_begin.push_back(kTimeUnknownBegin);
      history.txn_end.push_back(kTimeUnknownEnd);
      history.commit_begin.push_back(kTimeUnknownBegin);
      history.commit_end.push_back(kTimeUnknownEnd);
      result.choice.included.push_back(0);
    }
    last = first;
    result.choice.reads[i].reader = history.transactions() - 1;
    // mutant: checker-own-of-statement
    result.choice.reads[i].own = -1;
  }
  ++history.sessions;
  history.op_start.resize(history.txn_session.size() + 1, h.operations());
  if (h.has_groups()) history.txn_group.resize(history.txn_session.size(), kNil);
  return result;
}

}  // namespace isolang::certify
