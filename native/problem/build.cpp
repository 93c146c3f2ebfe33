// `build_problem` runs the stages of the pre-pass and copies their results into the neutral problem. Writers and reads
// are renumbered here, because excluded writers and reads without a candidate are left out.
#include <algorithm>
#include <limits>
#include <ranges>
#include <span>
#include <stdexcept>

#include "core/implicit.hpp"
#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang {
namespace {

constexpr auto kIn = static_cast<std::uint8_t>(Inclusion::in);
constexpr auto kOptional = static_cast<std::uint8_t>(Inclusion::optional);

// Returns a column with one more entry, for T0.
template <typename T>
std::vector<T> with_last(const auto& column, T last) {
  std::vector<T> longer(column.size() + 1, last);
  for (std::size_t i = 0; i < column.size(); ++i) longer[i] = column[i];
  return longer;
}

void put_transactions(const History& h, Problem& p) {
  p.n = h.transactions();
  p.sessions = h.sessions;
  p.keys = h.n_keys();
  p.session = with_last<std::int32_t>(h.txn_session, -1);
  if (h.has_groups()) p.group = with_last(h.txn_group, kNil);
  p.has_time = h.has_time;
  p.slack = h.slack;
  p.begin = with_last(h.txn_begin, kTimeUnknownBegin);
  p.end = with_last(h.txn_end, kTimeUnknownBegin);  // T0 ends before any transaction begins
  p.unfinished.assign(idx(p.n) + 1, 0);
  for (std::int32_t t = 0; t < p.n; ++t)
    if (h.txn_status[t] == static_cast<std::uint8_t>(Status::indeterminate)) {
      // mutant: indeterminate-finished
      p.unfinished[t] = 1;
      // mutant: indeterminate-ends
      p.end[t] = kTimeUnknownEnd;  // the transaction may take effect at any later time
    }
}

// For each operation, the latest known time before it was sent, and the earliest known time by which it was answered.
// Both are empty if no operation has a time.
struct OperationMoments {
  std::vector<std::int64_t> sent, answered;
};

// Sets the times of the transaction `t` and of its operations. Its predicate reads are those from `statement` on. SOUND
// BECAUSE operations run one after another, in their order, between begin and end, and COMMIT is last. So an operation
// without a stated time was sent no earlier than everything before it, and answered no later than everything after it.
// An indeterminate transaction precedes nothing: it may be out, and then it is last in every order.
void put_moments_of(const History& h, std::int32_t t, std::size_t& statement, OperationMoments& of, Problem& p) {
  const bool finished = p.unfinished[t] == 0;
  const auto earlier = [&](std::int64_t& answered, std::int64_t time) {
    // mutant: indeterminate-answers
    if (finished) answered = std::min(answered, time);
  };
  // A predicate read without rows has no operations, so it is placed just before the next
  // operation.
  const auto begins_by = [&](std::size_t s, std::int64_t op) {
    return s < h.statement_txn.size() && h.statement_txn[s] == t && h.statement_start[s] <= op;
  };
  const std::int64_t first = h.op_start[t], last = h.op_start[t + 1];
  const std::size_t first_statement = statement;
  // mutant: begin-says-nothing
  std::int64_t sent = h.two_clocks ? kTimeUnknownBegin : p.begin[t];
  for (std::int64_t op = first; op < last; ++op) {
    // mutant: silent-statement-sent
    for (; begins_by(statement, op); ++statement) sent = std::max(sent, h.statement_sent[statement]);
    // mutant: operation-without-time-sent
    sent = of.sent[idx(op)] = std::max(sent, h.op_begin[idx(op)]);
  }
  // mutant: silent-statement-last
  for (; begins_by(statement, last); ++statement) sent = std::max(sent, h.statement_sent[statement]);
  // mutant: commit-before-operations
  p.commit_begin[t] = std::max(sent, h.commit_begin[t]);

  std::int64_t answered = kTimeUnknownEnd;
  earlier(answered, h.commit_end[t]);
  // mutant: end-says-nothing
  if (!h.two_clocks) earlier(answered, p.end[t]);
  p.commit_end[t] = answered;
  std::size_t behind = statement;
  for (std::int64_t op = last - 1; op >= first; --op) {
    for (; behind > first_statement && h.statement_start[behind - 1] > op; --behind)
      // mutant: silent-statement-answered
      earlier(answered, h.statement_answered[behind - 1]);
    // mutant: operation-without-time-answered
    earlier(answered, h.op_end[idx(op)]);
    of.answered[idx(op)] = answered;
  }
  // mutant: silent-statement-first
  for (; behind > first_statement; --behind) earlier(answered, h.statement_answered[behind - 1]);
  p.first_answer[t] = answered;
}

OperationMoments put_moments(const History& h, Problem& p) {
  OperationMoments of;
  if (!h.has_time && !h.has_operation_times()) return of;
  const auto n = idx(p.n);
  p.first_answer.assign(n + 1, kTimeUnknownEnd);
  p.commit_begin.assign(n + 1, kTimeUnknownBegin);
  p.commit_end.assign(n + 1, kTimeUnknownEnd);
  if (h.has_operation_times()) {
    of.sent.resize(h.op_kind.size());
    of.answered.resize(h.op_kind.size());
    std::size_t statement = 0;
    for (std::int32_t t = 0; t < p.n; ++t) put_moments_of(h, t, statement, of, p);
  } else {
    for (std::size_t t = 0; t < n; ++t) {
      // mutant: no-moments-of-transactions
      p.first_answer[t] = p.commit_end[t] = p.end[t];
      p.commit_begin[t] = h.txn_begin[t];
    }
  }
  p.write_answer.assign(p.writer_txn.size(), kTimeUnknownEnd);
  for (std::int32_t key = 0; key < p.keys; ++key)
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w) {
      const std::int32_t t = p.writer_txn[w];
      // mutant: indeterminate-locks
      if (t == p.n || p.unfinished[t] != 0) continue;
      if (of.answered.empty()) {
        p.write_answer[w] = p.end[t];
        continue;
      }
      for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
        // mutant: failed-write-locks
        if (h.op_key[op] != key || h.op_ok[op] == 0 || !is_write(h.kind(op))) continue;
        p.write_answer[w] = of.answered[idx(op)];
        break;
      }
    }
  return of;
}

