// Pass 2 over Jepsen's operations: pairs invocations with their completions and turns them into transactions.
//
// The history claims the following, and does *not* claim more where less is known:
// - :ok is committed, with the completion's micro-operations. :fail is aborted, with the invocation's micro-operations:
//   its writes are the aborted writes, and the results of its reads are unknown. :info, or no completion, is
//   indeterminate.
// - Real time is the order of the maps, or of :index if every map has one and no two are equal. A transaction begins at
//   its invocation and ends at its :ok or :fail. A completion without an invocation begins at an unknown time, and an
//   indeterminate transaction ends at an unknown time. Without any :invoke, the history has no real time.
// - A process has one open operation at a time, as in Jepsen. If a process has several, each of its transactions is a
//   separate session, and a completion belongs to the invocation with the same micro-operations. It is an error if
//   there is not exactly one.
// - After :info, a process continues as a new session, because the transaction may take effect later than the
//   operations that follow it.
// - If there are also transactions, operations of clients with a different :f are skipped and
//   counted.
// - A :fail or :info without an invocation and without micro-operations has no meaning. It is counted, but does not
//   become a transaction. A micro-operation with an unknown name is an error there: its writes may have been read.
// - Without any :process, each transaction is a separate session, and a completion belongs to the only open invocation.
#include <algorithm>
#include <numeric>
#include <optional>

#include "core/versions.hpp"
#include "readers/jepsen.hpp"

namespace isolang::jepsen {
namespace {

constexpr std::int64_t kNone = -1;

struct Transaction {
  std::int64_t invocation = kNone, completion = kNone;  // operation numbers
  std::int64_t begin = kTimeUnknownBegin, end = kTimeUnknownEnd;
  std::int32_t process = 0;  // dense number
};

// Returns advice on the reads and writes that best express the effect of an operation on a whole
// object.
std::string nearest_model(std::string function) {
  std::erase_if(function, [](char c) { return c == ':' || c == '"'; });  // of EDN, of JSON
  if (function == "enqueue" || function == "dequeue" || function == "drain")
    return "`isocheck linearize --model queue` judges queues; in transactions, the nearest model of a queue is a key "
           "for each element: [[:w v 1]] for an enqueue, [[:r v 1] [:w v 2]] for a dequeue; an element that is taken "
           "twice is seen then, the order of elements is not";
  if (function == "push" || function == "pop") return "`isocheck linearize --model stack` judges stacks";
  if (function == "acquire" || function == "release") return "`isocheck linearize --model mutex` judges locks";
  if (function == "generate")
    return "the nearest model of unique names is a key for each: [[:r id nil] [:w id 1]]";
  return "write it as a transaction of reads and writes, [[:r k v] [:w k v] …] or [[:r k [v …]] [:append k v] …]; "
         "docs/formats.md has the operations of other workloads that isocheck reads as they are";
}

class Pairing {
 public:
  Pairing(const Operations& in, const std::string& name, History& history, Remarks& remarks, Budget& budget,
          Following* following)
      : in_(in), ops_(in.operations), name_(name), h_(history), remarks_(remarks), budget_(budget),
        f_(following) {}

  void run() {
    any_process_ =
        std::any_of(ops_.begin(), ops_.end(), [](const Operation& o) { return o.process_kind != Process::missing; });
    in_order();
    if (f_ != nullptr) check_block();
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      budget_.poll();
      step(static_cast<std::int64_t>(in_place(i)), static_cast<std::int64_t>(i));
    }
    if (f_ == nullptr && transactions_.empty() && in_.skipped > 0)
      unsupported_line(name_, in_.skipped_line,
                       "the operation :f " + in_.skipped_functions.front() +
                           " is not a transaction (expected :f :txn); hint: " +
                           nearest_model(in_.skipped_functions.front()));
    h_.has_time = invocations_ > 0 || f_ != nullptr;
    if (f_ == nullptr) make_room();  // so that no move clears new pages
    for (const Transaction& t : transactions_) {
      budget_.poll();
      emit(t);
    }
    take_times();
    if (const auto found = h_.contradicting_times())
      fail_line(name_, h_.txn_position[found->txn],
                "times that contradict each other: " + found->what +
                    " (expected one operation after the other, in their order, by one clock)" +
                    (by_time_ ? "; hint: where every map has :time, :times are by its clock" : ""));
    try {
      if (f_ == nullptr) lower_predicates(h_);
      if (f_ == nullptr) name_sources(h_);
    } catch (const PredicateError& e) {
      fail_line(name_, e.position, e.what);
    }
    time_remarks();
    report();
  }

