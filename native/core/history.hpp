// The columnar history: what a file said, in flat arrays, nothing dropped.
//
// Every reader fills one of these; the pre-pass, the problem builder and the certificate checkers
// read it. Transactions are numbered 0 … n-1; the transactions of one session are in session
// order.
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

#include "core/index.hpp"

namespace isolang {

enum class Status : std::uint8_t {
  committed = 0,
  aborted = 1,  // certainly not applied
  indeterminate = 2,    // outcome unknown (Jepsen's :info)
  initial = 3,  // *is* the initial transaction T0: declared by the format or by the user
};

enum class OpKind : std::uint8_t {
  read = 0,       // op_value is an atom: nil, or what the register held
  write = 1,      // op_value is an atom
  append = 2,     // op_value is the atom appended to a list
  read_list = 3,  // op_value is the number of a list
  // Set-reads: op_value is the number of a list of atoms. What the version that the transaction saw
  // of the key holds is known only so far. nil among them is the initial state.
  read_one_of = 4,   // one of these
  read_none_of = 5,  // none of these
};
inline constexpr std::uint8_t kOpKinds = 6;

inline bool is_write(OpKind kind) { return kind == OpKind::write || kind == OpKind::append; }
inline bool is_set_read(OpKind kind) {
  return kind == OpKind::read_one_of || kind == OpKind::read_none_of;
}
// op_value is the number of a list, if it is known.
inline bool holds_list(OpKind kind) { return kind == OpKind::read_list || is_set_read(kind); }

// Lists say by themselves which versions they are.
inline bool states_version(OpKind kind) { return kind == OpKind::read || kind == OpKind::write; }

inline constexpr std::int32_t kNil = 0;  // the atom nil
inline constexpr std::int32_t kUnknownValue =
    -1;  // a read whose result is not known (constrains nothing)
inline constexpr std::int32_t kNoAtom = -2;
inline constexpr std::int32_t kNoVersion = -1;  // op_version: not stated
inline constexpr std::string_view kDeletedText = "#deleted";  // no form in EDN
inline constexpr std::int32_t kJudged =
    -1;  // statement_predicate: the recorder says which rows match
inline constexpr std::uint8_t kPart = 2;
inline constexpr std::int64_t kSourceByValue = -1;  // op_source: match values
inline constexpr std::int64_t kSourceInitial = -2;  // op_source: the format says "from T0"
inline constexpr std::int64_t kSourceMissing =
    -3;  // op_source: the format names a write that is not there
inline constexpr std::int64_t kTimeUnknownBegin = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kTimeUnknownEnd = std::numeric_limits<std::int64_t>::max();

enum class AtomKind : std::uint8_t {
  nil = 0,
  integer = 1,  // number
  natural = 2,  // an unsigned 64-bit number >= 2^63; number is its bit pattern
  string = 3,   // number is an index into the text pool
  keyword = 4,  // EDN keyword, text without the colon
  other = 5,    // any other scalar, as canonical text (true, 1.5, [1 2] …)
};

// Interned typed scalars: 1, "1" and :1 are different atoms. Atom 0 is nil.
class Atoms {
 public:
  Atoms();
  std::int32_t nil() const { return kNil; }
  std::int32_t intern_integer(std::int64_t number);
  std::int32_t intern_natural(std::uint64_t number);  // normalised to integer when it fits
  std::int32_t intern_text(AtomKind kind, std::string_view text);
  std::int32_t intern_from(const Atoms& other, std::int32_t atom);
  std::int32_t find_integer(std::int64_t number) const;  // -1 if absent
  std::int32_t size() const { return static_cast<std::int32_t>(kind_.size()); }
  AtomKind kind(std::int32_t atom) const { return kind_[atom]; }
  std::int64_t number(std::int32_t atom) const { return number_[atom]; }
  std::string_view text(std::int32_t atom) const;  // string, keyword, other
  // What it is called in a specification: its text, or its number; a keyword without the colon.
  std::string name(std::int32_t atom) const;

 private:
  std::int32_t add(AtomKind kind, std::int64_t number);
  std::size_t slot(AtomKind kind, std::int64_t number) const;
  std::int32_t intern_number(AtomKind kind, std::int64_t number);
  std::vector<AtomKind> kind_;
  std::vector<std::int64_t> number_;
  std::vector<std::string> texts_;
  // Open addressing over integers and naturals: one probe per operation in the readers' hot loops.
  std::vector<std::int32_t> slots_;
  std::size_t numbers_ = 0;
  std::unordered_map<std::string, std::int32_t> by_text_;
};

// The names that transactions bear, each a set of them. Sets are numbered; number 0 is the empty one.
class Names {
 public:
  std::vector<std::int32_t> set_of;            // of each transaction; empty if none bears a name
  std::vector<std::int64_t> set_start{0, 0};   // sets + 1
  std::vector<std::int32_t> set_names;         // of each set its names, ascending
  std::vector<std::string> texts;              // of each name