// Sets the times of reads. Operations of an indeterminate transaction precede nothing.
void put_times_of_reads(const OperationMoments& of, Problem& p) {
  if (p.commit_begin.empty()) return;
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t t = p.read_txn[r];
    const auto op = idx(p.read_op[r]);
    p.read_sent.push_back(of.sent.empty() ? p.begin[t] : of.sent[op]);
    p.read_answered.push_back(of.answered.empty() ? p.end[t] : of.answered[op]);
  }
}

// Makes the writers of `c` the problem's writers, except those of excluded transactions. Returns for each position in
// `c` its writer or -1. The result is empty if no writer was left out.
std::vector<std::int32_t> put_writers(const prepass::Scan& s, prepass::Candidates& c, Problem& p) {
  std::vector<std::int32_t> writer_of;
  if (s.any_indeterminate) {
    writer_of.assign(c.txn.size(), -1);
    std::size_t kept = 0;
    for (std::size_t key = 0; key < idx(p.keys); ++key) {
      p.key_start.push_back(static_cast<std::int32_t>(kept));
      for (std::size_t e = idx(c.key_start[key]); e < idx(c.key_start[key + 1]); ++e) {
        if (p.inclusion[c.txn[e]] == 0) continue;
        writer_of[e] = static_cast<std::int32_t>(kept);
        p.writer_txn.push_back(c.txn[e]);
        c.op[kept++] = c.op[e];  // moves to the place of an earlier writer, or stays where it is
      }
    }
    c.op.resize(kept);
    p.key_start.push_back(static_cast<std::int32_t>(kept));
  } else {
    p.key_start = c.key_start;
    p.writer_txn = std::move(c.txn);
  }
  p.writer_op = Narrow(std::move(c.op));
  c.value = {};
  return writer_of;
}

std::int32_t renumbered(const std::vector<std::int32_t>& writer_of, std::int32_t e) {
  return writer_of.empty() ? e : writer_of[e];
}

