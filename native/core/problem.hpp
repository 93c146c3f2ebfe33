// The neutral problem of one history: its known facts and its choices. It is independent of levels
// and encodings.
//
// Transactions keep their numbers from the history. The initial transaction T0 has number n.
#pragma once
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "core/compact.hpp"
#include "core/history.hpp"
#include "core/index.hpp"

namespace isolang {

enum class Inclusion : std::uint8_t {
  // An aborted transaction, a declared initial transaction, or an indeterminate transaction from which no included
  // transaction can read.
  out = 0,
  // A committed transaction, T0, or an indeterminate transaction from which some included transaction must read.
  in = 1,
  // An indeterminate transaction that is included if an included transaction reads from it. Otherwise, without
  // `unread`, it is excluded.
  optional = 2,
};

// Intrinsic anomalies, which are violations under every choice (docs/language.md).
enum class AnomalyKind : std::uint8_t {
  thin_air_read = 0,       // no transaction wrote the value
  aborted_read = 1,        // G1a: only aborted transactions (or failed operations) wrote it
  // G1b: every transaction that wrote the value overwrote it before ending.
  intermediate_read = 2,
  future_read = 3,         // the reading transaction itself writes the value later
  not_own_write = 4,       // a read after an own write of the key returns another value
  not_last_own_write = 5,  // a read returns an own write that a later own write had overwritten
  incompatible_order = 6,  // two list reads of a key, neither of which is a prefix of the other
  duplicate_element = 7,   // a list read shows an append more often than it was made
  split_append = 8,        // G0: the elements of one transaction are not contiguous in a list read
  two_values = 9,          // a read names a version but returns a value other than that version's
  // Stated versions contradict each other. The first operation need not be a read.
  contradicting_versions = 10,
};

struct Anomaly {
  AnomalyKind kind;
  std::int32_t txn;        // the reader, or a writer
  std::int64_t op;         // the read, or the write, of `txn`
  std::int32_t other_txn;  // the transaction that it contradicts (possibly `txn` itself), or -1
  std::int64_t other_op;   // the operation that it contradicts, or -1
};

// A row returned by a predicate read. Key -1 means all rows that it returned.
struct ReturnedRow {
  std::int32_t statement, key;
};

struct Problem {
  std::int32_t n = 0;  // number of transactions in the history; T0 has number n
  std::int32_t sessions = 0;
  std::int32_t keys = 0;
  std::vector<std::uint8_t> inclusion;  // [n+1] Inclusion
  // An indeterminate transaction has incoming so and rt edges and no outgoing ones.
  std::vector<std::uint8_t> unfinished;  // [n+1] 1 for indeterminate transactions
  std::vector<std::int32_t> session;     // [n+1]; -1 for T0
  std::vector<std::int32_t> group;  // [n+1], see History::txn_group; T0 has no group; may be empty
  bool has_time = false;
  std::vector<std::int64_t> begin, end;  // [n+1] real time, see History

  // The moments compared by done, late and locked. All of them are empty if the history has no
  // times, or if build_problem left them out. Each transaction has the moments when its first statement was answered and when COMMIT
  // was sent and answered. Each writer of a key has the moment when its first write of the key was
  // answered.
  std::vector<std::int64_t> first_answer, commit_begin, commit_end;  // [n+1]
  std::vector<std::int64_t> write_answer;                            // parallel to writer_txn
  std::vector<std::int64_t> slack;  // [sessions], see History::slack; may be empty

  // Writers, grouped by key; the first writer of each key is T0. Only transactions whose
  // inclusion is `in` or `optional` occur here.
  std::vector<std::int32_t> key_start;  // [keys+1] into writer_*
  std::vector<std::int32_t> writer_txn;
  Narrow writer_op;  // the operation of the *last* write (for appends: of the last element); -1 for T0

