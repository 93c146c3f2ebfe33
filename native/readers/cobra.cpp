// Cobra's client logs: big-endian records without separators, one file for each client. Write ids tell which write a
// read returned.
//
// Two kinds of logs share the layout. In *genuine* logs, each write has a unique id, and a read names the transaction
// and the write. That write is its source, and the value of the read must not contradict it. In the *duplicate-value
// variant*, every write has the id 0xabddefee and consists only of (key, value), so reads match by value. The data
// shows which kind a log is. A history with both kinds is refused, because neither way of reading it would be right.

#include "readers/common.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kInit = 0xbebeebee;       // as transaction and write id: loaded before the run
constexpr std::int64_t kNull = 0xdeadbeef;       // as transaction and write id: the key was absent
constexpr std::int64_t kGcTrue = 0x23332333;     // write ids of garbage-collection fences, which the initial
constexpr std::int64_t kGcFalse = 0x66666666;    // transaction is said to have written
constexpr std::int64_t kDeleted = 0xabcdefab;
constexpr std::int64_t kMissing = 0xadeafbee;    // used only by write-write tracking
constexpr std::int64_t kUniversal = 0xabddefee;  // used by the duplicate-value variant

struct PendingRead {  // resolved once all files have been read, because a read may name a write in a later file
  std::int64_t op, writer_txn, write_id;
};

class Cobra {
 public:
  Cobra(const std::vector<NamedBytes>& files, bool timestamps, History& history, Budget& budget)
      : files_(files), timestamps_(timestamps), h_(history), keys_(history.key_atoms), values_(history.values),
        budget_(budget) {}

  void run(Remarks& remarks) {
    for (file_ = 0; file_ < files_.size(); ++file_) read_file();
    if (universal_ && genuine_)
      fail_byte(
          files_[first_universal_.file].name, first_universal_.byte,
          "the write id 0xabddefee (duplicate-value variant) in a history that also has write ids of its own (as in " +
              files_[first_genuine_.file].name + ", byte " + std::to_string(first_genuine_.byte) +
              "); hint: logs of two different runs");
    if (h_.transactions() == 0)
      fail_byte(files_.empty() ? "" : files_[0].name, 0, "no transactions (got empty logs, expected 'S' records)");
    resolve();
    h_.has_time = timestamps_;
    remarks.emplace_back("variant", std::string(universal_ ? "duplicate-values" : "genuine"));
    remarks.emplace_back("duplicate_values", universal_);
    remarks.emplace_back("timestamps", timestamps_);
    remarks.emplace_back("initial_reads", initial_);
    remarks.emplace_back("missing_sources", missing_);
    remarks.emplace_back("contradicting_sources", contradicting_);
    remarks.emplace_back("unfinished", unfinished_);
    remarks.emplace_back("aborted", aborted_);
    remarks.emplace_back("empty_files", empty_files_);
  }

 private:
  struct Place {
    std::size_t file = 0;
    std::int64_t byte = 0;
  };