  bool any() const { return !set_of.empty(); }
  std::int32_t sets() const { return static_cast<std::int32_t>(set_start.size()) - 1; }
  std::span<const std::int32_t> names_of(std::int32_t set) const {
    const auto first = set_start[idx(set)], last = set_start[idx(set) + 1];
    return std::span(set_names).subspan(idx(first), idx(last - first));
  }
  std::int32_t number_of(std::string_view text);           // of a name
  std::int32_t set_of_names(std::vector<std::int32_t> names);  // its number
  // The number here of a set of `other`.
  std::int32_t set_from(const Names& other, std::int32_t set);
  // Of a transaction that is there; those behind it bear no name yet.
  void bear(std::int32_t txn, std::int32_t set);
  void validate(std::size_t transactions) const;
  void renumber();  // after the columns were filled by hand

 private:
  std::unordered_map<std::string, std::int32_t> number_;
  std::map<std::vector<std::int32_t>, std::int32_t> set_number_;
};

// An end that was widened, as the begins of its own session see it: by one clock, which is this much
// less wrong.
inline std::int64_t by_own_clock(std::int64_t end, std::int64_t slack) {
  if (end == kTimeUnknownEnd) return end;
  return __builtin_sub_overflow(end, slack, &end) ? kTimeUnknownBegin : end;
}

struct History {
  // One entry per transaction.
  std::vector<std::int32_t> txn_session;  // dense session number, 0 …; numbered by first appearance
  std::vector<std::uint8_t> txn_status;   // Status
  std::vector<std::int64_t> txn_begin;    // real time, any unit; kTimeUnknownBegin if not known
  std::vector<std::int64_t> txn_end;      // kTimeUnknownEnd if not known or unfinished
  std::vector<std::int64_t>
      txn_number;  // what the file calls it, else its ordinal, from 1; shown as T<number>
  std::vector<std::int64_t> txn_position;  // line (text formats, 1-based) or byte offset (binary)
  std::vector<std::int32_t> txn_file;      // index into the list of files of this history
  // Its group, an atom in `groups`; kNil: it is in none. Empty if all are.
  std::vector<std::int32_t> txn_group;
  Names labels;  // what its author calls a transaction
  Names levels;  // the level that it was asked to run at: one name, or none
  std::vector<std::int64_t> op_start{
      0};  // n + 1: operations of t are op_start[t] … op_start[t+1]-1, in program order
  // One entry per operation.
  std::vector<std::uint8_t> op_kind;  // OpKind
  std::vector<std::uint8_t>
      op_ok;  // 0: the operation itself failed inside its transaction; ignored, but kept
  std::vector<std::int32_t> op_key;    // dense key number: see key_atom
  std::vector<std::int32_t> op_value;  // atom in `values`, list number, or kUnknownValue
  std::vector<std::int64_t>
      op_source;  // kSourceByValue, kSourceInitial, kSourceMissing, or a write's number
  std::vector<std::int64_t> op_position;  // line or byte offset
  // The version that an operation on a register states to have read or written: an atom in
  // `versions`, or kNoVersion. Empty if none states one. `name_sources` makes sources of them.
  std::vector<std::int32_t> op_version;
  bool versions_ordered = false;  // versions are integers, and those of a key ascend in its order
  // Times of operations, and of the sending and the answer of COMMIT, by one clock; all four are empty
  // if none is known.
  // Predicate reads have times of their own, since one may have no operations; these are its
  // operations', too.
  std::vector<std::int64_t> op_begin, op_end, commit_begin, commit_end;
  std::vector<std::int64_t> statement_sent, statement_answered;
  bool two_clocks = false;  // that clock is not the one of txn_begin and txn_end
  // Per session, by how much its begins and ends together were widened; empty if none was. Between
  // two moments of one session, which has one clock, that much is to be taken off again.
  std::vector<std::int64_t> slack;
  // When a transaction had ended by its own session's clock, where slack is not in the unit of the
  // times (certify/one_key.cpp); else empty.
  std::vector<std::int64_t> txn_own_end;
  // Lists.
  std::vector<std::int64_t> list_start{0};
  std::vector<std::int32_t> list_values;  // atoms
  // Predicate reads, in the order of the operations: the rows that one returned, and the keys of which it says that
  // no row was there, are one statement. It has no program order inside.
  std::vector<std::int64_t> statement_start, statement_end;  // its operations; there may be none
  std::vector<std::int32_t> statement_txn;
  std::vector<std::int32_t> statement_predicate;  // index into `predicates`, or kJudged
  // 0: what it returned is not known; kPart: its other operations were left out, so that it is as the
  // whole history judged it.
  std::vector<std::uint8_t> statement_known;
  std::vector<std::int64_t> statement_position;   // line or byte offset
  std::vector<std::string> predicates;            // canonical texts: {:table T :where P}
  std::int32_t deleted = kNoAtom;                 // the atom in `values` that a delete writes
  // Keys are numbered densely 0 … n_keys-1 (op_key holds that number).
  std::vector<std::int32_t> key_atom;  // key number -> atom in `key_atoms`
  std::vector<std::int32_t>
      initial_value;  // key number -> atom that T0 wrote; see nil_is_initial
  // key number -> 1: that was there instead of nothing, and nil does not name it too. May be shorter.
  std::vector<std::uint8_t> initial_alone;
  Atoms key_atoms;
  Atoms values;
  Atoms groups;
  Atoms versions;
  std::int32_t sessions = 0;
  bool has_time = false;  // txn_begin and txn_end mean real time

