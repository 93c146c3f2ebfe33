// The columnar history: everything that a file states, in flat arrays.
//
// Every reader fills one of these. The pre-pass, the problem builder and the certificate checkers
// read it. Transactions are numbered 0 … n-1, and those of one session are in session order.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/compact.hpp"
#include "core/index.hpp"

namespace isolang {

enum class Status : std::uint8_t {
  committed = 0,
  aborted = 1,  // certainly had no effect
  indeterminate = 2,    // the outcome is unknown (Jepsen's :info)
  initial = 3,  // the initial transaction T0 itself, declared by the format or by the user
};

enum class OpKind : std::uint8_t {
  read = 0,       // op_value is an atom: nil, or the value of the register
  write = 1,      // op_value is an atom
  append = 2,     // op_value is the atom appended to a list
  read_list = 3,  // op_value is the number of a list
  // Set-reads: op_value is the number of a list of atoms. They state only whether the version seen
  // by the transaction is in that list. The atom nil in the list stands for the initial state.
  read_one_of = 4,   // the version is one of the atoms
  read_none_of = 5,  // the version is none of the atoms
};
inline constexpr std::uint8_t kOpKinds = 6;

inline bool is_write(OpKind kind) { return kind == OpKind::write || kind == OpKind::append; }
inline bool is_set_read(OpKind kind) {
  return kind == OpKind::read_one_of || kind == OpKind::read_none_of;
}
// Returns true if op_value is the number of a list, unless it is kUnknownValue.
inline bool holds_list(OpKind kind) { return kind == OpKind::read_list || is_set_read(kind); }

// Returns true if an operation of this kind may state its version. Lists need no stated version,
// because their elements already identify it.
inline bool states_version(OpKind kind) { return kind == OpKind::read || kind == OpKind::write; }

inline constexpr std::int32_t kNil = 0;  // the atom nil
inline constexpr std::int32_t kUnknownValue =
    -1;  // the unknown result of a read, which any source explains
inline constexpr std::int32_t kNoAtom = -2;
inline constexpr std::int32_t kNoVersion = -1;  // value of op_version if no version is stated
// The text of the atom written by a delete; EDN has no syntax for it.
inline constexpr std::string_view kDeletedText = "#deleted";
inline constexpr std::int32_t kJudged =
    -1;  // value of statement_predicate: the recorder has stated which rows match
inline constexpr std::uint8_t kPart = 2;
// Value of op_source: find the source by the value.
inline constexpr std::int64_t kSourceByValue = -1;
// Value of op_source: according to the format, the read is from T0.
inline constexpr std::int64_t kSourceInitial = -2;
inline constexpr std::int64_t kSourceMissing =
    -3;  // value of op_source: the format names a write that does not exist
inline constexpr std::int64_t kTimeUnknownBegin = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kTimeUnknownEnd = std::numeric_limits<std::int64_t>::max();

enum class AtomKind : std::uint8_t {
  nil = 0,
  integer = 1,  // `number` is the integer
  natural = 2,  // an unsigned integer >= 2^63; `number` is its bit pattern
  string = 3,   // `number` is an index into the text pool
  keyword = 4,  // EDN keyword, text without the colon
  other = 5,    // any other scalar, as canonical text (true, 1.5, [1 2] …)
};

// A pool of typed scalars, each stored once: 1, "1" and :1 are different atoms. Atom 0 is nil.
class Atoms {
 public:
  Atoms();
  std::int32_t nil() const { return kNil; }
  std::int32_t intern_integer(std::int64_t number);
  std::int32_t intern_natural(std::uint64_t number);  // becomes an integer if it fits
  std::int32_t intern_text(AtomKind kind, std::string_view text);
  std::int32_t intern_from(const Atoms& other, std::int32_t atom);
  std::int32_t find_integer(std::int64_t number) const;  // -1 if absent
  std::int32_t size() const { return static_cast<std::int32_t>(kind_.size()); }
  AtomKind kind(std::int32_t atom) const { return kind_[atom]; }
  std::int64_t number(std::int32_t atom) const { return number_[atom]; }
  std::string_view text(std::int32_t atom) const;  // for a string, keyword or other atom
  // Returns the name of the atom as specifications write it: its text (a keyword without the colon) or its number.
  std::string name(std::int32_t atom) const;

