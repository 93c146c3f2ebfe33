// Pass 1 over Jepsen's EDN and JSON. `parse` creates one record for each operation map, with micro-operations in flat
// arrays. It does not yet know which invocation belongs to which completion.
#include <algorithm>
#include <array>
#include <limits>

#include "readers/jepsen.hpp"

namespace isolang::jepsen {
namespace {

constexpr std::size_t kMaxOthers = 8;
constexpr unsigned kVersions = 2048;
constexpr unsigned kDetails = 64 | 128 | 256 | 512 | 1024 | kVersions;  // the fields of Details
constexpr std::array<std::string_view, 12> kFields = {"type",   "f",     "value", "process", "time",  "index",
                                                      "times", "commit", "group", "label",   "level", "versions"};

constexpr std::size_t kNoMap = std::numeric_limits<std::size_t>::max();
constexpr std::uint64_t kProcesses = 1 << 16;  // whose last invocations are remembered
constexpr const char* kUnknownMicroOp = "an unknown micro-operation";

class Parser {
 public:
  Parser(std::string_view data, const std::string& name, History& history, Budget& budget, std::int64_t first_line,
         const TextInPieces* more = nullptr)
      : forms_(data, name, first_line), more_(more), name_(name), history_(history), keys_(history.key_atoms),
        values_(history.values), groups_(history.groups), versions_(history.versions),
        budget_(budget) {}

  Operations parse(bool json) {
    if (json) forms_.read_json(budget_);
    forms_.blank();
    char close = '\0';
    std::int64_t opened = 0;
    if (const char c = forms_.peek(); c == '[' || c == '(') {
      close = c == '[' ? ']' : ')';
      opened = forms_.line();
      out_.enclosed = true;
      forms_.next();
      forms_.blank();
    }
    if (!json) look_for_json();
    while (true) {
      forms_.blank();
      if (forms_.at_end() && more_ != nullptr) {
        if (const std::string_view lines = more_->next(); !lines.empty()) {
          expect_maps();
          forms_.go_on(lines);
          continue;
        }
      }
      if (forms_.at_end()) {
        if (close != '\0')
          forms_.fail("the file ends inside the vector opened on line " + std::to_string(opened) + " (expected '" +
                      close + "'); hint: truncated");
        break;
      }
      if (close != '\0' && forms_.peek() == close) {
        forms_.next();
        forms_.blank();
        if (!forms_.at_end()) forms_.expected("the end of the file after the enclosing vector");
        break;
      }
      budget_.poll();
      operation();
    }
    out_.json = forms_.json();
    return std::move(out_);
  }

 private:
  // Reserves room for all maps once, judging by the first ones. What is not filled takes no memory.
  void expect_maps() {
    if (expected_) return;
    expected_ = true;
    const std::size_t times = more_->bytes / static_cast<std::size_t>(forms_.offset()) + 1;
    out_.operations.reserve(out_.operations.size() * times * 9 / 8);
    out_.micro_ops.reserve(out_.micro_ops.size() * times * 9 / 8);
  }

  // Decides whether the text is JSON: it is iff the first key of the first map is a string.
  void look_for_json() {
    const auto start = forms_.mark();
    if (forms_.peek() == '{') {
      forms_.next();
      forms_.blank();
      if (forms_.peek() == '"') {
        if (more_ != nullptr) throw NeedsWholeText("JSON, whose syntax is checked first");
        forms_.read_json(budget_);
      }
    }
    forms_.back_to(start);
  }

