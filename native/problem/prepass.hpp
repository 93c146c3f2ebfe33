// The stages of the pre-pass, in the order in which `build_problem` runs them. This header is internal to
// native/problem.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/history.hpp"
#include "core/problem.hpp"

namespace isolang::prepass {

// --- scan.cpp: one walk over the operations ---

// The value of an external read of an empty list (or of nil on a list key), which only T0 explains. It is not an atom,
// because a list may end in nil.
inline constexpr std::int32_t kEmptyList = -1;

struct ListRead {
  std::int32_t txn, key;
  std::int32_t list;      // number of the list, or -1 if it is empty
  std::int32_t writer;    // the writer entry of the reading transaction for the key, or -1
  // index into append_* of the transaction's last own append before the read; -1 if the read is external
  std::int32_t own_last;
  std::int64_t op;
};

// The result of the walk over the operations. All entries are about transactions that may be included (committed or
// indeterminate), in the order of the operations.
struct Scan {
  std::int64_t ignored_failed_ops = 0, ignored_unknown_reads = 0;
  bool any_indeterminate = false, any_source = false;
  std::vector<std::uint8_t> key_is_list;  // [keys]; empty if the history has no lists

  // The last writes: one for each transaction and key that it writes. Without lists, find_candidates takes them away.
  std::vector<std::int32_t> writer_txn, writer_op;

  // The external reads, not yet merged. put_reads takes them away.
  std::vector<std::int32_t> read_txn, read_key, read_op;

  // The lists: all appends, chained by transaction and key, and all list reads with known results.
  std::vector<std::int32_t> first_append,
      last_append;  // [writers] index into append_*; -1 on register keys
  std::vector<std::int32_t> append_writer,
      append_next;  // index into writer_*; index of the transaction's next append to the key, or -1
  std::vector<std::int64_t> append_op;
  std::vector<std::int64_t> dead_append;  // the aborted or failed appends
  std::vector<ListRead> list_reads;

  // Reads of registers after an own write whose value they did not return.
  struct BrokenRead {
    std::int32_t txn, value;
    std::int64_t op, last_own;
  };
  std::vector<BrokenRead> broken_reads;

  bool has_lists() const { return !key_is_list.empty(); }
  bool is_list(std::int32_t key) const { return has_lists() && key_is_list[key] != 0; }
};
Scan scan(const History& h);

// Returns the value of an external read. The value of a read on a list key is the last element or kEmptyList. The value
// of a set-read is the number of its list.
std::int32_t value_seen(const History& h, const Scan& s, std::int64_t op);

// --- set_reads.cpp: which versions a set-read allows ---

class SetRead {
 public:
  SetRead(const History& h, std::int64_t op);
  bool allows(std::int32_t value) const;
  bool allows_initial() const;  // whether the version of T0 is allowed

 private:
  static constexpr std::size_t kFew = 16;
  bool lists(std::int32_t value) const;
  const History& h_;
  std::int64_t op_;
  bool one_of_;
  std::span<const std::int32_t> values_;
  std::vector<std::int32_t> sorted_;  // the values, sorted; empty if there are only a few
};
inline bool is_set_read(const History& h, std::int64_t op) { return is_set_read(h.kind(op)); }

// --- candidates.cpp: writers by key and value; the range of writers that may explain each read ---

inline constexpr std::uint8_t kFromT0 = 1;    // T0 is a candidate
inline constexpr std::uint8_t kRepeated = 2;  // an earlier read of the same transaction saw the same version
inline constexpr std::uint8_t kOwn = 4;  // one of the writers is the reader itself, which is not a candidate
inline constexpr std::uint8_t kListed = 8;  // the read is a set-read, and low … high-1 are positions in `listed`

struct Candidates {
  // The writers, grouped by key with T0 first, then by value in order of first appearance, then in transaction order.
  std::vector<std::int32_t> key_start;   // [keys+1] the start of each key
  std::vector<std::int32_t> entry;       // index into Scan::writer_*, or -1 for T0; empty without lists
  std::vector<std::int32_t> txn, value;  // the number of transactions and the initial value for T0
  std::vector<std::int32_t> op;          // -1 for T0
  // The writers low … high-1 that may explain a read, for each entry of Scan::read_*.
  struct Range {
    std::int32_t low = 0, high = 0;
    std::uint8_t flags = 0;
  };
  std::vector<Range> range;
  std::vector<std::int32_t> listed;  // the writers that set-reads may see
  // A repeated read and the first read of the same version by its transaction, as entries of Scan::read_*.
  struct Repeated {
    std::int32_t read, first;
  };
  std::vector<Repeated> repeated;
  std::int32_t writer(const Range& r, std::int32_t i) const {
    return (r.flags & kListed) != 0 ? listed[i] : i;
  }
};
Candidates find_candidates(const History& h, Scan& s);

// --- elements.cpp: who appended a list element ---

struct Element {
  std::int32_t key = -1, value = -1;
  std::int32_t append = -1;  // the first append by a transaction that may be included
  std::int32_t second =
      -1;  // the first append by another such transaction; readers cannot tell the two apart
  std::int32_t txn = -1, second_txn = -1;  // the transactions of these two appends
  std::int32_t count = 0, second_count = 0;  // how often each of the two transactions appended the element
  bool third = false;                        // whether a third transaction appended it, too
  std::int64_t dead_op = -1;                 // the first append that was aborted or failed
};

// The elements. Each key has a hash table of its own, so that the elements of a list are close to each other in
// memory, however long the history is.
class Elements {
 public:
  Elements(const History& h, const Scan& s);
  // The elements of `from` for which `wanted` is true.
  Elements(const Elements& from, const std::function<bool(const Element&)>& wanted);
  std::int32_t find(std::int32_t key, std::int32_t value) const;  // index into `all`, or -1
  bool any(std::int32_t key) const { return start_[key] != start_[key + 1]; }
  std::vector<Element> all;  // and unused entries, if a key has an element twice
  std::vector<std::int32_t> of_append;  // for each append: index into `all`