 private:
  std::int32_t add(AtomKind kind, std::int64_t number);
  std::size_t slot(AtomKind kind, std::int64_t number) const;
  std::int32_t intern_number(AtomKind kind, std::int64_t number);
  std::vector<AtomKind> kind_;
  std::vector<std::int64_t> number_;
  std::vector<std::string> texts_;
  // A hash table with open addressing for integers and naturals, because the inner loops of the
  // readers look up an atom for each operation.
  std::vector<std::int32_t> slots_;
  std::size_t numbers_ = 0;
  std::unordered_map<std::string, std::int32_t> by_text_;
};

// The names of transactions. Each transaction has a set of names; sets are numbered, and set 0 is
// empty.
class Names {
 public:
  // Per transaction, the number of its set; empty if no transaction has a name.
  std::vector<std::int32_t> set_of;
  std::vector<std::int64_t> set_start{0, 0};   // [sets + 1] into set_names
  std::vector<std::int32_t> set_names;         // the names of each set, ascending
  std::vector<std::string> texts;              // per name

  bool any() const { return !set_of.empty(); }
  std::int32_t sets() const { return static_cast<std::int32_t>(set_start.size()) - 1; }
  std::span<const std::int32_t> names_of(std::int32_t set) const {
    const auto first = set_start[idx(set)], last = set_start[idx(set) + 1];
    return std::span(set_names).subspan(idx(first), idx(last - first));
  }
  // Returns the number of a name and adds the name if it is new.
  std::int32_t number_of(std::string_view text);
  std::int32_t set_of_names(std::vector<std::int32_t> names);  // returns the number of the set
  // Adds a set of `other` and returns its number here.
  std::int32_t set_from(const Names& other, std::int32_t set);
  // Assigns a set of names to an existing transaction. Later transactions must not have names yet.
  void assign_set(std::int32_t txn, std::int32_t set);
  void validate(std::size_t transactions) const;
  void renumber();  // rebuilds the look-up tables after the columns have been filled directly