  void operation() {
    while (forms_.at_tag()) {
      forms_.next();
      forms_.token();
      forms_.blank();
      ++out_.tagged;
    }
    if (forms_.peek() != '{') forms_.expected("an operation map {…}");
    Operation op;
    at_ = forms_.mark();
    op.line = forms_.line();
    op.offset = forms_.offset();
    if (op.line == last_line_ && out_.unlike_lines == 0) out_.unlike_lines = op.line;
    op.first = out_.micro_ops.size();
    details_ = {};
    forms_.next();
    unsigned seen = 0;
    bool ordered = false;
    wrong_ = {};
    f_.clear();
    short_read_ = false;
    map_ = Forms::Mark{};
    const auto once = [&](unsigned bit, const char* field) {
      if ((seen & bit) != 0) forms_.fail(std::string("the field ") + field + " stands twice in one operation map");
      seen |= bit;
    };
    for (forms_.blank(); forms_.peek() != '}'; forms_.blank()) {
      const char c = forms_.peek();
      if (c != ':' && c != '"') {
        if (forms_.at_end())
          forms_.fail("the file ends inside the operation map of line " + std::to_string(op.line) +
                      " (expected '}'); hint: truncated");
        forms_.skip();  // keys of other types have no meaning here
        forms_.blank();
        forms_.skip();
        continue;
      }
      const std::string_view field = forms_.word();
      // The name is a view into the reader, so decide before reading on.
      const int known = field == "type" ? 1 : field == "f" ? 2 : field == "value" ? 3 : field == "process" ? 4
                      : field == "time" ? 5 : field == "index" ? 6 : field == "times" ? 7 : field == "commit" ? 8
                      : field == "group" ? 9 : field == "label" ? 10 : field == "level" ? 11
                      : field == "versions" ? 12 : 0;
      forms_.blank();
      if (forms_.peek() == '}' || forms_.at_end()) forms_.expected("a value for the last field of the operation map");
      switch (known) {
        case 1: once(1, ":type"); op.type = read_type(forms_); break;
        case 2: once(2, ":f"); op.transactional = function(); break;
        case 3: once(4, ":value"); value(op); break;
        case 4: once(8, ":process"); process(op); break;
        case 5: once(16, ":time"); op.has_time = number(op.time); break;
        case 6: once(32, ":index"); op.has_index = number(op.index); break;
        case 7: once(64, ":times"); times(); break;
        case 8:
          once(128, ":commit");
          details_.has_commit = interval(details_.commit_begin, details_.commit_end);
          break;
        case 9: once(256, ":group"); details_.group = forms_.atom(history_.groups, groups_); break;
        case 10: once(512, ":label"); details_.labels = names(history_.labels, ":label"); break;
        case 11:
          once(1024, ":level");
          details_.level = names(history_.levels, ":level");
          if (history_.levels.names_of(details_.level).size() > 1) forms_.fail("a :level of several names (expected one)");
          break;
        case 12: once(kVersions, ":versions"); ordered = versions(); break;
        default: forms_.skip();
      }
    }
    forms_.next();
    if ((seen & kDetails) != 0) {
      op.details = static_cast<std::int32_t>(out_.details.size());
      out_.details.push_back(details_);
    }
    last_line_ = forms_.line();
    if (last_line_ != op.line && out_.unlike_lines == 0) out_.unlike_lines = op.line;
    if (ordered) {
      if (seen != kVersions)
        fail_line(name_, op.line, ":versions :ordered in an operation map (expected a map of its own, {:versions :ordered})");
      out_.ordered_line = op.line;
      return;
    }
    accept(op);
  }

  // Reads a name (a string, a keyword, a symbol or a number), or nil for no name.
  std::int32_t name(const char* field) {
    if (std::string_view("{[(#\\").find(forms_.peek()) != std::string_view::npos)
      forms_.expected(std::string("a string, a keyword or a number for ") + field);
    return forms_.atom(names_, name_numbers_);
  }

  // Reads a name, or several in brackets, and returns the number of their set. nil is the empty set.
  std::int32_t names(Names& known, const char* field) {
    std::vector<std::int32_t> found;
    const auto one = [&] {
      if (const std::int32_t atom = name(field); atom != kNil)
        found.push_back(known.number_of(names_.name(atom)));
    };
    if (const char open = forms_.peek(); open == '[' || open == '(') {
      const char close = open == '[' ? ']' : ')';
      forms_.next();
      for (forms_.blank(); forms_.peek() != close; forms_.blank()) {
        if (forms_.at_end()) forms_.fail("the file ends inside a list of names; hint: truncated");
        one();
      }
      forms_.next();
    } else {
      one();
    }
    return known.set_of_names(std::move(found));
  }