// Returns for each operation whether put_reads may omit it.
std::vector<std::uint8_t> rows_to_omit(const History& h, const prepass::Scan& s, const prepass::Candidates& c,
                                            std::span<const ReturnedRow> kept) {
  std::vector<std::uint8_t> open(h.op_kind.size(), 0);
  auto next = kept.begin();
  for (std::size_t i = 0; i < h.statement_start.size(); ++i) {
    for (; next != kept.end() && idx(next->statement) < i; ++next) {
    }
    const auto first = next;
    while (next != kept.end() && idx(next->statement) == i) ++next;
    const auto rows = std::views::iota(h.statement_start[i], h.statement_end[i]);
    const auto failed = [&](std::int64_t op) { return h.op_ok[idx(op)] == 0; };
    if (h.statement_known[i] != kImplicit || std::ranges::any_of(rows, failed) || (first != next && first->key < 0)) continue;
    for (const std::int64_t op : rows)
      open[idx(op)] = h.kind(op) == OpKind::read && h.op_source[idx(op)] == kSourceByValue && h.op_value[idx(op)] != kNil &&
                      !std::ranges::binary_search(first, next, h.op_key[idx(op)], {}, &ReturnedRow::key);
  }
  // Two reads of the same version by one transaction share their source.
  for (const auto& [read, before] : c.repeated) open[idx(s.read_op[read])] = open[idx(s.read_op[before])] = 0;
  return open;
}

// Makes the reads of `s` the problem's reads, except those that it omits, and adds their candidates. Returns the reads
// of register keys that have none.
std::vector<prepass::UnexplainedRead> put_reads(const History& h, prepass::Scan& s, const prepass::Candidates& c,
                                    const std::vector<std::int32_t>& writer_of, bool each,
                                    const std::vector<std::uint8_t>& open, Problem& p) {
  std::vector<prepass::UnexplainedRead> unexplained;
  const std::size_t reads = s.read_op.size();
  std::vector<std::int32_t> number_of;  // entry of Scan::read_* -> read, or -1
  if (!each && !c.repeated.empty()) number_of.assign(reads, -1);
  const auto counts = [&](std::size_t r) {
    const bool repeated = (c.range[r].flags & prepass::kRepeated) != 0;
    return p.inclusion[s.read_txn[r]] != 0 && (each || !repeated);
  };
  const auto is_omitted = [&](std::size_t r) {
    if (open.empty() || open[idx(s.read_op[r])] == 0 || p.inclusion[s.read_txn[r]] != kIn) return false;
    const prepass::Candidates::Range& range = c.range[r];
    const int others = ((range.flags & prepass::kFromT0) != 0 ? 1 : 0) - ((range.flags & prepass::kOwn) != 0 ? 1 : 0);
    if (range.high - range.low + others < 2) return false;
    if (writer_of.empty()) return true;
    return std::ranges::all_of(std::views::iota(range.low, range.high), [&](std::int32_t e) {
      return p.inclusion[c.txn[c.writer(range, e)]] == kIn;
    });
  };
  std::int64_t total = 0;
  for (std::size_t r = 0; r < reads; ++r)
    if (counts(r) && !is_omitted(r))
      total +=
          c.range[r].high - c.range[r].low + ((c.range[r].flags & prepass::kFromT0) != 0 ? 1 : 0);
  if (total > std::numeric_limits<std::uint32_t>::max())
    throw std::domain_error("reads with repeated values have " + std::to_string(total) +
                            " candidate sources, expected at most 4294967295");
  p.candidate_start.push_back(0);
  p.candidate.reserve(idx(total));
  std::vector<std::int64_t> repeated_op;
  if (!number_of.empty())
    for (const auto& [read, first] : c.repeated) repeated_op.push_back(s.read_op[read]);
  std::size_t kept = 0;
  for (std::size_t r = 0; r < reads; ++r) {
    if (!counts(r)) continue;
    const std::int32_t t = s.read_txn[r], key = s.read_key[r];
    const std::int32_t op = s.read_op[r];
    const prepass::Candidates::Range range = c.range[r];
    if (is_omitted(r)) {
      p.omitted.push_back(op);
      continue;
    }
    const std::size_t before = p.candidate.size();
    if ((range.flags & prepass::kFromT0) != 0) p.candidate.push_back(renumbered(writer_of, c.key_start[key]));
    for (std::int32_t e = range.low; e < range.high; ++e) {
      const std::int32_t writer = renumbered(writer_of, c.writer(range, e));
      if ((range.flags & prepass::kOwn) == 0 || p.writer_txn[writer] != t)
        p.candidate.push_back(writer);
    }
    if (p.candidate.size() == before) {
      // If the first read has no candidate, its repetitions have none either.
      if (!s.is_list(key) && (range.flags & prepass::kRepeated) == 0)
        unexplained.push_back({t, key, value_seen(h, s, op), op});
      if (p.inclusion[t] == kIn) continue;
    }
    if (!number_of.empty()) number_of[r] = static_cast<std::int32_t>(kept);
    // Each kept read moves to the place of an earlier one, or stays where it is.
    s.read_txn[kept] = t;
    s.read_key[kept] = key;
    s.read_op[kept++] = op;
    p.candidate_start.push_back(static_cast<std::int64_t>(p.candidate.size()));
  }
  s.read_txn.resize(kept);
  s.read_key.resize(kept);
  s.read_op.resize(kept);
  p.read_txn = std::move(s.read_txn);
  p.read_key = std::move(s.read_key);
  p.read_op = Narrow(std::move(s.read_op));
  for (std::size_t i = 0; i < repeated_op.size(); ++i)
    if (const std::int32_t into = number_of[c.repeated[i].first]; into >= 0) {
      p.merged_op.push_back(repeated_op[i]);
      p.merged_into.push_back(into);
    }
  return unexplained;
}

