// Viper's JSON logs. One file is one session, and one line is one committed transaction.
//
// `i` (insert) and `d` (delete) first read the old state (a value, a tombstone or nothing) and then write. A delete
// leaves a tombstone with a unique value. So each of the two becomes a read and a write here, and a read of a tombstone
// is matched by its value like any other read. The flags *is_dead* and *ready* add no information.
//
// A `range` is a predicate read of the keys between two bounds. It returned the rows in its fourth slot and the
// tombstones in its fifth. All other keys between the bounds had never been written. So it becomes a read of those
// rows, live and dead, and shows for every other key that no version of it existed.
//
// The fourth slot of `r` is *is_dead* in Viper's own logs and the transaction's outcome in IsoVista's. If no operation
// deletes, nothing can be dead, so a `true` there shows that the slots are outcomes.
#include <algorithm>
#include <stdexcept>

#include "readers/forms.hpp"
#include "readers/predicates.hpp"

namespace isolang {
namespace {

enum class Flag : std::int8_t { missing, no, yes };

class Viper {
 public:
  Viper(History& history, Budget& budget)
      : h_(history), keys_(history.key_atoms), values_(history.values), budget_(budget) {}

  void file(std::int32_t number, const NamedBytes& file) {
    const std::int32_t session = h_.sessions;
    Forms json(without_byte_order_mark(file.bytes), file.name);
    json.read_json(budget_);
    json_ = &json;
    name_ = &file.name;
    for (json.blank(); !json.at_end(); json.blank()) {
      budget_.poll();
      transaction(session, number);
    }
  }

  void finish(Remarks& remarks) {
    const bool outcomes = !deletes_ && dead_reads_;
    if (outcomes) apply_outcomes();
    if (!h_.statement_start.empty()) {
      find_initial_rows();
      lower_predicates(h_);
    }
    remarks.emplace_back("outcomes", outcomes);
    remarks.emplace_back("ranges", static_cast<std::int64_t>(h_.statement_start.size()));
    remarks.emplace_back("initial_reads", mark_initial_reads());
    std::ranges::sort(unknown_fields_);
    remarks.emplace_back("unknown_fields", unknown_fields_);
    if (initial_ >= 0) remarks.emplace_back("initial", initial_);
  }

 private:
  // Marks the value at this position. If the value turns out to be wrong, the message names the
  // position.
  Forms::Mark start() {
    json_->blank();
    return json_->mark();
  }

  std::string place() const {
    return "line " + std::to_string(line_) + (operation_ > 0 ? ", operation " + std::to_string(operation_) : "");
  }

  [[noreturn]] void bad(Forms::Mark start, const std::string& what, const std::string& expected) {
    json_->back_to(start);
    const std::string got = json_->shown();
    fail_at(*name_, place(), what + " (got " + got + ", expected " + expected + ")", line_);
  }

  void transaction(std::int32_t session, std::int32_t file) {
    const auto mark = start();
    line_ = json_->line();
    operation_ = 0;
    constexpr const char* kShape = "{\"value\": [...]}";
    if (json_->peek() != '{') bad(mark, "not a transaction", kShape);
    const std::int32_t txn = h_.begin_transaction(session, Status::committed, ++ordinal_, line_, file);
    bool has_value = false, initial = false;
    json_->object([&] {
      if (json_->name("value")) {
        const auto list = start();
        if (has_value || json_->peek() != '[') bad(has_value ? mark : list, "not a transaction", kShape);
        has_value = true;
        json_->array([&] {
          ++operation_;
          operation();
        });
        operation_ = 0;
      } else if (json_->name("isInitial")) {
        const auto flag = start();
        if (!json_->flag(initial)) bad(flag, "\"isInitial\" is no truth value", "true or false");
      } else {
        std::string other(json_->word());
        if (std::ranges::find(unknown_fields_, other) == unknown_fields_.end())
          unknown_fields_.push_back(std::move(other));
        json_->skip();
      }
    });
    if (!has_value) bad(mark, "not a transaction", kShape);
    if (initial) {
      if (initial_ >= 0) fail_at(*name_, place(), "a second \"isInitial\" transaction (expected one at most)", line_);
      initial_ = txn;
      --ordinal_;
      h_.txn_number[static_cast<std::size_t>(txn)] = 0;
      become_writes(txn);
    }
  }

  // Turns the rows that an unbounded range returned into writes of the initial transaction.
  void become_writes(std::int32_t txn) {
    for (std::int64_t op = h_.op_start[txn]; op < h_.operations(); ++op)
      if (h_.in_statement(op)) h_.op_kind[static_cast<std::size_t>(op)] = static_cast<std::uint8_t>(OpKind::write);
    while (!h_.statement_txn.empty() && h_.statement_txn.back() == txn) h_.drop_statement();
  }