 private:
  std::unordered_map<std::string, std::int32_t> number_;
  std::map<std::vector<std::int32_t>, std::int32_t> set_number_;
};

// Returns an end time minus the `slack` of its session, to compare it with a widened begin of the
// same session. Both times come from the same clock, so its error cancels out.
inline std::int64_t by_own_clock(std::int64_t end, std::int64_t slack) {
  if (end == kTimeUnknownEnd) return end;
  return __builtin_sub_overflow(end, slack, &end) ? kTimeUnknownBegin : end;
}

struct History {
  // One entry for each transaction.
  std::vector<std::int32_t> txn_session;  // session number from 0, in order of first appearance
  std::vector<std::uint8_t> txn_status;   // Status
  Mostly<std::int64_t, kTimeUnknownBegin> txn_begin;  // real time in any unit; kTimeUnknownBegin if unknown
  Mostly<std::int64_t, kTimeUnknownEnd> txn_end;      // kTimeUnknownEnd if unknown or unfinished
  // The transaction's number in the file or, if the file has none, its ordinal, from 1. It is shown
  // as T<number>.
  std::vector<std::int64_t> txn_number;
  Positions txn_position;           // line (text formats, from 1) or byte offset (binary)
  Mostly<std::int32_t, 0> txn_file;  // index into the history's list of files
  // The transaction's group, an atom of `groups`, or kNil for no group. Empty if no transaction has
  // a group.
  std::vector<std::int32_t> txn_group;
  Names labels;  // names given to transactions by the author of the history
  Names levels;  // the level requested by each transaction: one name, or none
  std::vector<std::int64_t> op_start{
      0};  // n + 1: the operations of t are op_start[t] … op_start[t+1]-1, in program order
  // One entry for each operation.
  std::vector<std::uint8_t> op_kind;  // OpKind
  // 0: the operation failed inside its transaction; it is ignored, but kept
  Mostly<std::uint8_t, 1> op_ok;
  std::vector<std::int32_t> op_key;    // key number, see key_atom
  std::vector<std::int32_t> op_value;  // atom of `values`, number of a list, or kUnknownValue
  // kSourceByValue, kSourceInitial, kSourceMissing, or the number of a write
  Mostly<std::int64_t, kSourceByValue> op_source;
  Positions op_position;  // line or byte offset
  // The version that an operation on a register claims to have read or written: an atom of
  // `versions`, or kNoVersion. Empty if no operation states a version. `name_sources` turns these
  // versions into sources.
  std::vector<std::int32_t> op_version;
  // Versions are integers that ascend in the version order of each key.
  bool versions_ordered = false;
  // The moments when each operation and each COMMIT was sent and answered, all by the same clock.
  // All four are empty if no such time is known. Predicate reads have separate times, because they
  // may have no operations. Their operations have the same times.
  std::vector<std::int64_t> op_begin, op_end, commit_begin, commit_end;
  std::vector<std::int64_t> statement_sent, statement_answered;
  bool two_clocks = false;  // whether that clock differs from the one of txn_begin and txn_end
  // For each session, the sum of the amounts by which its begins and its ends were widened; empty
  // if no time was widened. A session has a single clock, so a comparison of two of its moments
  // subtracts this sum again.
  std::vector<std::int64_t> slack;
  // The moments when transactions ended by their own sessions' clocks, if slack is not in the same
  // unit as the times (certify/one_key.cpp); otherwise empty.
  std::vector<std::int64_t> txn_own_end;
  // Lists.
  std::vector<std::int64_t> list_start{0};
  std::vector<std::int32_t> list_values;  // atoms
  // Predicate reads, in the order of the operations. The rows returned by a predicate read, and the
  // keys for which it found no matching row, form one statement, whose operations have no program
  // order. The operations of the statement, possibly none.
  std::vector<std::int64_t> statement_start, statement_end;
  std::vector<std::int32_t> statement_txn;
  std::vector<std::int32_t> statement_predicate;  // index into `predicates`, or kJudged
  // 1 if the result is known, and 0 if it is unknown. kPart means that the history is a part of another one and lacks
  // some of the statement's operations. Which rows match was then decided in the whole history. See also kImplicit.
  std::vector<std::uint8_t> statement_known;
  std::vector<std::int64_t> statement_position;   // line or byte offset
  std::vector<std::string> predicates;            // canonical texts: {:table T :where P}
  std::int32_t deleted = kNoAtom;                 // the atom of `values` written by a delete
  // Keys are numbered densely 0 … n_keys-1 (op_key holds that number).
  std::vector<std::int32_t> key_atom;  // key number -> atom in `key_atoms`
  std::vector<std::int32_t>
      initial_value;  // key number -> the atom that T0 wrote; see nil_is_initial
  // key number -> 1 if the key has an initial value and nil does not also name that value. May be
  // shorter than n_keys().
  std::vector<std::uint8_t> initial_alone;
  Atoms key_atoms;
  Atoms values;
  Atoms groups;
  Atoms versions;
  std::int32_t sessions = 0;
  bool has_time = false;  // txn_begin and txn_end are real times