  void read_file() {
    const NamedBytes& file = files_[file_];
    begin_ = p_ = file.bytes.data();
    end_ = p_ + file.bytes.size();
    if (p_ == end_) {
      ++empty_files_;
      return;
    }
    const std::int32_t session = h_.sessions;
    bool open = false;
    std::int64_t txn_id = 0;
    while (p_ < end_) {
      budget_.poll();
      const std::int64_t at = p_ - begin_;
      const auto op = static_cast<unsigned char>(*p_++);
      switch (op) {
        case 'S': {
          if (open)
            fail(at, "a start inside transaction " + std::to_string(txn_id) + " (got 'S', expected its 'C' or 'A')");
          txn_id = id("a transaction id", at);
          const std::int64_t begin = timestamps_ ? id("a timestamp", at) : kTimeUnknownBegin;
          const std::int32_t number = h_.begin_transaction(session, Status::indeterminate, txn_id, at,
                                                           static_cast<std::int32_t>(file_), begin, kTimeUnknownEnd);
          const std::int32_t atom = txn_ids_.intern_integer(txn_id);
          if (static_cast<std::size_t>(atom) != txn_of_.size() + 1)  // atom 0 is nil
            fail(at, "the transaction id " + std::to_string(txn_id) + " is used twice");
          txn_of_.push_back(number);
          open = true;
          break;
        }
        case 'W': {
          if (!open) outside(at, "write");
          const std::int64_t write_id = id("a write id", at);
          const std::int64_t key = id("a key hash", at);
          const std::int64_t value = id("a value hash", at);
          note_kind(write_id == kUniversal, at);
          if (write_id != kUniversal) {
            const std::int32_t atom = write_ids_.intern_integer(write_id);
            if (static_cast<std::size_t>(atom) != write_of_.size() + 1)
              fail(at, "the write id " + std::to_string(write_id) +
                           " is used twice; hint: write ids are unique, but for 0xabddefee");
            write_of_.push_back(h_.operations());
          }
          h_.add_op(OpKind::write, h_.key_of(keys_.integer(key)), values_.integer(value), at);
          break;
        }
        case 'R': {
          if (!open) outside(at, "read");
          const std::int64_t writer_txn = id("the writer's transaction id", at);
          const std::int64_t write_id = id("the writer's write id", at);
          const std::int64_t key = id("a key hash", at);
          const std::int64_t value = id("a value hash", at);
          const std::int64_t source = source_of(writer_txn, write_id, at);
          // In the initial state, only loaded keys have a value; absent keys and garbage-collection fences have none.
          const bool loaded = writer_txn == kInit && write_id == kInit;
          const std::int32_t seen = source == kSourceInitial && !loaded ? kNil : values_.integer(value);
          h_.add_op(OpKind::read, h_.key_of(keys_.integer(key)), seen, at, true, source);
          break;
        }
        case 'C': {
          if (!open) outside(at, "commit");
          const std::int64_t committed = id("a transaction id", at);
          if (committed != txn_id)
            fail(at, "a commit of another transaction (got " + std::to_string(committed) + ", expected " +
                         std::to_string(txn_id) + ")");
          if (timestamps_) {
            const std::int64_t end = id("a timestamp", at);
            if (end < h_.txn_begin.back())
              fail(at, "transaction " + std::to_string(txn_id) + " commits before it starts (got " +
                           std::to_string(end) + ", expected at least " + std::to_string(h_.txn_begin.back()) + ")");
            h_.txn_end.set(h_.txn_end.size() - 1, end);
          }
          h_.txn_status.back() = static_cast<std::uint8_t>(Status::committed);
          open = false;
          break;
        }
        case 'A':
          if (!open) outside(at, "abort");
          h_.txn_status.back() = static_cast<std::uint8_t>(Status::aborted);
          ++aborted_;
          open = false;
          break;
        default:
          fail(at, "no record starts so (got " + quoted_byte(op) + ", expected 'S', 'R', 'W', 'C' or 'A')");
      }
    }
    unfinished_ += open ? 1 : 0;  // a log may be cut off, so the outcome of this transaction is unknown
  }

  std::int64_t source_of(std::int64_t writer_txn, std::int64_t write_id, std::int64_t at) {
    const auto either = [&](std::int64_t reserved) { return writer_txn == reserved || write_id == reserved; };
    if (either(kDeleted) || either(kMissing))
      unsupported_byte(
          files_[file_].name, at,
          std::string("a read of ") +
              (either(kDeleted) ? "a deleted key (id 0xabcdefab" : "a write-write tracking id (0xadeafbee") +
              "); hint: deletes are not supported");
    const bool by_initial = writer_txn == kInit || writer_txn == kNull;
    if (by_initial && (write_id == kInit || write_id == kNull || write_id == kGcTrue || write_id == kGcFalse)) {
      ++initial_;
      return kSourceInitial;
    }
    if (writer_txn == kUniversal && write_id == kUniversal) {
      note_kind(true, at);
      return kSourceByValue;
    }
    note_kind(false, at);
    pending_.push_back({h_.operations(), writer_txn, write_id});
    return kSourceMissing;
  }