  void operation() {
    const auto mark = start();
    if (json_->peek() != '[') not_an_operation(mark);
    char kind = '\0';
    int slot = 0;
    std::int32_t key = 0, value = 0, read = kNil;
    bool has_read = false, ok = true;
    Flag flag = Flag::missing;
    std::string range;  // the bounds of the range, as a predicate
    json_->array([&] {
      const auto here = start();
      if (slot == 0) {
        kind = json_->name("r") ? 'r' : json_->name("w") ? 'w' : json_->name("i") ? 'i' : json_->name("d") ? 'd' : 'R';
        if (kind == 'R') {
          if (!json_->name("range")) not_an_operation(mark);
          range.clear();
        }
      } else if (kind == 'R' && slot < 3) {
        bound(slot == 1 ? ">=" : "<=", range);
        if (slot == 2) begin_range(mark, range);
      } else if (kind == 'R') {
        slot < 5 ? rows(here) : json_->skip();
      } else if (slot == 1) {
        key = scalar(h_.key_atoms, keys_, "key");
      } else if (slot == 2) {
        value = kind == 'r' ? read_value() : scalar(h_.values, values_, "value");
      } else if (slot == 3 && (kind == 'r' || kind == 'w')) {
        flag = boolean() ? Flag::yes : Flag::no;
      } else if (slot == 3) {
        has_read = !json_->null();
        if (has_read) read = read_value();
      } else if ((slot == 4 || slot == 5) && (kind == 'i' || kind == 'd')) {
        const bool succeeded = boolean();
        if (slot == 5) ok = succeeded;
      } else {
        json_->skip();
      }
      ++slot;
    });
    if (kind == 'R') {
      if (slot < 5) bad(mark, "not a range", kRange);
      h_.end_statement();
      return;
    }
    if (slot < (kind == 'r' || kind == 'w' ? 3 : 6)) not_an_operation(mark);
    if (kind == 'r') {
      dead_reads_ = dead_reads_ || flag == Flag::yes;
      add(OpKind::read, key, value, flag, true);
    } else if (kind == 'w') {
      add(OpKind::write, key, value, flag, flag != Flag::no);
    } else {
      deletes_ = true;
      if (has_read) add(OpKind::read, key, read, Flag::missing, ok);
      add(OpKind::write, key, value, Flag::missing, ok);
    }
  }

  [[noreturn]] void not_an_operation(Forms::Mark mark) {
    bad(mark, "not an operation",
        R"(["r", key, value, dead], ["w", key, value, succeeded], ["i", key, value, read, dead, succeeded, …], )"
        R"(["d", …] or ["range", …])");
  }

  // Reads a bound of a range, or nil, which means that the range is open.
  void bound(const char* test, std::string& range) {
    const auto mark = start();
    const char c = json_->peek();
    if (json_->null() || (c == '"' && json_->name("nil"))) return;
    if (c == '"')
      bad(mark, "a range of strings, whose order depends on the collation", "numbers, \"nil\" or null as its bounds");
    if (c != '-' && (c < '0' || c > '9')) bad(mark, "not a bound of a range", "a number, \"nil\" or null");
    json_->atom(bounds_, bound_numbers_);  // checks that the bound is a number
    range += std::string(" [:") + test + " :key " + std::string(json_->since(mark)) + "]";
  }

  void begin_range(Forms::Mark mark, const std::string& range) {
    try {
      h_.begin_statement(canonical_predicate("[:and" + range + "]"), line_, 1);
    } catch (const std::invalid_argument& e) {
      json_->back_to(mark);
      fail_at(*name_, place(), e.what(), line_);
    }
  }

  // Reads the rows of a range. Tombstones are values, too.
  void rows(Forms::Mark mark) {
    if (json_->peek() != '[') bad(mark, "not a range", kRange);
    json_->array([&] {
      const auto row = start();
      std::int32_t key = -1, value = -1;
      if (json_->peek() != '{') bad(row, "not a row", "{\"id\": key, \"val\": value}");
      json_->object([&] {
        if (json_->name("id")) {
          key = scalar(h_.key_atoms, keys_, "key");
        } else if (json_->name("val")) {
          value = scalar(h_.values, values_, "value");
        } else {
          json_->word();
          json_->skip();
        }
      });
      if (key < 0 || value < 0) bad(row, "not a row", "{\"id\": key, \"val\": value}");
      add(OpKind::read, key, value, Flag::missing, true);
    });
  }

  std::int32_t read_value() {
    json_->blank();
    if (json_->name("nil")) return kNil;
    return scalar(h_.values, values_, "value");
  }

  std::int32_t scalar(Atoms& atoms, Numbers& numbers, const char* what) {
    const auto mark = start();
    const char c = json_->peek();
    if (const bool number = c == '-' || (c >= '0' && c <= '9'); number || c == '"') return json_->atom(atoms, numbers);
    bool flag = false;
    if (json_->null()) return kNil;
    if (!json_->flag(flag)) bad(mark, std::string("not a ") + what, "a number or a string");
    return atoms.intern_text(AtomKind::other, flag ? "true" : "false");
  }

  bool boolean() {
    const auto mark = start();
    bool found = false;
    if (!json_->flag(found)) bad(mark, "not a truth value", "true or false");
    return found;
  }

