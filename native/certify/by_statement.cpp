#include "certify/by_statement.hpp"

#include <algorithm>
#include <utility>

#include "certify/moments.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

// Of each writer in each order, the first statement of its transaction behind its last write of the
// key, or -1. `start`: the first operation of each statement.
std::vector<std::int32_t> behind_writes(const History& h, const Choice& c,
                                        const std::vector<std::int64_t>& start) {
  std::vector<std::pair<std::int32_t, std::int64_t>> writes;  // transaction, place in orders
  std::vector<std::int32_t> key_of(c.order.size());
  for (std::size_t key = 0; key + 1 < c.key_start.size(); ++key)
    for (std::int64_t i = c.key_start[key]; i < c.key_start[key + 1]; ++i) {
      writes.emplace_back(c.order[i], i);
      key_of[i] = static_cast<std::int32_t>(key);
    }
  std::ranges::sort(writes);
  std::vector<std::int32_t> behind(c.order.size(), -1);
  std::vector<std::int64_t> last(idx(h.n_keys()), -1);
  std::int32_t owner = -1;
  for (const auto& [t, i] : writes) {
    if (t != owner)
      for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op)
        if (is_write(h.kind(op)) && h.op_ok[op] != 0) last[h.op_key[op]] = op;
    owner = t;
    const auto next = std::ranges::upper_bound(start, last[key_of[i]]);
    if (next != start.end() && *next < h.op_start[t + 1])
      behind[i] = static_cast<std::int32_t>(next - start.begin());
  }
  return behind;
}

}  // namespace

ByStatement by_statement(const History& h, const Choice& c) {
  ByStatement result;
  History& history = result.history;
  result.choice = c;
  Statements& apart = result.choice.apart;
  const Moments moments(h);
  const std::int32_t n = h.transactions();
  apart.first = n;
  history.has_time = h.has_time;
  history.sessions = h.sessions;
  history.txn_session = h.txn_session;
  history.txn_status = h.txn_status;
  history.txn_group = h.txn_group;
  history.labels = h.labels;
  history.levels = h.levels;
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
  std::vector<std::int64_t> start;
  for (std::size_t i = 0; i < c.reads.size(); ++i) {
    const std::int64_t op = c.op[i];
    const std::int32_t scan = h.statement_of(op), owner = c.reads[i].reader;
    const std::int64_t first = scan < 0 ? op : h.statement_start[scan];
    // mutant: checker-statement-of-each-row
    if (first != last) {
      start.push_back(first);
      apart.owner.push_back(owner);
      apart.sent.push_back(moments.sent(op, owner));
      apart.answered.push_back(moments.answered(op, owner));
      history.txn_session.push_back(h.txn_session[owner]);
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
  apart.behind = behind_writes(h, c, start);
  history.op_start.resize(history.txn_session.size() + 1, h.operations());
  if (h.has_groups()) history.txn_group.resize(history.txn_session.size(), kNil);
  return result;
}

}  // namespace isolang::certify
