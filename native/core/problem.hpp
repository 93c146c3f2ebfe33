// The neutral problem of one history: what is known, what must be chosen. It knows no level and no
// encoding.
//
// Transactions keep their numbers from the history; T0, the initial one, is number n.
#pragma once
#include <cstdint>
#include <ranges>
#include <string>
#include <vector>

#include "core/history.hpp"
#include "core/index.hpp"

namespace isolang {

enum class Inclusion : std::uint8_t {
  out = 0,  // aborted, declared initial, or an indeterminate transaction that nothing included can
            // read from
  in = 1,   // committed, T0, or an indeterminate transaction that some included one must read from
  optional = 2,  // an indeterminate transaction: in iff an included one takes it as a source (with
                 // `unread`: then at least)
};

// Intrinsic anomalies: visible without choosing anything (docs/language.md).
enum class AnomalyKind : std::uint8_t {
  thin_air_read = 0,       // no transaction wrote the value
  aborted_read = 1,        // G1a: only aborted transactions (or failed operations) wrote it
  intermediate_read = 2,   // G1b: only values that their own transaction overwrote before it ended
  future_read = 3,         // the transaction itself writes the value, later
  not_own_write = 4,       // a read after an own write of the key returns something else
  not_last_own_write = 5,  // … returns an own write that a later own write had replaced
  incompatible_order = 6,  // two list reads of a key, neither a prefix of the other
  duplicate_element = 7,   // a list read shows one append more often than it was made
  split_append = 8,        // G0: one transaction's elements are not contiguous in a list read
  two_values = 9,          // the read names a version, and gives it another value than that has
  contradicting_versions = 10,  // of what the history states of versions; the first need not be a read
};

struct Anomaly {
  AnomalyKind kind;
  std::int32_t txn;        // the reader, or a writer
  std::int64_t op;         // its read, or write
  std::int32_t other_txn;  // the transaction it contradicts (may be the reader itself), or -1
  std::int64_t other_op;   // the operation it contradicts, or -1
};

struct Problem {
  std::int32_t n = 0;  // transactions of the history; T0 is number n
  std::int32_t sessions = 0;
  std::int32_t keys = 0;
  std::vector<std::uint8_t> inclusion;  // [n+1] Inclusion
  // indeterminate transactions: incoming so and rt edges, no outgoing ones
  std::vector<std::uint8_t> unfinished;  // [n+1] 1 for indeterminate transactions
  std::vector<std::int32_t> session;     // [n+1]; -1 for T0
  std::vector<std::int32_t> group;       // [n+1], see History::txn_group; T0 has none; may be empty
  bool has_time = false;
  std::vector<std::int64_t> begin, end;  // [n+1] real time, see History

  // The moments that done, late and locked compare; all empty if the history has no times. Of each
  // transaction: its first statement was answered, COMMIT was sent and answered; of each writer: its
  // first write of the key was answered.
  std::vector<std::int64_t> first_answer, commit_begin, commit_end;  // [n+1]
  std::vector<std::int64_t> write_answer;                            // as writer_txn
  std::vector<std::int64_t> slack;  // [sessions] of their clocks, see History; empty: none

  // Writers, grouped by key; the first of each key is T0's. Only transactions that are in or
  // optional.
  std::vector<std::int32_t> key_start;  // [keys+1] into writer_*
  std::vector<std::int32_t> writer_txn;
  std::vector<std::int32_t> writer_value;  // atom of the *last* write (append: of the last element)
  std::vector<std::int64_t> writer_op;     // that operation; -1 for T0

  // External reads of transactions that are in or optional, in transaction order; two reads of one
  // transaction that see the same value of the same key are one (SOUND for event graphs: giving
  // both the first one's source only removes edges). Unknown results are not here, nor reads
  // without a candidate by an included transaction (those are anomalies). A read *by an optional*
  // transaction without candidates is kept, empty: that one cannot be in.
  std::vector<std::int32_t> read_txn, read_key;
  std::vector<std::int64_t> read_op;          // the first such operation
  // The first operation of the statement that it is part of; empty without predicate reads.
  std::vector<std::int64_t> read_statement;
  // 1 where a predicate read says that no matching row was there; empty if none does.
  std::vector<std::uint8_t> read_predicate;
  bool each_read = false;  // see build_problem
  // When its statement was sent and answered; empty unless each read is here, and there are times.
  std::vector<std::int64_t> read_sent, read_answered;
  std::vector<std::int64_t> candidate_start;  // [reads+1] into candidate
  std::vector<std::int32_t> candidate;        // indices into writer_*; never the reader's own write
  // Operations that are one read with an earlier one, and which read that is.
  std::vector<std::int64_t> merged_op;
  std::vector<std::int32_t> merged_into;

  // The version order that list reads show: writer vo_before[i] precedes writer vo_after[i];
  // immediate pairs of the longest prefix, then its last element before every writer of the key
  // that no read shows. And the one that stated versions give: each committed writer that states one
  // before the next.
  std::vector<std::int32_t> vo_before, vo_after;  // indices into writer_*
  std::vector<std::int64_t> vo_op;                // the list read that shows it; -1: stated versions do

  std::vector<Anomaly> anomalies;  // of included transactions, in transaction order
  // Where not empty, what the problem lacks: only that its anomalies are there can be believed.
  std::string refusal;
  // Optional transactions whose own reads contradict themselves: they cannot be in.
  std::vector<std::int32_t> impossible;    // ascending; those with an empty read are here too
  std::vector<Anomaly> impossible_reason;  // one for each: its first contradiction
  std::int64_t ignored_failed_ops = 0, ignored_unknown_reads = 0;

  // Program order of two reads of a transaction; there is none inside a statement.
  bool reads_first(std::int32_t read, std::int32_t later) const {
    // mutant: ordered-statements
    return read_op[read] < (read_statement.empty() ? read_op : read_statement)[idx(later)];
  }

  std::int32_t reads() const { return static_cast<std::int32_t>(read_txn.size()); }
  // The numbers of the read's candidates: indices into `candidate` and what runs parallel to it.
  auto candidates(std::int32_t read) const {
    const auto r = idx(read);
    return std::views::iota(idx(candidate_start[r]), idx(candidate_start[r + 1]));
  }
};

// Throws std::domain_error, with a message for the user, for what it cannot express (a key both
// registered and appended to; an ambiguous list element). With `unread`, no indeterminate
// transaction is out: for specifications that one may meet with a transaction that nobody reads
// from, and not without it. What only lists read by such a one show is then not in vo.
//
// With `each_read`, every external read is there, for checks that look at the order of operations in
// a transaction: no two are one.
Problem build_problem(const History& history, bool unread = false, bool each_read = false);

}  // namespace isolang