  // Reads :f. Returns true if it is :txn or nil.
  bool function() {
    const auto start = forms_.mark();
    const char c = forms_.peek();
    if (c == ':' || c == '"' || (c >= 'a' && c <= 'z')) {
      const std::string_view word = forms_.word();
      if (word == "txn" || word == "nil" || (forms_.json() && word == "null")) return true;
    } else {
      forms_.skip();
    }
    f_ = forms_.since(start);
    return false;
  }

  void process(Operation& op) {
    if (forms_.integer(op.process)) {
      op.process_kind = Process::client;
      return;
    }
    const auto start = forms_.mark();
    forms_.skip();
    const std::string_view text = forms_.since(start);
    if (text == "nil" || (forms_.json() && text == "null")) return;
    // A client with a number in another form (1.0, "3") must not be taken for a nemesis, because its operations would
    // vanish.
    const std::size_t digit = text.find_first_not_of("\"-+");
    if (digit != std::string_view::npos && text[digit] >= '0' && text[digit] <= '9') {
      forms_.back_to(start);
      forms_.expected("a 64-bit integer as :process, or a name that is not a number");
    }
    op.process_kind = Process::other;
    if (out_.others.size() < kMaxOthers) {
      const std::string shown(text.substr(0, 40));
      if (is_utf8(shown) && std::find(out_.others.begin(), out_.others.end(), shown) == out_.others.end())
        out_.others.push_back(shown);
    }
  }

  bool number(std::int64_t& n) {
    if (forms_.integer(n)) return true;
    const auto start = forms_.mark();
    forms_.skip();
    const std::string_view text = forms_.since(start);
    if (text != "nil" && text != "null") ++out_.odd_times;
    return false;
  }

  // Reads [begin end], each a number or nil, or the begin alone. Returns false for nil, which is not an interval.
  bool interval(std::int64_t& begin, std::int64_t& end) {
    const auto start = forms_.mark();
    const auto moment = [&](std::int64_t& time) {
      forms_.blank();
      if (forms_.integer(time)) return true;
      const auto at = forms_.mark();
      forms_.skip();
      const std::string_view text = forms_.since(at);
      return text == "nil" || text == "null";
    };
    const char c = forms_.peek();
    if (c != '[' && c != '(') {
      if (forms_.integer(begin)) return true;
      forms_.skip();
      const std::string_view text = forms_.since(start);
      if (text == "nil" || text == "null") return false;
      forms_.back_to(start);
      forms_.expected("times [begin end], in whole nanoseconds");
    }
    forms_.next();
    const bool fine = moment(begin) && moment(end);
    forms_.blank();
    if (!fine || forms_.peek() != (c == '[' ? ']' : ')') || begin > end) {
      forms_.back_to(start);
      forms_.expected("times [begin end], in whole nanoseconds, with begin no later than end");
    }
    forms_.next();
    return true;
  }

  void times() {
    details_.times_first = details_.times_last = out_.times.size();
    const char c = forms_.peek();
    if (c != '[' && c != '(') {
      std::int64_t none = 0, neither = 0;
      if (interval(none, neither)) forms_.expected("one interval [begin end] for each operation in :times");
      return;
    }
    const char close = c == '[' ? ']' : ')';
    forms_.next();
    for (forms_.blank(); forms_.peek() != close; forms_.blank()) {
      if (forms_.at_end()) forms_.fail("the file ends inside :times (expected ']'); hint: truncated");
      std::pair one{kTimeUnknownBegin, kTimeUnknownEnd};
      interval(one.first, one.second);
      out_.times.push_back(one);
    }
    forms_.next();
    details_.times_last = out_.times.size();
  }