  // External reads of transactions that are in or optional, in transaction order. Two reads of one
  // transaction that return the same value of the same key are merged. SOUND for event graphs:
  // giving both reads the first one's source only removes edges. Reads with unknown results are
  // left out, and so are reads without a candidate by an included transaction (those are
  // anomalies). A read *by an optional* transaction without candidates is kept with an empty list:
  // the transaction cannot be included.
  std::vector<std::int32_t> read_txn, read_key;
  Narrow read_op;  // the first of the merged operations
  // The first operation of the statement that the read belongs to; empty without predicate reads.
  std::vector<std::int64_t> read_statement;
  // 1 if the read is a predicate read that found no matching row for the key; empty if there is no
  // such read.
  std::vector<std::uint8_t> read_predicate;
  bool each_read = false;  // see build_problem
  // The moments when the statement of each read was sent and answered. They are empty unless
  // each_read is set and the history has times.
  std::vector<std::int64_t> read_sent, read_answered;
  Ordinals candidate_start;  // [reads+1] into candidate
  std::vector<std::int32_t> candidate;  // indices into writer_*; never a write of the reader itself
  // The returned rows that build_problem omits, as ascending operations.
  std::vector<std::int64_t> omitted;
  // Operations that were merged into an earlier read, and the number of that read.
  std::vector<std::int64_t> merged_op;
  std::vector<std::int32_t> merged_into;

  // The known pairs of the version order: writer vo_before[i] precedes writer vo_after[i]. There
  // are two kinds. List reads yield the immediate pairs of the longest prefix, and the pairs of its
  // last element with each writer of the key that no read shows. Stated versions yield, for each
  // committed writer that states a version, its pair with the next such writer.
  std::vector<std::int32_t> vo_before, vo_after;  // indices into writer_*
  // The list read that shows the pair; -1 if it comes from stated versions.
  std::vector<std::int64_t> vo_op;

  std::vector<Anomaly> anomalies;  // of included transactions, in transaction order
  // The reason why the problem is incomplete; empty if it is complete. The anomalies of an incomplete problem are
  // correct, but it may lack others.
  std::string refusal;
  // The optional transactions that cannot be included because their own reads contradict each
  // other.
  std::vector<std::int32_t> impossible;    // ascending; includes transactions with an empty read
  std::vector<Anomaly> impossible_reason;  // per impossible transaction, its first contradiction
  std::int64_t ignored_failed_ops = 0, ignored_unknown_reads = 0;

  // Returns true if the first read precedes the second in program order. Reads of one statement
  // have no program order.
  bool reads_first(std::int32_t read, std::int32_t later) const {
    // mutant: ordered-statements
    return read_op[read] < (read_statement.empty() ? read_op[idx(later)] : read_statement[idx(later)]);
  }

  std::int32_t reads() const { return static_cast<std::int32_t>(read_txn.size()); }
  // Returns the positions of the read's candidates in `candidate` and in arrays parallel to it.
  auto candidates(std::int32_t read) const {
    const auto r = idx(read);
    return std::views::iota(idx(candidate_start[r]), idx(candidate_start[r + 1]));
  }
};

// Builds the problem of a history. Throws std::domain_error, with a message for the user, for
// histories that a problem cannot express (a key with both register writes and appends; an
// ambiguous list element).
//
// With `unread`, no indeterminate transaction is out. This is for specifications that a history may
// satisfy only if it includes a transaction that no other transaction reads from. The version order
// then lacks the pairs shown only by list reads of such transactions.
//
// With `each_read`, no reads are merged, for checks that depend on the order of operations inside a
// transaction.
//
// With `rows`, the problem omits each row returned by an implicit predicate read if the row has
// several candidates, all of them certain to be included, unless it is listed in `rows`
// (ascending).
//
// Without `moments`, the moments that only done, late and locked compare are left empty.
Problem build_problem(const History& history, bool unread = false, bool each_read = false,
                      std::optional<std::span<const ReturnedRow>> rows = std::nullopt, bool moments = true);

}  // namespace isolang