 private:
  // Sorts by :index if every map has one and they all differ. Otherwise, keeps the order of the
  // file.
  void in_order() {
    const auto indexed = static_cast<std::size_t>(
        std::count_if(ops_.begin(), ops_.end(), [](const Operation& o) { return o.has_index; }));
    index_note_ = indexed == 0 ? "missing" : "incomplete";
    if (f_ != nullptr) follow_index(indexed);
    if (indexed < ops_.size() || f_ != nullptr) return;
    by_index_ = true;
    index_note_ = "agrees with lines";
    const auto not_after = [](const Operation& a, const Operation& b) { return a.index >= b.index; };
    if (std::adjacent_find(ops_.begin(), ops_.end(), not_after) == ops_.end()) return;
    order_.resize(ops_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto earlier = [&](std::size_t a, std::size_t b) { return ops_[a].index < ops_[b].index; };
    if (!std::is_sorted(order_.begin(), order_.end(), earlier)) {
      std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        return ops_[a].index != ops_[b].index ? ops_[a].index < ops_[b].index : a < b;
      });
      index_note_ = "reorders lines";
    }
    const auto same = [&](std::size_t a, std::size_t b) { return ops_[a].index == ops_[b].index; };
    if (std::adjacent_find(order_.begin(), order_.end(), same) == order_.end()) return;
    index_note_ = "repeated";
    by_index_ = false;
    order_.clear();
  }
  // Returns the number of the operation at a place in the order.
  std::size_t in_place(std::size_t place) const { return order_.empty() ? place : order_[place]; }

  // Adds remarks on :index in this block. The code that reads the blocks combines these remarks.
  void follow_index(std::size_t indexed) {
    const std::size_t first = f_->carried_offset.size();
    bool increasing = true, contiguous = true;
    for (std::size_t i = first + 1; i < ops_.size(); ++i) {
      increasing = increasing && ops_[i].index > ops_[i - 1].index;
      contiguous = contiguous && ops_[i].index == ops_[i - 1].index + 1;
    }
    const bool some = first < ops_.size();
    std::vector<std::int64_t> sorted;
    if (!increasing)
      for (std::size_t i = first; i < ops_.size(); ++i) sorted.push_back(ops_[i].index);
    std::ranges::sort(sorted);
    remarks_.emplace_back("index_repeats", std::ranges::adjacent_find(sorted) != sorted.end());
    remarks_.emplace_back("all_timed", std::ranges::all_of(ops_, [](const Operation& op) {
                            return op.has_time || op.process_kind == Process::other;
                          }));
    remarks_.emplace_back("all_indexed", indexed == ops_.size());
    remarks_.emplace_back("index_increases", increasing);
    remarks_.emplace_back("index_contiguous", contiguous);
    if (f_->index_is_time) {
      std::vector<std::int64_t> indices, of;
      for (std::size_t i = first; i < ops_.size(); ++i) {
        indices.push_back(ops_[i].index);
        of.push_back(ops_[i].process_kind == Process::other ? kNone : ops_[i].process);
      }
      remarks_.emplace_back("indices", std::move(indices));
      remarks_.emplace_back("index_processes", std::move(of));
    }
    remarks_.emplace_back("index_first", some ? ops_[first].index : std::int64_t{0});
    remarks_.emplace_back("index_last", some ? ops_[ops_.size() - 1].index : std::int64_t{0});
    by_index_ = f_->by_index && indexed == ops_.size();
  }

  // Checks that the block can be read by itself. For this, each map needs a line of its own, and either all maps or
  // none must have a :process.
  void check_block() {
    const auto carried = f_->carried_offset.size();
    if (in_.enclosed)
      unsupported_line(name_, f_->lines + 1,
                       "an enclosing vector cannot be followed (expected one operation map a line)");
    if (in_.unlike_lines != 0)
      unsupported_line(name_, in_.unlike_lines,
                       "an operation map that has not one line of its own cannot be followed (expected one map a "
                       "line); hint: isocheck check reads the file as a whole");
    if (f_->has_process == 1) any_process_ = true;
    if (f_->has_process == 0 && any_process_)
      fail_line(name_, f_->lines + 1,
                "operations with a :process from here on, while those before have none (expected it in all or in "
                "none)");
    for (std::size_t i = 0; f_->by_time && i < ops_.size(); ++i)
      if (f_->index_is_time && !ops_[i].has_index)
        fail_line(name_, ops_[i].line, "an operation without :index (got none, expected one as in those before)");
      else if (!ops_[i].has_time && ops_[i].process_kind != Process::other)
        fail_line(name_, ops_[i].line,
                  "an operation without :time (got none, expected whole nanoseconds); hint: the files of several "
                  "clients are put in order by it");
    if (ops_.size() < carried) throw std::logic_error("fewer maps than were carried");
  }