  // Reads one version or nil for each operation, or :ordered, which applies to the whole history.
  bool versions() {
    details_.versions_first = details_.versions_last = out_.versions.size();
    const char c = forms_.peek();
    if (c != '[' && c != '(') {
      const auto start = forms_.mark();
      if (c == ':' || c == '"' || c == 'n') {
        const std::string_view word = forms_.word();
        if (word == "ordered") return true;
        if (word == "nil" || word == "null") return false;
      }
      forms_.back_to(start);
      forms_.expected("the versions of the operations, [v …], or :ordered");
    }
    const char close = c == '[' ? ']' : ')';
    forms_.next();
    for (forms_.blank(); forms_.peek() != close; forms_.blank()) {
      if (forms_.at_end()) forms_.fail("the file ends inside :versions (expected ']'); hint: truncated");
      out_.versions.push_back(forms_.atom(history_.versions, versions_));
    }
    forms_.next();
    details_.versions_last = out_.versions.size();
    return false;
  }

  // Reads :value. It often precedes :process, and a process that is not a client may have anything as its :value.
  // Therefore a :value that is not a list of micro-operations is only recorded here, and accept() decides.
  void value(Operation& op) {
    const auto start = forms_.mark();
    const std::size_t ops = out_.micro_ops.size(), lists = out_.list_start.size(), elements = out_.list_values.size();
    const char c = forms_.peek();
    if (c == '[' || c == '(') {
      const char close = c == '[' ? ']' : ')';
      bool found = micro_ops(close);
      if (!found && wrong_.what == nullptr) {
        forms_.back_to(start);
        found = independent(close);
      }
      if (found) {
        op.value_kind = Value::micro_ops;
        op.count = out_.micro_ops.size() - op.first;
        op.short_read = short_read_;
        return;
      }
      forget_micro_ops(ops);
      out_.list_start.resize(lists);
      out_.list_values.shrink(elements);
      forms_.back_to(start);
    }
    if (c == '{') map_ = start;
    forms_.skip();
    const std::string_view text = forms_.since(start);
    if (text == "nil" || (forms_.json() && text == "null")) return;
    op.value_kind = Value::other;
    if (wrong_.what == nullptr) wrong("a :value that is not a vector of micro-operations", start);
  }

  // Reads [key [[:r …] …]] of jepsen.independent. The keys of this history are then pairs of both
  // keys.
  bool independent(char close) {
    forms_.next();
    forms_.blank();
    if (forms_.at_end() || forms_.peek() == close) return false;
    const char c = forms_.peek();
    if (c == '[' || c == '(' || c == '{') return false;  // scalars only: [[:r …] …] is not a pair
    group_.clear();
    forms_.text_of_form(group_);
    forms_.blank();
    const char inner = forms_.peek();
    const bool found = (inner == '[' || inner == '(') && micro_ops(inner == '[' ? ']' : ')');
    group_.clear();
    if (!found) return false;
    forms_.blank();
    if (forms_.peek() != close) return false;
    forms_.next();
    ++out_.independent;
    return true;
  }

  std::int32_t key() {
    if (group_.empty()) return forms_.atom(history_.key_atoms, keys_);
    pair_ = "[" + group_ + " ";
    forms_.text_of_form(pair_);
    pair_ += ']';
    return history_.key_atoms.intern_text(AtomKind::other, pair_);
  }

