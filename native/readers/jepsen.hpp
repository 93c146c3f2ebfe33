// Jepsen's operation maps, one record each, before invocations and completions are paired.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "readers/common.hpp"
#include "readers/forms.hpp"
#include "readers/predicates.hpp"

namespace isolang::jepsen {

enum class Type : std::uint8_t { missing, invoke, ok, fail, info };
Type read_type(Forms& forms);  // fails where another word stands

enum class Process : std::uint8_t { missing, client, other };  // other: :nemesis
enum class Value : std::uint8_t { missing, micro_ops, other };

struct MicroOp {
  OpKind kind;
  std::int32_t key;    // atom of History::key_atoms
  std::int32_t value;  // atom of History::values, or list number in Operations
  std::int64_t line;
  std::int32_t scan = -1;  // a predicate read: index into Operations::scans
};

struct Scan {
  std::string predicate;  // canonical
  bool known;
  std::size_t first, last;  // its rows, in Operations::rows
};
struct ScannedRow {
  std::int32_t key, value;  // atoms of History::key_atoms and History::values
};

struct Operation {
  Type type = Type::missing;
  Process process_kind = Process::missing;
  Value value_kind = Value::missing;
  bool has_index = false, has_time = false;
  bool transactional = true;  // :f is :txn, or missing
  bool initial = false;       // :f is :init: its :value, a map, is the initial state
  bool short_read = false;    // a read without a value, as an :invoke may have it
  std::int64_t line = 0, offset = 0;  // where its map begins
  std::int64_t process = 0, index = 0, time = 0;
  std::size_t first = 0, last = 0;  // its micro-operations
  // Their times, in Operations, and when COMMIT was sent and answered: :times [[b e] …], :commit [b e].
  std::size_t times_first = 0, times_last = 0;
  std::int64_t commit_begin = kTimeUnknownBegin, commit_end = kTimeUnknownEnd;
  bool has_commit = false;
  std::int32_t group = kNil;  // an atom of History::groups
  // What its micro-operations read or wrote, in Operations: :versions [v …].
  std::size_t versions_first = 0, versions_last = 0;
  std::int32_t labels = 0, level = 0;  // sets of History::labels and History::levels
};

struct Operations {
  std::vector<Operation> operations;  // in the order of the file
  std::vector<MicroOp> micro_ops;
  std::vector<Scan> scans;
  std::vector<ScannedRow> rows;
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  std::vector<std::int32_t> versions;  // atoms of History::versions; kNil: not stated
  std::int64_t ordered_line = 0;       // where {:versions :ordered} stands; 0: nowhere
  std::vector<std::size_t> list_start{0};
  std::vector<std::int32_t> list_values;
  bool json = false, enclosed = false;
  std::int64_t tagged = 0;         // #jepsen.history.Op{…}
  std::int64_t odd_times = 0;      // :time or :index that is not an integer
  std::vector<std::string> others;  // processes that are not clients, the first few, distinct
  std::int64_t skipped = 0;         // operations of clients with another :f
  std::vector<std::string> skipped_functions;  // what these are, the first few, distinct
  std::int64_t skipped_line = 0;    // where the first of them stands
  std::int64_t independent = 0;     // operations whose :value is [key micro-operations]
  std::int64_t unlike_lines = 0;    // where the first map is that has not a line of its own; 0: none is
};

// A block of a file that is read piece by piece. The maps of the open invocations of the blocks before
// are put in front of it again, each on its own line, in their order.
struct Following {
  std::int32_t file = 0;
  std::int64_t carried_bytes = 0;  // how long the maps in front are
  // Of each of them: the file and the byte where it stands, when it was, and which of all transactions.
  std::vector<std::int64_t> carried_file, carried_offset, carried_moment, carried_number;
  // What comes before the block itself: lines and bytes of its file, bytes of all files, and
  // transactions begun.
  std::int64_t lines = 0, bytes = 0, moment = 0, begun = 0;
  bool by_time = false;   // begins and ends are :time, which all maps must have
  bool by_index = false;  // transactions are called by :index
  bool index_is_time = false;  // begins and ends are :index, which all maps must have; with by_time
  std::int64_t front = kTimeUnknownBegin;  // the latest :time of the maps before
  bool json = false;      // whether the maps before were JSON
  int has_process = -1;   // whether the maps before had a :process; -1: there was none
  // Results: where the invocation and the completion of each transaction stand, and when it was
  // completed, whatever the outcome; or -1.
  std::vector<std::int64_t> invoked_at, completed_at, completed_when;
};

// Pass 1: bytes → operation maps; atoms go to `history`.
Operations parse(std::string_view data, const std::string& name, History& history, Budget& budget,
                 std::int64_t first_line = 1, bool json = false);

// Pass 2: operation maps → transactions of `history`.
// Of a block of a file, the places are bytes, the times are bytes of all files (or :time), and predicate reads are left
// as they stand: other blocks have other rows.
void pair(const Operations& operations, const std::string& name, History& history, Remarks& remarks, Budget& budget,
          Following* following = nullptr);

}  // namespace isolang::jepsen