// Finds the statement of each read. Reads and statements are both in the order of the operations.
void put_statements(const History& h, Problem& p) {
  const std::size_t statements = h.statement_start.size();
  if (statements == 0) return;
  bool any = false;
  std::size_t next = 0;  // the first statement that has not ended yet
  for (const std::int64_t op : p.read_op) {
    while (next < statements && h.statement_end[next] <= op) ++next;
    const bool inside = next < statements && h.statement_start[next] <= op;
    const bool predicate = inside && is_set_read(h.kind(op));
    p.read_statement.push_back(inside ? h.statement_start[next] : op);
    p.read_predicate.push_back(predicate ? 1 : 0);
    any |= predicate;
  }
  if (!any) p.read_predicate.clear();
}

void put_version_order(const prepass::Scan& s, const prepass::Candidates& c,
                       const prepass::ListOrder& lists,
                       const std::vector<prepass::StatedOrder>& stated,
                       const std::vector<std::int32_t>& writer_of, Problem& p) {
  for (const auto& [before, after] : stated) {
    // mutant: stated-order-forgotten
    p.vo_before.push_back(renumbered(writer_of, before));
    p.vo_after.push_back(renumbered(writer_of, after));
    p.vo_op.push_back(-1);
  }
  if (lists.shown.empty()) return;
  std::vector<std::int32_t> entry_of(s.writer_txn.size(), -1);
  for (std::size_t e = 0; e < c.entry.size(); ++e)
    if (c.entry[e] >= 0) entry_of[c.entry[e]] = static_cast<std::int32_t>(e);
  std::vector<std::uint8_t> is_shown(s.writer_txn.size(), 0);
  const auto order = [&](std::int32_t before, std::int32_t after, std::int64_t op) {
    p.vo_before.push_back(before);
    p.vo_after.push_back(after);
    p.vo_op.push_back(op);
  };
  for (const auto& shown : lists.shown) {
    std::int32_t last = -1;
    for (std::int64_t i = shown.start; i < shown.end; ++i) {
      const std::int32_t w = lists.writer[i];
      const std::int32_t writer = renumbered(writer_of, entry_of[w]);
      is_shown[w] = 1;
      // mutant: inner-order-forgotten
      if (last >= 0) order(last, writer, shown.op);
      last = writer;
    }
    // Writers that no read shows made their appends after all elements of the longest list.
    for (std::int32_t e = c.key_start[shown.key]; e < c.key_start[idx(shown.key) + 1]; ++e)
      if (c.entry[e] >= 0 && is_shown[c.entry[e]] == 0 && renumbered(writer_of, e) >= 0)
        // mutant: unshown-unplaced
        order(last, renumbered(writer_of, e), shown.op);
  }
}