  // Reads micro-operations. If the form here is something else, returns false and puts the reason
  // into wrong_.
  bool micro_ops(char close) {
    forms_.next();
    for (forms_.blank(); forms_.peek() != close; forms_.blank()) {
      const char c = forms_.peek();
      if (c != '[' && c != '(') return false;
      const char end = c == '[' ? ']' : ')';
      MicroOp op{0, kNil, OpKind::read};
      const std::int64_t line = forms_.line();
      forms_.next();
      forms_.blank();
      const char first = forms_.peek();
      if (first != ':' && first != '"' && !(first >= 'a' && first <= 'z')) return false;
      const auto start = forms_.mark();
      const std::string_view word = forms_.word();
      bool deletes = false;
      if (word == "r") {
        op.kind = OpKind::read;
      } else if (word == "w") {
        op.kind = OpKind::write;
      } else if (word == "append") {
        op.kind = OpKind::append;
      } else if (word == "insert") {
        op.kind = OpKind::write;
      } else if (word == "delete") {
        op.kind = OpKind::write;
        op.value = history_.deleted_atom();
        deletes = true;
      } else if (word == "rp") {
        if (!scan(op, end, start)) return false;
        add(op, line);
        continue;
      } else if (word == "r-in") {
        op.kind = OpKind::read_one_of;
      } else if (word == "r-not-in") {
        op.kind = OpKind::read_none_of;
      } else if (word == "read" || word == "write") {
        return wrong("a micro-operation of Knossos' multi-register, where a read of nil says nothing; the nearest "
                     "model has :r and :w", start);
      } else {
        return wrong(kUnknownMicroOp, start);
      }
      forms_.blank();
      if (forms_.peek() == end) return wrong("a micro-operation without a key", start);
      op.key = key();
      forms_.blank();
      const char v = forms_.peek();
      if (v == end && is_write(op.kind) && !deletes)
        return wrong("a micro-operation without a value", start);
      if (deletes) {
        if (v != end && forms_.atom(history_.values, values_) != kNil)
          return wrong("a delete with a value", start);
      } else if (v == end) {
        short_read_ = true;
        if (is_set_read(op.kind)) op.value = kUnknownValue;
      } else if (!is_write(op.kind) && (v == '[' || v == '(')) {
        if (op.kind == OpKind::read) op.kind = OpKind::read_list;
        op.value = list(v == '[' ? ']' : ')');
      } else if (is_set_read(op.kind)) {  // nil if the result is not known
        op.value = kUnknownValue;
        if (forms_.atom(history_.values, values_) != kNil)
          return wrong("a set-read without a list of values", start);
      } else {
        op.value = forms_.atom(history_.values, values_);
      }
      forms_.blank();
      if (forms_.peek() != end) {
        if (forms_.at_end()) return false;
        return wrong("a micro-operation with more than a key and a value", start);
      }
      forms_.next();
      add(op, line);
    }
    forms_.next();
    return true;
  }

  void add(const MicroOp& op, std::int64_t line) {
    if (line != at_.line) out_.lines.emplace_back(out_.micro_ops.size(), line);
    out_.micro_ops.push_back(op);
  }
  // Forgets all micro-operations but the first ones.
  void forget_micro_ops(std::size_t kept) {
    out_.micro_ops.shrink(kept);
    while (!out_.lines.empty() && out_.lines.back().first >= kept) out_.lines.pop_back();
  }

  // Reads [:rp predicate {key row …}], after its name.
  bool scan(MicroOp& op, char end, Forms::Mark start) {
    Scan scan{{}, false, out_.rows.size(), out_.rows.size()};
    forms_.blank();
    if (forms_.peek() == end) return wrong("a predicate read without a predicate", start);
    const auto predicate = forms_.mark();
    std::string text;
    forms_.text_of_form(text);
    forms_.blank();
    const char c = forms_.peek();
    if (c == '{') {
      scan.known = true;
      forms_.next();
      for (forms_.blank(); forms_.peek() != '}'; forms_.blank()) {
        if (forms_.at_end()) return false;
        const std::int32_t row_key = key();
        forms_.blank();
        out_.rows.push_back({row_key, forms_.atom(history_.values, values_)});
        if (out_.rows.back().value == kNil)
          return wrong("a returned row that is nil", start);
      }
      forms_.next();
    } else if (c == end) {
      short_read_ = true;
    } else if (forms_.atom(history_.values, values_) != kNil) {
      return wrong("a predicate read whose rows are no map", start);
    }
    scan.last = out_.rows.size();
    forms_.blank();
    if (forms_.peek() != end) return wrong("a predicate read with more than a predicate and rows", start);
    forms_.next();
    try {
      scan.predicate = canonical_predicate(text);
    } catch (const std::invalid_argument& e) {
      fail_at(name_, "line " + std::to_string(predicate.line) + ", column " + std::to_string(forms_.column(predicate)),
              e.what(), predicate.line);
    }
    op.is_scan = true;
    op.value = static_cast<std::int32_t>(out_.scans.size());
    out_.scans.push_back(std::move(scan));
    return true;
  }