  std::int32_t transactions() const { return static_cast<std::int32_t>(txn_session.size()); }
  std::int64_t operations() const { return static_cast<std::int64_t>(op_kind.size()); }
  OpKind kind(std::int64_t op) const { return static_cast<OpKind>(op_kind[idx(op)]); }
  bool has_operation_times() const { return !commit_begin.empty(); }
  // Whether txn_begin and txn_end say something of operations and of COMMIT.
  bool bounds_operations() const { return !two_clocks && (has_time || has_operation_times()); }
  bool has_groups() const { return !txn_group.empty(); }
  bool has_versions() const { return !op_version.empty(); }
  std::int32_t version(std::int64_t op) const {
    return has_versions() ? op_version[idx(op)] : kNoVersion;
  }
  std::int32_t n_keys() const { return static_cast<std::int32_t>(key_atom.size()); }

  // The predicate read that the operation is part of, or -1.
  std::int32_t statement_of(std::int64_t op) const;
  bool in_statement(std::int64_t op) const { return statement_of(op) >= 0; }
  // Whether nil names what T0 wrote, whatever that is.
  bool nil_is_initial(std::int32_t key) const {
    return initial_value[key] == kNil || idx(key) >= initial_alone.size() ||
           initial_alone[key] == 0;
  }
  // What a read calls a value: a deleted row is nil, as one that never was.
  std::int32_t as_read(std::int32_t value) const { return value == deleted ? kNil : value; }

  // --- building; readers call these in file order ---
  std::int32_t key_of(std::int32_t key_atom_id,
                      std::int32_t initial_atom = kNil);  // dense number of a key
  std::int32_t begin_transaction(std::int32_t session, Status status, std::int64_t number,
                                 std::int64_t position, std::int32_t file = 0,
                                 std::int64_t begin = kTimeUnknownBegin,
                                 std::int64_t end = kTimeUnknownEnd);
  void add_op(OpKind kind, std::int32_t key, std::int32_t value, std::int64_t position,
              bool ok = true,
              std::int64_t source = kSourceByValue);  // to the transaction begun last
  std::int32_t deleted_atom();
  // What T0 wrote to a key; `alone`: nil does not name it, too.
  void set_initial_value(std::int32_t key, std::int32_t value, bool alone = false);
  // The operations that come now, to `end_statement`, are of one predicate read. Without a text, the
  // recorder has judged the rows.
  void begin_statement(std::string_view predicate, std::int64_t position, std::uint8_t known);
  void end_statement() { statement_end.back() = operations(); }
  void drop_statement();  // the last one; its operations stay
  void renumber_predicates();  // after the columns were filled by hand
  // Of an operation, a predicate read and a transaction that are there; the others' are unknown.
  void set_operation_times(std::int64_t op, std::int64_t begin, std::int64_t end);
  void set_statement_times(std::size_t s, std::int64_t begin, std::int64_t end);
  void set_commit_times(std::int32_t txn, std::int64_t begin, std::int64_t end);
  void set_group(std::int32_t txn, std::int32_t group);
  void set_version(std::int64_t op, std::int32_t version);
  // All begins of a session's transactions and operations so much earlier, all ends so much later.
  void widen(const std::vector<std::int64_t>& earlier, const std::vector<std::int64_t>& later);
  void reserve_operations(std::size_t n);             // one allocation per column
  std::int32_t add_list(const std::vector<std::int32_t>& atoms);
  // The first transaction with an answer that is earlier than a sending before it in the order of its
  // operations. The moments of docs/times.md contradict each other then.
  struct Contradiction {
    std::int32_t txn;
    std::string what;
  };
  std::optional<Contradiction> contradicting_times() const;
  void validate() const;  // throws std::invalid_argument when the columns do not fit together

 private:
  void make_room_for_times();
  std::vector<std::int32_t> key_number_;  // atom -> key number, or -1
  std::unordered_map<std::string, std::int32_t> predicate_number_;
};

}  // namespace isolang