  // Returns the place of an operation for the columns: its line, or its byte in a file that is
  // followed.
  std::int64_t place(std::int64_t number) const {
    const Operation& op = ops_[idx(number)];
    if (f_ == nullptr) return op.line;
    return idx(number) < f_->carried_offset.size() ? f_->carried_offset[idx(number)]
                                                   : op.offset - f_->carried_bytes + f_->bytes;
  }

  std::int32_t file_of(std::int64_t number) const {
    if (f_ == nullptr) return 0;
    return idx(number) < f_->carried_file.size() ? static_cast<std::int32_t>(f_->carried_file[idx(number)]) : f_->file;
  }
  // Returns the moment of an operation in the order of the file: its position, or its byte in a file that is followed.
  std::int64_t moment(std::int64_t number, std::int64_t position) const {
    if (f_ == nullptr) return position;
    return idx(number) < f_->carried_moment.size() ? f_->carried_moment[idx(number)]
                                                   : place(number) - f_->bytes + f_->moment;
  }

  void step(std::int64_t number, std::int64_t position) {
    const Operation& op = ops_[static_cast<std::size_t>(number)];
    if (op.process_kind == Process::other || (op.process_kind == Process::missing && !op.transactional)) {
      ++others_;
      return;
    }
    if (op.process_kind == Process::missing && any_process_)
      fail_line(name_, op.line,
                "an operation has no :process, but other operations do " +
                    (in_.no_process.line == op.line ? in_.no_process.what : "(got none, expected a number)"));
    const auto process = static_cast<std::size_t>(processes_.intern_integer(op.process));
    if (process >= open_.size()) {
      open_.resize(process + 1);
      overlapping_.resize(process + 1, 0);
    }
    std::vector<std::int64_t>& open = open_[process];
    if (op.type == Type::invoke) {
      ++invocations_;
      if (!open.empty()) overlapping_[process] = 1;
      if (f_ != nullptr && any_process_ && !open.empty())
        unsupported_line(name_, op.line,
                         "process " + std::to_string(op.process) +
                             " invokes an operation while another one of it is open, which cannot be followed "
                             "(expected one at a time); hint: isocheck check reads the file as a whole");
      open.push_back(begin(process));
      Transaction& begun = transactions_[transactions_.size() - 1];
      begun.invocation = number;
      begun.begin = moment(number, position);
      return;
    }
    if (open.empty()) {
      if (op.value_kind != Value::micro_ops) {  // a :fail or :info without an invocation
        const auto misspelt = std::ranges::lower_bound(in_.misspelt, op.line, {}, &std::pair<std::int64_t, std::string>::first);
        if (misspelt != in_.misspelt.end() && misspelt->first == op.line)
          unsupported_line(name_, op.line, misspelt->second);
        ++strays_;
        return;
      }
      ++uninvoked_;
      open.push_back(begin(process));
    }
    const auto completed = open.begin() + which(open, op);
    Transaction& t = transactions_[static_cast<std::size_t>(*completed)];
    open.erase(completed);
    t.completion = number;
    if (op.type != Type::info) t.end = moment(number, position);
    if (op.initial) become_initial(op);
    if (op.type == Type::ok && t.invocation != kNone) compare(ops_[static_cast<std::size_t>(t.invocation)], op);
    if (op.value_kind == Value::other) ++odd_values_;
  }

  // Checks that an :init succeeded and precedes all other transactions. Its writes are the initial
  // state; without an :init, the initial state is unknown.
  void become_initial(const Operation& op) const {
    if (op.type != Type::ok)
      fail_line(name_, op.line, "the outcome of an :init is not :ok (expected the state at the beginning)");
    const std::size_t before =
        f_ == nullptr ? 0 : static_cast<std::size_t>(f_->begun) - f_->carried_number.size();
    if (before + transactions_.size() > 1)
      fail_line(name_, op.line, "an :init after, or concurrent with, other transactions (expected it before all of them)");
  }