  void add(OpKind kind, std::int32_t key, std::int32_t value, Flag flag, bool ok) {
    h_.add_op(kind, h_.key_of(key), value, json_->line(), ok);
    flags_.push_back(flag);
  }

  bool is_read(std::size_t op) const { return h_.op_kind[op] == static_cast<std::uint8_t>(OpKind::read); }

  // Uses the fourth slots as outcomes. A transaction in which all slots are false was aborted. In any other
  // transaction, the slot of a write applies only to that write.
  void apply_outcomes() {
    for (std::size_t t = 0; t < h_.txn_status.size(); ++t) {
      const auto first = static_cast<std::size_t>(h_.op_start[t]), last = static_cast<std::size_t>(h_.op_start[t + 1]);
      const bool initial = static_cast<std::int64_t>(t) == initial_;
      const bool aborted = !initial && first < last &&
                           std::all_of(flags_.begin() + h_.op_start[t], flags_.begin() + h_.op_start[t + 1],
                                       [](Flag flag) { return flag == Flag::no; });
      if (aborted) h_.txn_status[t] = static_cast<std::uint8_t>(Status::aborted);
      for (std::size_t i = first; i < last; ++i)
        h_.op_ok.set(idx(i), initial || aborted || is_read(i) || flags_[i] != Flag::no ? 1 : 0);
    }
  }

  // Marks reads of values that no transaction wrote as initial, and returns their number. If the initial state is
  // declared, only 0 may be unexplained, and any other value stays a thin-air read. 0 means, as nil does, that the row
  // did not exist; it is not a second value of the initial version.
  std::int64_t mark_initial_reads() {
    std::int64_t found = 0;
    each_unwritten([&](std::size_t op) {
      const bool zero = is_zero(h_.op_value[op]);
      if (initial_ >= 0 && !zero) return;
      h_.op_source.set(idx(op), kSourceInitial);
      if (zero) h_.op_value[op] = kNil;
      ++found;
    });
    return found;
  }

  // Finds the initial rows, which match ranges. Thin-air reads show which rows there were. 0 is not a row.
  void find_initial_rows() {
    if (initial_ >= 0) return;
    each_unwritten([&](std::size_t op) {
      std::int32_t& initial = h_.initial_value[static_cast<std::size_t>(h_.op_key[op])];
      if (initial == kNil && !is_zero(h_.op_value[op])) initial = h_.op_value[op];
    });
  }

  bool is_zero(std::int32_t value) const {
    return value == h_.values.find_integer(0) ||
           (h_.values.kind(value) == AtomKind::string && h_.values.text(value) == "0");
  }

  // Visits the reads of a value other than nil that no transaction wrote to the key.
  template <typename Visit>
  void each_unwritten(const Visit& visit) const {
    const std::size_t m = h_.op_kind.size();
    std::size_t size = 1024;
    while (size < 2 * m) size *= 2;
    std::vector<std::int64_t> written(size, -1);  // open addressing; a pair of a key and a value is never -1
    const auto slot = [&](std::size_t op) {
      const auto pair = static_cast<std::int64_t>(h_.op_key[op]) << 32 | h_.op_value[op];
      std::size_t at = static_cast<std::uint64_t>(pair) * 0x9e3779b97f4a7c15ULL >> 20U & (size - 1);
      while (written[at] >= 0 && written[at] != pair) at = (at + 1) & (size - 1);
      return std::pair{at, pair};
    };
    for (std::size_t i = 0; i < m; ++i)
      if (is_write(h_.kind(static_cast<std::int64_t>(i)))) {
        const auto [at, pair] = slot(i);
        written[at] = pair;
      }
    for (std::size_t i = 0; i < m; ++i)
      if (is_read(i) && h_.op_value[i] != kNil && written[slot(i).first] < 0) visit(i);
  }

  static constexpr const char* kRange =
      R"(["range", low, high, [{"id": key, "val": value} …], [{"id": key, "val": tombstone} …], …])";

  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  Forms* json_ = nullptr;  // the reader of the present file
  const std::string* name_ = nullptr;
  std::int64_t line_ = 0, operation_ = 0;  // the present place, from 1
  std::int64_t ordinal_ = 0;               // the number of transactions, without the initial one
  Atoms bounds_;                           // the bounds of ranges
  Numbers bound_numbers_{bounds_};
  std::vector<Flag> flags_;                // the fourth slot of each operation
  std::vector<std::string> unknown_fields_;
  std::int64_t initial_ = -1;  // the "isInitial" transaction
  bool deletes_ = false, dead_reads_ = false;
};

}  // namespace

Reading read_viper(const std::vector<NamedBytes>& files, Budget& budget) {
  Reading out;
  Viper viper(out.history, budget);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    bytes += files[i].bytes.size();
    check_size(files[i].name, bytes);
    viper.file(static_cast<std::int32_t>(i), files[i]);
  }
  try {
    viper.finish(out.remarks);
  } catch (const PredicateError& e) {
    const auto file = static_cast<std::size_t>(out.history.txn_file[static_cast<std::size_t>(e.txn)]);
    fail_line(files[file].name, e.position, e.what);
  }
  return out;
}

}  // namespace isolang