  bool wrong(const char* what, Forms::Mark start) {
    wrong_ = {what, start, forms_.since(start)};
    return false;
  }

  std::int32_t list(char close) {
    forms_.next();
    for (forms_.blank(); forms_.peek() != close; forms_.blank()) {
      if (forms_.at_end())
        forms_.fail("the file ends inside a list (expected '" + std::string(1, close) + "'); hint: truncated");
      out_.list_values.push_back(forms_.atom(history_.values, values_));
    }
    forms_.next();
    out_.list_start.push_back(out_.list_values.size());
    return static_cast<std::int32_t>(out_.list_start.size()) - 2;
  }

  void accept(Operation& op) {
    if (op.process_kind != Process::other) {
      if (is_init()) initial_state(op);
      if (!op.transactional) op.transactional = holds_operations(op);
      if (!op.transactional && (op.process_kind == Process::client || op.type != Type::info)) return skip_function(op);
      if (op.type == Type::missing)
        fail_line(name_, op.line,
                  "an operation map without :type " + missing("type", "", ":invoke, :ok, :fail or :info"));
      const bool must_tell = op.type == Type::invoke || op.type == Type::ok;
      if (op.value_kind == Value::other && (must_tell || wrong_.what == kUnknownMicroOp)) {
        std::string message = std::string(wrong_.what) + " (got " + quoted(wrong_.got) +
                              forms_.at_column(wrong_.at, op.line) +
                              ", expected [[:w k v] …], [[:append k v] …], [[:r k v] …])";
        if (must_tell) unsupported_line(name_, op.line, message);
        out_.misspelt.emplace_back(op.line, std::move(message));
      }
      if (must_tell && op.value_kind == Value::missing)
        unsupported_line(name_, op.line,
                         "a transaction without :value " + missing("value", "nil", "a vector of micro-operations"));
      if (op.process_kind == Process::missing && op.transactional && out_.no_process.line == 0)
        out_.no_process = {op.line, missing("process", "none", "a number")};
      if (op.type == Type::ok && op.short_read)
        fail_line(name_, op.line, "a read without a value in an :ok (got [:r k], expected [:r k v])");
    }
    if (op.process_kind == Process::client) share(op);
    out_.operations.push_back(op);
  }

  // Stores the micro-operations of a completion in the place of its process's last invocation, which it likely completes.
  void share(Operation& op) {
    const auto process = static_cast<std::uint64_t>(op.process);
    if (process >= kProcesses) return;
    if (process >= invoked_.size()) invoked_.resize(idx(process) + 1, kNoMap);
    std::size_t& invoked = invoked_[idx(process)];
    if (op.type != Type::invoke && invoked != kNoMap) out_.share(out_.operations[invoked], op);
    invoked = op.type == Type::invoke ? out_.operations.size() : kNoMap;
  }

  // Describes that the current map lacks a field.
  std::string missing(std::string_view field, const std::string& got, const std::string& expected) {
    return forms_.missing(at_, field, kFields, got, expected);
  }

  // Returns whether the map is a transaction called :read or :write, as in Jepsen's long-fork workload. A completion
  // may leave the value out.
  bool holds_operations(const Operation& op) {
    if (f_ != ":read" && f_ != ":write" && f_ != "\"read\"" && f_ != "\"write\"") return false;
    const bool known = std::find(transactions_.begin(), transactions_.end(), f_) != transactions_.end();
    const bool holds = op.value_kind == Value::micro_ops && op.count > 0;
    if (holds && !known) transactions_.push_back(f_);
    return holds || (known && op.value_kind == Value::missing && (op.type == Type::fail || op.type == Type::info));
  }