  std::int64_t begin(std::size_t process) {
    Transaction t;
    t.process = static_cast<std::int32_t>(process);
    transactions_.push_back(t);
    return static_cast<std::int64_t>(transactions_.size()) - 1;
  }

  // Finds the open transaction of a process that an operation completes.
  std::ptrdiff_t which(const std::vector<std::int64_t>& open, const Operation& op) const {
    if (open.size() == 1) return 0;
    std::ptrdiff_t found = -1;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::int64_t invocation = transactions_[static_cast<std::size_t>(open[i])].invocation;
      if (invocation == kNone || !in_.alike(ops_[static_cast<std::size_t>(invocation)], op)) continue;
      if (found >= 0) ambiguous(open, op);
      found = static_cast<std::ptrdiff_t>(i);
    }
    if (found < 0) ambiguous(open, op);
    return found;
  }

  [[noreturn]] void ambiguous(const std::vector<std::int64_t>& open, const Operation& op) const {
    const auto line = [&](std::int64_t t) {
      return std::to_string(
          ops_[static_cast<std::size_t>(transactions_[static_cast<std::size_t>(t)].invocation)].line);
    };
    fail_line(name_, op.line,
              (any_process_ ? "process " + std::to_string(op.process) : std::string("the history (no :process anywhere)")) +
                  " has several open operations, those of lines " + line(open[0]) + " and " + line(open[1]) +
                  ", and this completion could be either's (expected the micro-operations of one of them); "
                  "hint: one operation at a time per :process");
  }

  // Counts a client whose :ok has other keys than its :invoke. The completion is used, but this deserves a remark.
  void compare(const Operation& invoked, const Operation& done) {
    if (in_.alike(invoked, done)) return;
    if (differing_ == 0) first_differing_ = done.line;
    ++differing_;
  }

  const Operation* map_of(std::int64_t number) const { return number == kNone ? nullptr : &ops_[idx(number)]; }
  static Status status_of(const Operation* completion) {
    const Type type = completion == nullptr ? Type::info : completion->type;
    return type == Type::ok     ? Status::committed
           : type == Type::fail ? Status::aborted
                                : Status::indeterminate;
  }
  // Returns the map whose micro-operations are used.
  static const Operation* shown_by(const Operation* invocation, const Operation* completion, Status status) {
    if (status == Status::aborted && invocation != nullptr) return invocation;
    if (status == Status::indeterminate && invocation != nullptr &&
        (completion == nullptr || completion->value_kind != Value::micro_ops))
      return invocation;
    return completion;
  }

  // Reserves exactly the room that the columns of the history take.
  void make_room() {
    std::size_t operations = 0;
    for (const Transaction& t : transactions_) {
      const Operation* const completion = map_of(t.completion);
      operations += shown_by(map_of(t.invocation), completion, status_of(completion))->count;
    }
    h_.reserve_operations(operations);
    const auto reserve = [&](auto&... columns) { (columns.reserve(transactions_.size()), ...); };
    reserve(h_.txn_session, h_.txn_status, h_.txn_begin, h_.txn_end, h_.txn_number);
    h_.op_start.reserve(transactions_.size() + 1);
    h_.list_values.reserve(in_.list_values.size());
  }

  void emit(const Transaction& t) {
    const Operation *const invocation = map_of(t.invocation), *const completion = map_of(t.completion);
    const Status status = status_of(completion);
    ++counts_[static_cast<std::size_t>(completion == nullptr ? Type::missing : completion->type)];

    const Operation* const from = shown_by(invocation, completion, status);
    const Operation* const shown = status == Status::indeterminate && invocation != nullptr ? invocation : completion;

    std::int32_t session = h_.sessions;
    if (any_process_) {
      const auto process = static_cast<std::size_t>(t.process);
      if (process >= session_of_.size()) {
        session_of_.resize(process + 1, -1);
        after_info_.resize(process + 1, 0);
      }
      if (session_of_[process] < 0) {
        session_of_[process] = session;
        session_labels_.push_back(processes_.number(t.process));
        resumed_ += after_info_[process];
      }
      session = session_of_[process];
      const bool overlaps = overlapping_[process] != 0;
      after_info_[process] = static_cast<char>(status == Status::indeterminate && !overlaps);
      if (status == Status::indeterminate || overlaps) session_of_[process] = -1;
    }
    if (shown->initial) initial_ = h_.transactions();
    const std::int64_t number = by_index_ ? shown->index : ordinal_number();
    const auto at = [&](const Operation* op) { return place(op - ops_.begin()); };
    const std::int64_t from_at = at(from);
    if (f_ != nullptr) {
      f_->invoked_at.push_back(invocation == nullptr ? kNone : at(invocation));
      f_->completed_at.push_back(completion == nullptr ? kNone : at(completion));
      f_->completed_when.push_back(completion == nullptr ? kNone
                                   : f_->by_time         ? completion->time
                                                         : moment(t.completion, 0));
    }
    h_.begin_transaction(session, status, number, at(shown), file_of(shown - ops_.begin()), h_.has_time ? t.begin : kTimeUnknownBegin,
                         h_.has_time ? t.end : kTimeUnknownEnd);
    for (std::size_t i = from->first; i < from->last(); ++i) {
      const MicroOp& op = in_.micro_ops[i];
      const std::int64_t op_at = f_ == nullptr && !in_.lines.empty() ? in_.line_of(i, *from) : from_at;
      if (op.is_scan) {
        emit_scan(in_.scans[idx(op.value)], op_at, from->type != Type::invoke);
        continue;
      }
      OpKind kind = op.kind;
      std::int32_t value = op.value;
      // An :invoke cannot know the results of its reads, whatever it states. nil in :info and :fail means that a result
      // is not known.
      const bool unknown = !is_write(kind) && status != Status::committed &&
                           (from->type == Type::invoke || (kind == OpKind::read && value == kNil));
      if (unknown) {
        kind = OpKind::read;
        value = kUnknownValue;
        ++unknown_reads_;
      } else if (holds_list(kind) && value != kUnknownValue) {
        const auto list = static_cast<std::size_t>(op.value);
        h_.list_values.insert(h_.list_values.end(),
                              in_.list_values.begin() + in_.list_start[list],
                              in_.list_values.begin() + in_.list_start[list + 1]);
        value = static_cast<std::int32_t>(h_.list_start.size()) - 1;
        h_.list_start.push_back(static_cast<std::int64_t>(h_.list_values.size()));
      }
      h_.add_op(kind, h_.key_of(op.key), value, op_at);
    }
    if (from == completion) times_of_operations(*completion, status);
    group(invocation, completion);
    const std::int32_t txn = h_.transactions() - 1;
    h_.labels.assign_set(txn, agreed_value(invocation, completion, &Details::labels, ":label"));
    h_.levels.assign_set(txn, agreed_value(invocation, completion, &Details::level, ":level"));
    versions(*from, completion, status);
  }

  // Sets the versions of the last begun transaction, whose operations are those of `from`. A transaction that did not
  // commit may state fewer of them.
  void versions(const Operation& from, const Operation* completion, Status status) {
    const auto count = [&](const Operation& op) {
      const Details& details = in_.details_of(op);
      return details.versions_last - details.versions_first;
    };
    const Operation& stating = completion != nullptr && count(*completion) > 0 ? *completion : from;
    if (count(stating) == 0) return;
    if (f_ != nullptr)
      unsupported_line(name_, stating.line,
                       ":versions cannot be followed, since a version may have been written by what comes later; "
                       "hint: isocheck check reads the file as a whole");
    const std::size_t asked = from.count;
    if (count(stating) > asked || (count(stating) < asked && status == Status::committed))
      fail_line(name_, stating.line, ":versions of " + std::to_string(count(stating)) + " operations, :value of " +
                                      std::to_string(asked) + " (expected one for each, or nil in its place)");
    std::int64_t next = h_.op_start[h_.transactions() - 1];
    auto scan = static_cast<std::size_t>(std::ranges::lower_bound(h_.statement_txn, h_.transactions() - 1) -
                                         h_.statement_txn.begin());
    for (std::size_t i = 0; i < count(stating); ++i) {
      const std::int32_t version = in_.versions[in_.details_of(stating).versions_first + i];
      const bool predicate = in_.micro_ops[from.first + i].is_scan;
      if (version != kNil && (predicate || !states_version(h_.kind(next))))
        fail_line(name_, stating.line, "a version of operation " + std::to_string(i + 1) +
                                        ", which is about a list, a set of values or a predicate (expected nil)");
      if (version != kNil && in_.ordered_line > 0 && h_.versions.kind(version) != AtomKind::integer)
        fail_line(name_, stating.line, "a version that is not a 64-bit integer, although versions are ordered (line " +
                                        std::to_string(in_.ordered_line) + ")");
      if (version != kNil) h_.set_version(next, version);
      next = predicate ? h_.statement_end[scan++] : next + 1;
    }
    h_.versions_ordered = in_.ordered_line > 0;
  }

  // Returns the number of the next transaction. Transactions are numbered from 1, in the order in
  // which they begin.
  std::int64_t ordinal_number() const {
    const std::int64_t t = h_.transactions();
    if (f_ == nullptr) return t + 1;
    const auto carried = static_cast<std::int64_t>(f_->carried_number.size());
    return t < carried ? f_->carried_number[idx(t)] : f_->begun + t - carried + 1;
  }

  // Returns a field that one or both maps of a transaction state. If both state it, they must
  // agree.
  std::int32_t agreed_value(const Operation* invocation, const Operation* completion, std::int32_t Details::*what,
                    const char* field) const {
    std::int32_t found = 0;
    for (const Operation* op : {invocation, completion}) {
      const std::int32_t stated = op == nullptr ? 0 : in_.details_of(*op).*what;
      if (stated == 0) continue;
      if (found != 0 && found != stated)
        fail_line(name_, op->line, std::string("another ") + field + " than that of the invocation (expected the same)");
      found = stated;
    }
    return found;
  }

  // Sets the group of the last begun transaction, if one of its maps states one.
  void group(const Operation* invocation, const Operation* completion) {
    const std::int32_t found = agreed_value(invocation, completion, &Details::group, ":group");
    if (found == kNil) ++groupless_;
    if (found != kNil) h_.set_group(h_.transactions() - 1, found);
  }

  // Sets the times of the operations of the last begun transaction and of its COMMIT. A transaction
  // that did not commit may state times for fewer operations.
  void times_of_operations(const Operation& op, Status status) {
    const Details& details = in_.details_of(op);
    const std::size_t given = details.times_last - details.times_first, asked = op.count;
    if (given == 0 && !details.has_commit) return;
    if (given > asked || (given > 0 && given < asked && status == Status::committed))
      fail_line(name_, op.line, ":times of " + std::to_string(given) + " operations, :value of " +
                                    std::to_string(asked) + " (expected one interval for each)");
    const std::int32_t txn = h_.transactions() - 1;
    std::int64_t next = h_.op_start[txn];
    auto scan = static_cast<std::size_t>(std::ranges::lower_bound(h_.statement_txn, txn) -
                                         h_.statement_txn.begin());
    for (std::size_t i = 0; i < given; ++i) {
      const auto [begin, end] = in_.times[details.times_first + i];
      if (!in_.micro_ops[op.first + i].is_scan) {
        h_.set_operation_times(next++, begin, end);
      } else {
        h_.set_statement_times(scan, begin, end);
        next = h_.statement_end[scan++];
      }
    }
    const bool answered = details.commit_end != kTimeUnknownEnd || !op.has_time;
    h_.set_commit_times(txn, details.commit_begin,
                        status != Status::committed ? kTimeUnknownEnd : answered ? details.commit_end : op.time);
    ++timed_;
  }

  // If operations have times, also takes the times of transactions from :time, so that all use one clock. This is
  // possible only if every map has a :time.
  void take_times() {
    by_time_ = f_ != nullptr ? f_->by_time : timed_ > 0 && h_.has_time;
    for (const Transaction& t : transactions_)
      for (const std::int64_t number : {t.invocation, t.completion})
        by_time_ = by_time_ && (number == kNone || ops_[static_cast<std::size_t>(number)].has_time);
    h_.two_clocks = timed_ > 0 && h_.has_time && (!by_time_ || (f_ != nullptr && f_->index_is_time));
    if (!by_time_) return;
    for (std::size_t t = 0; t < transactions_.size(); ++t) {
      const auto& [invocation, completion, begin, end, process] = transactions_[t];
      if (begin != kTimeUnknownBegin && invocation != kNone)
        h_.txn_begin.set(t, ops_[static_cast<std::size_t>(invocation)].time);
      if (end != kTimeUnknownEnd) h_.txn_end.set(t, ops_[static_cast<std::size_t>(completion)].time);
    }
  }

  void emit_scan(const Scan& scan, std::int64_t at, bool answered) {
    const bool known = scan.known && answered;
    h_.begin_statement(scan.predicate, at, known ? 1 : 0);
    if (!known) {
      ++unknown_reads_;
      return;
    }
    for (std::size_t i = scan.first; i < scan.last; ++i)
      h_.add_op(OpKind::read, h_.key_of(in_.rows[i].key), in_.rows[i].value, at);
    h_.end_statement();
  }

  // Returns by how much :time is at most behind an earlier :time.
  std::int64_t behind() const {
    std::int64_t front = f_->front, most = 0;
    for (std::size_t i = f_->carried_offset.size(); i < ops_.size(); ++i) {
      if (!ops_[i].has_time) continue;
      if (front != kTimeUnknownBegin && ops_[i].time < front) {
        std::int64_t by = 0;
        if (__builtin_sub_overflow(front, ops_[i].time, &by)) by = kTimeUnknownEnd;
        most = std::max(most, by);
      }
      front = std::max(front, ops_[i].time);
    }
    return most;
  }

  // Adds remarks on :time. It does not determine the order, but it is useful to know whether it
  // agrees with the order.
  void time_remarks() {
    std::int64_t with_time = 0, least = 0, most = 0, previous = 0, back = 0, first_back = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Operation& op = ops_[in_place(i)];
      if (!op.has_time) continue;
      if (with_time++ == 0) {
        least = most = op.time;
      } else if (op.time < previous) {
        if (back++ == 0) first_back = op.line;
      }
      previous = op.time;
      least = std::min(least, op.time);
      most = std::max(most, op.time);
    }
    const auto span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
    const auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    remarks_.emplace_back("timed_maps", with_time);
    remarks_.emplace_back("time_most", most);
    if (f_ != nullptr) remarks_.emplace_back("time_behind", behind());
    remarks_.emplace_back("time_span_ns", static_cast<std::int64_t>(std::min(span, longest)));
    remarks_.emplace_back("time_goes_back", back);
    remarks_.emplace_back("time_goes_back_first_line", first_back);
  }

  void report() {
    const auto count = [&](Type type) { return counts_[static_cast<std::size_t>(type)]; };
    remarks_.emplace_back("syntax", std::string(in_.json ? "json" : "edn"));
    remarks_.emplace_back("maps", static_cast<std::int64_t>(ops_.size()));
    remarks_.emplace_back("enclosed", in_.enclosed);
    remarks_.emplace_back("tagged", in_.tagged);
    remarks_.emplace_back("order", std::string(by_index_ ? "index" : "line"));
    remarks_.emplace_back("index", index_note_);
    remarks_.emplace_back("has_process", any_process_);
    remarks_.emplace_back("invocations", invocations_);
    remarks_.emplace_back("ok", count(Type::ok));
    remarks_.emplace_back("fail", count(Type::fail));
    remarks_.emplace_back("info", count(Type::info));
    remarks_.emplace_back("unfinished", count(Type::missing));
    remarks_.emplace_back("completions_without_invocation", uninvoked_);
    remarks_.emplace_back("stray_completions", strays_);
    remarks_.emplace_back("nonclient", others_);
    remarks_.emplace_back("nonclient_processes", in_.others);
    remarks_.emplace_back("resumed_after_info", resumed_);
    remarks_.emplace_back("unknown_reads", unknown_reads_);
    remarks_.emplace_back("overlapping", static_cast<std::int64_t>(
                                             std::count(overlapping_.begin(), overlapping_.end(), char{1})));
    remarks_.emplace_back("skipped", in_.skipped);
    remarks_.emplace_back("skipped_functions", in_.skipped_functions);
    remarks_.emplace_back("independent", in_.independent);
    remarks_.emplace_back("odd_values", odd_values_);
    remarks_.emplace_back("odd_times", in_.odd_times);
    remarks_.emplace_back("completion_differs", differing_);
    remarks_.emplace_back("completion_differs_first_line", first_differing_);
    remarks_.emplace_back("timed_operations", timed_);
    remarks_.emplace_back("by_time", by_time_);
    remarks_.emplace_back("groups", static_cast<std::int64_t>(h_.groups.size()) - 1);
    remarks_.emplace_back("groupless", groupless_);
    remarks_.emplace_back("session_labels", session_labels_);
    if (f_ != nullptr) {
      std::vector<std::int64_t> processes;
      for (std::int32_t p = 1; p < processes_.size(); ++p) processes.push_back(processes_.number(p));
      remarks_.emplace_back("processes", std::move(processes));
    }
    if (initial_ >= 0) remarks_.emplace_back("initial", initial_);
  }

  const Operations& in_;
  const Growing<Operation>& ops_;
  const std::string& name_;
  History& h_;
  Remarks& remarks_;
  Budget& budget_;
  Following* const f_;  // null if a whole file is read

  std::vector<std::size_t> order_;  // empty for the order of the file
  bool by_index_ = false, any_process_ = false;
  std::string index_note_;
  Atoms processes_;                       // used only for its hash table: :process → dense number
  std::vector<std::vector<std::int64_t>> open_;  // process → its open transactions
  std::vector<char> overlapping_;         // process → whether it had several open transactions
  std::vector<char> after_info_;          // process → whether the outcome of its last transaction is unknown
  Growing<Transaction> transactions_;
  std::vector<std::int32_t> session_of_;  // process → session
  std::vector<std::int64_t> session_labels_;
  std::int64_t counts_[5] = {};           // number of transactions per completion type
  std::int64_t invocations_ = 0, uninvoked_ = 0, strays_ = 0, others_ = 0, resumed_ = 0, unknown_reads_ = 0;
  std::int64_t groupless_ = 0;  // number of transactions without a group
  std::int64_t timed_ = 0;  // number of transactions with times of operations or of COMMIT
  bool by_time_ = false;
  std::int64_t initial_ = -1;  // the initial transaction, or -1
  std::int64_t odd_values_ = 0, differing_ = 0, first_differing_ = 0;
};

}  // namespace