 private:
  void make_room(const std::vector<std::int32_t>& elements);  // at most this many for each key
  std::int32_t find_or_add(std::int32_t key, std::int32_t value);
  std::vector<std::int32_t> slots_;
  std::vector<std::size_t> start_;  // per key: the first of its slots; their number is a power of two, or 0
  std::vector<std::int32_t> next_;  // per key: the index of its next element in `all`
};

struct OwnTail {
  std::int64_t length = 0;  // how many elements at the end of the list were appended by the reading transaction
  std::int32_t last = -1;   // the last of these appends
  bool complete = true;     // whether these are all appends that the transaction had made before the read
};
OwnTail own_tail(const History& h, const Scan& s, const ListRead& l);

// --- inclusion.cpp ---

// Returns the Inclusion of each transaction and T0 ([n+1]). It is the least fixpoint of two rules: a transaction is
// optional if it is some candidate of an included or possible reader, and in if it is the only candidate of an included
// reader. With `unread`, an indeterminate transaction not reached by any reader is optional instead of out.
std::vector<std::uint8_t> find_inclusion(const History& h, const Scan& s, const Candidates& c,
                                         const Elements& elements, bool unread);

// A part of the history that `Problem` cannot express, unless its (optional) reader turns out to be
// impossible.
struct Refusal {
  std::int32_t txn;
  bool conditional;  // the order holds only if `txn` is included, which `Problem` cannot express
  std::string message;
};

// --- named_versions.cpp: reads that name a version but return another value ---

struct NamedVersions {
  std::vector<Anomaly> anomalies;  // of transactions that are in or optional
  std::vector<Refusal> refusals;
};
NamedVersions compare_named_versions(const History& h, const Scan& s, const Candidates& c,
                                     const std::vector<std::uint8_t>& inclusion);

// --- versions.cpp: the consequences of stated versions, apart from the sources of reads ---

// Returns where the versions stated by committed transactions contradict each other or the values.
std::vector<Anomaly> contradicting_versions(const History& h);

// Two entries of Candidates that are neighbours in the stated order.
struct StatedOrder {
  std::int32_t before, after;
};
std::vector<StatedOrder> order_by_versions(const History& h, const Candidates& c);

// --- lists.cpp: the order shown by list reads, and whatever contradicts it ---

struct ListOrder {
  // Of the lists of a key read by included transactions, the one with the most writers. Its writers are Scan writer
  // entries, in list order.
  struct Shown {
    std::int32_t key;
    std::int64_t op;
    std::int64_t start, end;  // its range in `writer`
  };
  std::vector<Shown> shown;
  std::vector<std::int32_t> writer;
  std::vector<Anomaly> anomalies;  // of transactions that are in or optional
  std::vector<Refusal> refusals;
};
ListOrder order_lists(const History& h, const Scan& s, const Elements& elements,
                      const std::vector<std::uint8_t>& inclusion);

// --- classify.cpp: the reason why a read has no candidate, and words for messages ---

// An external read without candidates.
struct UnexplainedRead {
  std::int32_t txn, key, value;
  std::int64_t op;
};
// Returns the anomalies of `reads` (in the order of the operations) and of Scan::broken_reads.
std::vector<Anomaly> classify_reads(const History& h, const Scan& s, const std::vector<UnexplainedRead>& reads);
std::int32_t txn_of_op(const History& h, std::int64_t op);
std::string key_text(const History& h, std::int32_t key);
std::string value_text(const History& h, std::int32_t value);
std::string txn_text(const History& h, std::int32_t txn);  // "T914"
std::string op_text(const History& h, std::int64_t op);    // "T914 (at 12)"

}  // namespace isolang::prepass
