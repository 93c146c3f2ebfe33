// Jepsen's operation maps, one record for each map, before invocations are paired with completions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/growing.hpp"
#include "readers/common.hpp"
#include "readers/forms.hpp"
#include "readers/predicates.hpp"

namespace isolang::jepsen {

enum class Type : std::uint8_t { missing, invoke, ok, fail, info };
Type read_type(Forms& forms);  // fails for any other word

enum class Process : std::uint8_t { missing, client, other };  // other: for example :nemesis
enum class Value : std::uint8_t { missing, micro_ops, other };

// A history of millions of maps has tens of millions of these, two for each operation: each byte counts.
struct MicroOp {
  std::int32_t key;    // atom of History::key_atoms
  std::int32_t value;  // atom of History::values, or list number or scan number in Operations
  OpKind kind;
  bool is_scan = false;  // whether it is a predicate read; `value` is then an index into Operations::scans
};

struct Scan {
  std::string predicate;  // canonical text
  bool known;
  std::size_t first, last;  // its rows are first … last-1 of Operations::rows
};
struct ScannedRow {
  std::int32_t key, value;  // atoms of History::key_atoms and History::values
};

// Fields that few maps have.
struct Details {
  // The times of its micro-operations, as indices into Operations, and when COMMIT was sent and answered: :times [[b e]
  // …], :commit [b e].
  std::size_t times_first = 0, times_last = 0;
  std::int64_t commit_begin = kTimeUnknownBegin, commit_end = kTimeUnknownEnd;
  bool has_commit = false;
  std::int32_t group = kNil;  // atom of History::groups
  // The versions that its micro-operations read or wrote, as indices into Operations: :versions [v …].
  std::size_t versions_first = 0, versions_last = 0;
  std::int32_t labels = 0, level = 0;  // numbers of sets of History::labels and History::levels
};

struct Operation {
  Type type = Type::missing;
  Process process_kind = Process::missing;
  Value value_kind = Value::missing;
  bool has_index : 1 = false, has_time : 1 = false;
  bool transactional : 1 = true;  // whether :f is :txn or missing
  bool initial : 1 = false;       // whether :f is :init; then :value, a map, is the initial state
  bool short_read : 1 = false;    // whether some read has no value, as in an :invoke
  std::int32_t details = -1;      // index into Operations::details; -1 if it has none of these fields
  std::int64_t line = 0, offset = 0;  // where the map begins
  std::int64_t process = 0, index = 0, time = 0;
  std::size_t first = 0;     // its micro-operations are first … last()-1; see Operations::share
  std::size_t count = 0;
  std::size_t last() const { return first + count; }
};

struct Operations {
  Growing<Operation> operations;  // in the order of the file
  Growing<MicroOp> micro_ops;
  std::vector<Details> details;
  // The micro-operations that begin on a later line than their map, ascending, with their lines.
  std::vector<std::pair<std::size_t, std::int64_t>> lines;
  std::vector<Scan> scans;
  std::vector<ScannedRow> rows;
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  std::vector<std::int32_t> versions;  // atoms of History::versions; kNil if not stated
  std::int64_t ordered_line = 0;       // the line of {:versions :ordered}; 0 if there is none
  std::vector<std::size_t> list_start{0};
  Growing<std::int32_t> list_values;
  struct {
    std::int64_t line = 0;  // 0 if there is none
    std::string what;       // "(got X, expected Y)"
  } no_process;             // the first map of a transaction without :process
  // The lines of maps of :fail and :info with a micro-operation of an unknown name, and the message about it.
  std::vector<std::pair<std::int64_t, std::string>> misspelt;
  bool json = false, enclosed = false;
  std::int64_t tagged = 0;         // maps with the tag #jepsen.history.Op{…}
  std::int64_t odd_times = 0;      // maps whose :time or :index is not an integer
  std::vector<std::string> others;  // the first few distinct processes that are not clients
  std::int64_t skipped = 0;         // operations of clients with a different :f
  std::vector<std::string> skipped_functions;  // the first few distinct values of such an :f
  std::int64_t skipped_line = 0;    // the line of the first skipped operation
  std::int64_t independent = 0;     // operations whose :value is [key micro-operations]
  std::int64_t unlike_lines = 0;    // the line of the first map that does not have a line of its own; 0 if all have

  // Lets a completion, the last map, take the place of its invocation's micro-operations, if both are alike. What the
  // invocation says of its reads means nothing.
  void share(const Operation& invoked, Operation& done);

  const Details& details_of(const Operation& op) const {
    static constexpr Details kNone;
    return op.details < 0 ? kNone : details[idx(op.details)];
  }
  // Returns whether two maps have the same micro-operations, whatever their reads show.
  bool alike(const Operation& invoked, const Operation& done) const;
  // Returns the line on which a micro-operation of a map begins.
  std::int64_t line_of(std::size_t micro_op, const Operation& map) const {
    const auto found = std::ranges::lower_bound(lines, micro_op, {}, &std::pair<std::size_t, std::int64_t>::first);
    return found != lines.end() && found->first == micro_op ? found->second : map.line;
  }
};

// The state of the reader before a block of a file that is read piece by piece. The maps of invocations left open by
// earlier blocks are put in front of the block again, in their order, each on a line of its own.
struct Following {
  std::int32_t file = 0;
  std::int64_t carried_bytes = 0;  // length of the maps in front
  // For each map in front: the file and byte where it was read, its moment (its byte position in all files together),
  // and the number of its transaction.
  std::vector<std::int64_t> carried_file, carried_offset, carried_moment, carried_number;
  // Counts before the block itself: the lines and bytes of its file, the bytes of all files, and the transactions that
  // have begun.
  std::int64_t lines = 0, bytes = 0, moment = 0, begun = 0;
  bool by_time = false;   // begins and ends are :time, which all maps must have
  bool by_index = false;  // transactions are numbered by :index
  bool index_is_time = false;  // begins and ends are :index, which all maps must have; only with by_time
  std::int64_t front = kTimeUnknownBegin;  // the latest :time of the earlier maps
  bool json = false;      // whether the earlier maps were JSON
  int has_process = -1;   // whether the earlier maps had a :process; -1 if there were none
  // Results, one for each transaction: the positions of its invocation and of its completion, and the moment when it
  // was completed, whatever its outcome. -1 if there is none.
  std::vector<std::int64_t> invoked_at, completed_at, completed_when;
};

// Pass 1 turns bytes into operation maps. It interns the atoms in `history`.
Operations parse(std::string_view data, const std::string& name, History& history, Budget& budget,
                 std::int64_t first_line = 1, bool json = false);
// The same for a text that comes piece by piece. An error may be about the end of a piece alone: read the text as a whole
// then.
Operations parse(const TextInPieces& text, const std::string& name, History& history, Budget& budget);

// Pass 2 turns operation maps into transactions of `history`. In a block of a file, positions are bytes, and times are
// bytes of all files (or :time). Predicate reads are then not lowered, because other blocks have other rows.
void pair(const Operations& operations, const std::string& name, History& history, Remarks& remarks, Budget& budget,
          Following* following = nullptr);

}  // namespace isolang::jepsen