bool Operations::alike(const Operation& invoked, const Operation& done) const {
  if (invoked.count != done.count) return false;
  if (invoked.first == done.first) return true;
  for (std::size_t i = 0; i < done.count; ++i) {
    const MicroOp &a = micro_ops[invoked.first + i], &b = micro_ops[done.first + i];
    bool same = a.key == b.key && (is_write(b.kind) ? a.kind == b.kind && a.value == b.value : !is_write(a.kind));
    if (a.is_scan || b.is_scan)
      same = a.is_scan && b.is_scan && scans[idx(a.value)].predicate == scans[idx(b.value)].predicate;
    if (!same) return false;
  }
  return true;
}

void Operations::share(const Operation& invoked, Operation& done) {
  const auto is_scan = [&](std::size_t i) { return micro_ops[done.first + i].is_scan; };
  if (done.count == 0 || !lines.empty() || !alike(invoked, done)) return;
  for (std::size_t i = 0; i < done.count; ++i)
    if (is_scan(i)) return;
  std::copy_n(micro_ops.begin() + done.first, done.count, micro_ops.begin() + invoked.first);
  micro_ops.shrink(done.first);
  done.first = invoked.first;
}

void pair(const Operations& operations, const std::string& name, History& history, Remarks& remarks,
          Budget& budget, Following* following) {
  Pairing(operations, name, history, remarks, budget, following).run();
}

}  // namespace isolang::jepsen