  bool is_init() const { return f_ == ":init" || f_ == "\"init\""; }

  // Reads {:f :init, :value {key row …}} of Elle's closed predicates as writes of the initial transaction.
  void initial_state(Operation& op) {
    op.initial = op.transactional = true;
    if (op.value_kind == Value::missing) return;
    if (map_.p == nullptr)
      fail_line(name_, op.line, "the :value of an :init is not a map (expected the rows at the beginning, {key row …})");
    const auto after = forms_.mark();
    forms_.back_to(map_);
    forms_.next();
    for (forms_.blank(); forms_.peek() != '}'; forms_.blank()) {
      MicroOp write{0, kNil, OpKind::write};
      const std::int64_t line = forms_.line();
      write.key = key();
      forms_.blank();
      write.value = forms_.atom(history_.values, values_);
      add(write, line);
    }
    forms_.back_to(after);
    op.value_kind = Value::micro_ops;
    op.count = out_.micro_ops.size() - op.first;
  }

  // Counts an operation that is not a transaction. Such operations are never judged, only reported.
  void skip_function(const Operation& op) {
    constexpr std::size_t kMaxFunctions = 8;
    if (out_.skipped++ == 0) out_.skipped_line = op.line;
    std::string f(f_.substr(0, 40));
    if (!is_utf8(f)) f = quoted(f);
    auto& seen = out_.skipped_functions;
    if (seen.size() < kMaxFunctions && std::find(seen.begin(), seen.end(), f) == seen.end()) seen.push_back(std::move(f));
    forget_micro_ops(op.first);
  }

  Forms forms_;
  const TextInPieces* const more_;  // what follows the text in `forms_`; null if nothing does
  const std::string& name_;
  History& history_;
  Numbers keys_, values_, groups_, versions_;
  Atoms names_;  // used only to read :label and :level
  Numbers name_numbers_{names_};
  Budget& budget_;
  Operations out_;
  bool expected_ = false;  // whether room for all maps has been reserved
  Details details_;  // of the current map
  std::vector<std::size_t> invoked_;  // per process, the number of its open invocation, or kNoMap
  struct Wrong {
    const char* what = nullptr;
    Forms::Mark at{};
    std::string_view got;
  } wrong_;  // the reason why the current :value is not a list of micro-operations
  std::string f_;      // :f of the current map, if it is not :txn
  std::vector<std::string> transactions_;  // other values of :f under which there were micro-operations
  Forms::Mark at_{};          // where the current map begins
  Forms::Mark map_{};         // :value of the current map, if it is a map
  bool short_read_ = false;   // whether the current map has a read without a value
  std::int64_t last_line_ = 0;  // where the previous map ended
  std::string group_, pair_;  // group_: the current independent key; pair_: this key together with a key of its own
};

}  // namespace

Type read_type(Forms& forms) {
  const auto start = forms.mark();
  const std::string_view word = forms.word();
  if (word == "invoke") return Type::invoke;
  if (word == "ok") return Type::ok;
  if (word == "fail") return Type::fail;
  if (word == "info") return Type::info;
  forms.back_to(start);
  forms.expected("a :type of :invoke, :ok, :fail or :info");
}

Operations parse(std::string_view data, const std::string& name, History& history, Budget& budget,
                 std::int64_t first_line, bool json) {
  check_size(name, data.size());
  return Parser(without_byte_order_mark(data), name, history, budget, first_line).parse(json);
}

Operations parse(const TextInPieces& text, const std::string& name, History& history, Budget& budget) {
  return Parser(without_byte_order_mark(text.next()), name, history, budget, 1, &text).parse(false);
}

}  // namespace isolang::jepsen