  std::int32_t transactions() const { return static_cast<std::int32_t>(txn_session.size()); }
  std::int64_t operations() const { return static_cast<std::int64_t>(op_kind.size()); }
  OpKind kind(std::int64_t op) const { return static_cast<OpKind>(op_kind[idx(op)]); }
  bool has_operation_times() const { return !commit_begin.empty(); }
  // Returns true if txn_begin and txn_end bound the times of the operations and of COMMIT.
  bool bounds_operations() const { return !two_clocks && (has_time || has_operation_times()); }
  bool has_groups() const { return !txn_group.empty(); }
  bool has_versions() const { return !op_version.empty(); }
  std::int32_t version(std::int64_t op) const {
    return has_versions() ? op_version[idx(op)] : kNoVersion;
  }
  std::int32_t n_keys() const { return static_cast<std::int32_t>(key_atom.size()); }

  // Returns the predicate read that the operation belongs to, or -1.
  std::int32_t statement_of(std::int64_t op) const;
  bool in_statement(std::int64_t op) const { return statement_of(op) >= 0; }
  // Returns true if nil names the version of T0, whatever its value is.
  bool nil_is_initial(std::int32_t key) const {
    return initial_value[key] == kNil || idx(key) >= initial_alone.size() ||
           initial_alone[key] == 0;
  }
  // Returns the value that a read reports: nil for a deleted row, as for a row that never existed.
  std::int32_t as_read(std::int32_t value) const { return value == deleted ? kNil : value; }

  // --- building: readers call these in file order ---
  // Returns the number of the key, and adds the key if it is new.
  std::int32_t key_of(std::int32_t key_atom_id,
                      std::int32_t initial_atom = kNil);
  std::int32_t begin_transaction(std::int32_t session, Status status, std::int64_t number,
                                 std::int64_t position, std::int32_t file = 0,
                                 std::int64_t begin = kTimeUnknownBegin,
                                 std::int64_t end = kTimeUnknownEnd);
  void add_op(OpKind kind, std::int32_t key, std::int32_t value, std::int64_t position,
              bool ok = true,
              std::int64_t source = kSourceByValue);  // adds to the last transaction
  std::int32_t deleted_atom();
  // Sets the value that T0 wrote to a key. With `alone`, nil does not also name this value.
  void set_initial_value(std::int32_t key, std::int32_t value, bool alone = false);
  // Starts a predicate read, to which the next operations up to `end_statement` belong. Without a
  // text, the recorder has judged the rows.
  void begin_statement(std::string_view predicate, std::int64_t position, std::uint8_t known);
  void end_statement() { statement_end.back() = operations(); }
  void drop_statement();  // removes the last predicate read and keeps its operations
  void renumber_predicates();  // rebuilds the look-up table after the columns have been filled directly
  // The next three functions set the times of an existing operation, predicate read or transaction.
  // All other times stay unknown.
  void set_operation_times(std::int64_t op, std::int64_t begin, std::int64_t end);
  void set_statement_times(std::size_t s, std::int64_t begin, std::int64_t end);
  void set_commit_times(std::int32_t txn, std::int64_t begin, std::int64_t end);
  void set_group(std::int32_t txn, std::int32_t group);
  void set_version(std::int64_t op, std::int32_t version);
  // Moves the begins of each session's transactions and operations earlier, and their ends later,
  // by the amounts for the session.
  void widen(const std::vector<std::int64_t>& earlier, const std::vector<std::int64_t>& later);
  void reserve_operations(std::size_t n);             // allocates each operation column once
  std::int32_t add_list(const std::vector<std::int32_t>& atoms);
  // Returns the first transaction in which an operation was answered before an earlier operation in
  // program order was sent. Such moments (docs/times.md) contradict each other.
  struct Contradiction {
    std::int32_t txn;
    std::string what;
  };
  std::optional<Contradiction> contradicting_times() const;
  void validate() const;  // throws std::invalid_argument if the columns are inconsistent

 private:
  void make_room_for_times();
  std::vector<std::int32_t> key_number_;  // atom -> key number, or -1
  std::unordered_map<std::string, std::int32_t> predicate_number_;
};

}  // namespace isolang