namespace isolang {

Reading read_edn(std::string_view data, const std::string& name, Budget& budget) {
  Reading out;
  const jepsen::Operations operations = jepsen::parse(data, name, out.history, budget);
  jepsen::pair(operations, name, out.history, out.remarks, budget);
  return out;
}

std::optional<Reading> read_edn(const TextInPieces& text, const std::string& name, Budget& budget) {
  Reading out;
  try {
    const jepsen::Operations operations = jepsen::parse(text, name, out.history, budget);
    jepsen::pair(operations, name, out.history, out.remarks, budget);
  } catch (const ReadError&) {
    return std::nullopt;
  } catch (const UnsupportedInput&) {
    return std::nullopt;
  } catch (const NeedsWholeText&) {
    return std::nullopt;
  }
  return out;
}

Reading follow_edn(std::string_view data, const std::string& name, jepsen::Following& following, Budget& budget) {
  Reading out;
  const auto carried = static_cast<std::int64_t>(following.carried_offset.size());
  jepsen::Operations operations =
      jepsen::parse(data, name, out.history, budget, following.lines - carried + 1, following.json);
  if (following.index_is_time) {
    for (jepsen::Operation& op : operations.operations) {
      op.time = op.index;
      op.has_time = op.has_index;
    }
  }
  jepsen::pair(operations, name, out.history, out.remarks, budget, &following);
  return out;
}

}  // namespace isolang