  void resolve() {
    for (const PendingRead& read : pending_) {
      budget_.poll();
      const std::int32_t atom = write_ids_.find_integer(read.write_id);
      if (atom < 0) {
        ++missing_;
        continue;
      }
      const std::int64_t write = write_of_[static_cast<std::size_t>(atom) - 1];
      const std::int32_t txn = txn_ids_.find_integer(read.writer_txn);
      const auto r = static_cast<std::size_t>(read.op), w = static_cast<std::size_t>(write);
      const bool in_txn = txn >= 0 && contains(txn_of_[static_cast<std::size_t>(txn) - 1], write);
      if (!in_txn || h_.op_key[r] != h_.op_key[w] || h_.op_value[r] != h_.op_value[w]) {
        ++contradicting_;  // the write id exists, but in another transaction, or for another key or value
        continue;
      }
      h_.op_source.set(idx(r), write);
    }
  }

  bool contains(std::int32_t txn, std::int64_t op) const {
    const auto t = static_cast<std::size_t>(txn);
    return h_.op_start[t] <= op && op < h_.op_start[t + 1];
  }

  // Records that the id of a write, in the write itself or in a read of it, shows which kind of logs these are.
  void note_kind(bool universal, std::int64_t at) {
    bool& seen = universal ? universal_ : genuine_;
    if (!seen) (universal ? first_universal_ : first_genuine_) = {file_, at};
    seen = true;
  }

  std::int64_t id(const char* what, std::int64_t record) {
    if (end_ - p_ < 8)
      fail(p_ - begin_, std::string("the file ends inside the record of byte ") + std::to_string(record) + ", before " +
                            what + " (got " + std::to_string(end_ - p_) + " bytes, expected 8); hint: truncated");
    std::uint64_t n = 0;
    for (int i = 0; i < 8; ++i) n = n << 8U | static_cast<unsigned char>(p_[i]);
    p_ += 8;
    return static_cast<std::int64_t>(n);
  }

  [[noreturn]] void outside(std::int64_t at, const char* what) const {
    fail(at, std::string("a ") + what + " outside a transaction (expected 'S')");
  }
  [[noreturn]] void fail(std::int64_t at, const std::string& what) const { fail_byte(files_[file_].name, at, what); }

  const std::vector<NamedBytes>& files_;
  bool timestamps_;
  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  std::size_t file_ = 0;
  const char *begin_ = nullptr, *p_ = nullptr, *end_ = nullptr;
  Atoms txn_ids_, write_ids_;           // used only for their hash tables: id → dense number
  std::vector<std::int32_t> txn_of_;    // dense transaction id - 1 → transaction
  std::vector<std::int64_t> write_of_;  // dense write id - 1 → operation
  std::vector<PendingRead> pending_;
  bool universal_ = false, genuine_ = false;
  Place first_universal_, first_genuine_;
  std::int64_t initial_ = 0, missing_ = 0, contradicting_ = 0, unfinished_ = 0, aborted_ = 0, empty_files_ = 0;
};

}  // namespace

Reading read_cobra(const std::vector<NamedBytes>& files, bool timestamps, Budget& budget) {
  std::uint64_t bytes = 0;
  for (const NamedBytes& file : files) bytes += file.bytes.size();
  check_size("", bytes);
  Reading out;
  try {
    Cobra(files, timestamps, out.history, budget).run(out.remarks);
  } catch (const ReadError& error) {
    // The logs do not state whether they have timestamps. If they can be read as the other kind, the message says so.
    bool other = true;
    try {
      Reading ignored;
      Cobra(files, !timestamps, ignored.history, budget).run(ignored.remarks);
    } catch (const ReadError&) {
      other = false;
    } catch (const UnsupportedInput&) {
      other = false;
    }
    if (!other) throw;
    throw ReadError(std::string(error.what()) + (timestamps ? "; hint: without timestamps these logs can be read"
                                                            : "; hint: with timestamps these logs can be read"),
                    error.offset);
  }
  return out;
}

}  // namespace isolang