void put_anomalies(std::vector<Anomaly> found, Problem& p) {
  // An anomaly by which the history contradicts itself is more informative than its consequences, so it comes first.
  const auto rank = [](AnomalyKind kind) {
    return kind == AnomalyKind::contradicting_versions ? -1 : static_cast<int>(kind);
  };
  std::stable_sort(found.begin(), found.end(), [&](const Anomaly& a, const Anomaly& b) {
    return a.op != b.op ? a.op < b.op : rank(a.kind) < rank(b.kind);
  });
  std::int64_t contradicting = -1;
  for (const Anomaly& a : found) {
    if (a.kind == AnomalyKind::contradicting_versions) contradicting = a.op;
    if (a.op == contradicting &&
        (a.kind == AnomalyKind::two_values || a.kind == AnomalyKind::thin_air_read))
      continue;
    // mutant: optional-anomalies
    if (p.inclusion[a.txn] == kIn) {
      p.anomalies.push_back(a);
    } else if (p.inclusion[a.txn] == kOptional &&
               (p.impossible.empty() || p.impossible.back() != a.txn)) {
      p.impossible.push_back(a.txn);
      p.impossible_reason.push_back(a);
    }
  }
}

}  // namespace

Problem build_problem(const History& h, bool unread, bool each_read, std::optional<std::span<const ReturnedRow>> rows,
                      bool with_moments) {
  h.validate();
  if (h.operations() > std::numeric_limits<std::int32_t>::max())
    throw std::domain_error("the history has " + std::to_string(h.operations()) +
                            " operations, expected at most 2147483647");
  prepass::Scan s = prepass::scan(h);
  prepass::Candidates c = prepass::find_candidates(h, s);
  const std::vector<prepass::StatedOrder> stated = prepass::order_by_versions(h, c);
  const prepass::Elements elements(h, s);
  Problem p;
  put_transactions(h, p);
  p.inclusion = prepass::find_inclusion(h, s, c, elements, unread);
  p.ignored_failed_ops = s.ignored_failed_ops;
  p.ignored_unknown_reads = s.ignored_unknown_reads;
  const std::vector<std::int32_t> writer_of = put_writers(s, c, p);
  const OperationMoments moments = with_moments ? put_moments(h, p) : OperationMoments{};
  const std::vector<std::uint8_t> open = rows ? rows_to_omit(h, s, c, *rows) : std::vector<std::uint8_t>{};
  const prepass::NamedVersions named = prepass::compare_named_versions(h, s, c, p.inclusion);
  const auto unexplained = put_reads(h, s, c, writer_of, each_read, open, p);
  p.each_read = each_read;
  if (each_read) put_times_of_reads(moments, p);
  const prepass::ListOrder lists = prepass::order_lists(h, s, elements, p.inclusion);
  put_statements(h, p);
  put_version_order(s, c, lists, stated, writer_of, p);
  std::vector<Anomaly> found = prepass::classify_reads(h, s, unexplained);
  found.insert(found.end(), lists.anomalies.begin(), lists.anomalies.end());
  found.insert(found.end(), named.anomalies.begin(), named.anomalies.end());
  const std::vector<Anomaly> contradicting = prepass::contradicting_versions(h);
  found.insert(found.end(), contradicting.begin(), contradicting.end());
  put_anomalies(std::move(found), p);
  std::vector<prepass::Refusal> refusals = lists.refusals;
  refusals.insert(refusals.end(), named.refusals.begin(), named.refusals.end());
  for (const auto& refusal : refusals)
    if (!(unread && refusal.conditional) &&
        !std::binary_search(p.impossible.begin(), p.impossible.end(), refusal.txn)) {
      if (p.anomalies.empty()) throw std::domain_error(refusal.message);
      p.refusal = refusal.message;
      break;
    }
  return p;
}

}  // namespace isolang
