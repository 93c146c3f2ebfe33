// Logs of single operations on registers, locks and stores of strings: Jepsen's and Knossos's operation maps, the lines
// of Jepsen's log, and Porcupine's logs of get, put and append.
//
// Each operation is a transaction. The history claims the following, and claims less where less is known:
// - :ok is committed. A :read saw its value; a :cas [a b] saw a and wrote b.
// - If the :error of a failed :cas says that a comparison failed, the :cas ran and saw something other than a. It is
//   committed, and that is its read. A :cas with another :error may have been refused, so it shows nothing. For a :cas
//   without :error, FailedCas decides.
// - Other operations that failed are aborted. An operation with :info, or without completion, is indeterminate. For
//   both, the invocation is used, because the completion may contain anything.
// - A lock is a register that is free or locked. Its holder does not matter. :acquire is a :cas [free locked], and
//   :release is a :cas [locked free].
// - In a log with :append, a value is the text of the last :put and of all appends since. A :get shows which operation
//   wrote each part, and each append read the text before it. An append that no :get shows may follow anything, so it
//   is only a write.
// - Real time is the order of the lines, or of :index if every operation has a unique one.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "readers/jepsen.hpp"

namespace isolang {
namespace {

using jepsen::Type;
enum class Function : std::uint8_t { read, write, cas, acquire, release, append };

struct Event {
  Type type = Type::invoke;
  Function function = Function::read;
  bool has_value = false, has_index = false;
  std::optional<bool> compared;  // whether the stated reason of a failure is a comparison; empty if none is stated
  std::int64_t process = 0, index = 0, line = 0;
  std::int32_t key = -1;                             // atom of History::key_atoms, or -1 if not stated
  std::int32_t expected = kNil, value = kNil;        // atoms of History::values
};

struct Log {
  std::vector<Event> events;
  std::int64_t nonclient = 0;
  bool independent = false;  // whether operations name their keys
  bool appends = false;
};

constexpr std::array<std::string_view, 8> kEventFields = {"type", "f",     "process", "index",
                                                          "time", "error", "value",   "key"};

constexpr std::array<std::string_view, 6> kComparisonFailed = {
    "cas-failed",    "compare-failed",      "did-not-match",
    "did-not-succeed", "precondition-failed", "value-mismatch"};

class Parser {
 public:
  Parser(std::string_view data, const std::string& name, History& history, Budget& budget)
      : forms_(data, name), name_(name), history_(history), keys_(history.key_atoms),
        values_(history.values), budget_(budget) {}

  Log parse() {
    forms_.blank();
    char close = '\0';
    if (const char c = forms_.peek(); c == '[' || c == '(') {
      close = c == '[' ? ']' : ')';
      forms_.next();
      forms_.blank();
    }
    const auto start = forms_.mark();
    if (forms_.peek() == '{') {  // the text is JSON iff the first key of the first map is a string
      forms_.next();
      forms_.blank();
      if (forms_.peek() == '"') forms_.read_json(budget_);
      forms_.back_to(start);
    }
    for (forms_.blank(); !forms_.at_end(); forms_.blank()) {
      if (close != '\0' && forms_.peek() == close) {
        forms_.next();
        forms_.blank();
        if (!forms_.at_end()) forms_.expected("the end of the file after the enclosing vector");
        return std::move(log_);
      }
      budget_.poll();
      operation();
    }
    if (close != '\0')
      forms_.fail(std::string("the file ends inside the enclosing vector (expected '") + close +
                  "'); hint: truncated");
    return std::move(log_);
  }

 private:
  void operation() {
    while (forms_.at_tag()) {  // #jepsen.history.Op
      forms_.next();
      forms_.token();
      forms_.blank();
    }
    if (forms_.peek() != '{') forms_.expected("an operation map {…}");
    Event event;
    event.line = forms_.line();
    const Forms::Mark map = forms_.mark();
    forms_.next();
    bool client = false, has_type = false, has_process = false;
    std::string function;
    Forms::Mark value{}, key{};
    for (forms_.blank(); forms_.peek() != '}'; forms_.blank()) {
      if (forms_.at_end())
        forms_.fail("the file ends inside the operation map of line " +
                    std::to_string(event.line) + " (expected '}'); hint: truncated");
      const char c = forms_.peek();
      if (c != ':' && c != '"') {
        forms_.skip();
        forms_.blank();
        forms_.skip();
        continue;
      }
      const std::string field(forms_.word());
      forms_.blank();
      if (forms_.peek() == '}' || forms_.at_end())
        forms_.expected("a value for the last field of the operation map");
      if (field == "type") {
        event.type = jepsen::read_type(forms_);
        has_type = true;
      } else if (field == "f") {
        function = forms_.word();
      } else if (field == "process") {
        has_process = true;
        client = forms_.integer(event.process);
        if (!client) forms_.skip();
      } else if (field == "index" && forms_.integer(event.index)) {
        event.has_index = true;
      } else if (field == "error") {
        event.compared = compared();
      } else {
        if (field == "value") value = forms_.mark();
        if (field == "key") key = forms_.mark();
        forms_.skip();
      }
    }
    forms_.next();
    if (!client) {
      if (!has_process)
        fail_line(name_, event.line,
                  "an operation without :process " +
                      forms_.missing(map, "process", kEventFields, "none", "a number"));
      ++log_.nonclient;
      return;
    }
    if (!has_type)
      fail_line(name_, event.line,
                "an operation map without :type " +
                    forms_.missing(map, "type", kEventFields, "", ":invoke, :ok, :fail or :info"));
    event.function = function_of(function, event.line);
    log_.appends |= event.function == Function::append;
    const auto end = forms_.mark();
    if (key.p != nullptr) {
      forms_.back_to(key);
      event.key = forms_.atom(history_.key_atoms, keys_);
    }
    if (value.p != nullptr) {
      forms_.back_to(value);
      event.has_value = value_of(event);
      forms_.back_to(value);
      const bool nil = forms_.word() == "nil" || forms_.json();
      if (event.function == Function::cas && !event.has_value && !nil) event.compared = false;
    }
    forms_.back_to(end);
    check(event, map);
    log_.events.push_back(event);
  }

  // Returns whether an :error names a comparison, or nothing for nil.
  std::optional<bool> compared() {
    const auto start = forms_.mark();
    const std::string_view word = forms_.word();
    std::optional<bool> named;
    if (word != "nil" && word != "null")
      named = std::ranges::find(kComparisonFailed, word) != kComparisonFailed.end();
    forms_.back_to(start);
    forms_.skip();
    return named;
  }

  Function function_of(const std::string& name, std::int64_t line) const {
    if (name == "read" || name == "get") return Function::read;
    if (name == "write" || name == "put") return Function::write;
    if (name == "cas") return Function::cas;
    if (name == "acquire") return Function::acquire;
    if (name == "release") return Function::release;
    if (name == "append") return Function::append;
    unsupported_line(name_, line,
                     "the operation :f " + quoted(name) +
                         " is none of a register, a lock or a store (expected :read, :write, :cas, "
                         ":acquire, :release, :get, :put or :append)");
  }

  // Reads a value. Returns false if the form here states none.
  bool value_of(Event& event) {
    const char c = forms_.peek();
    const bool pair = c == '[' || c == '(';
    const bool lock = event.function == Function::acquire || event.function == Function::release;
    if (event.function == Function::cas) {
      if (!pair) return false;
      const char close = open_pair();
      const char inner = forms_.peek();
      if (inner == '[' || inner == '(') return false;
      const auto first = forms_.mark();
      forms_.skip();
      forms_.blank();
      const char second = forms_.peek();
      const bool nested = second == '[' || second == '(';
      bool named = nested;  // [key [a b]], or [key a b]
      if (!nested && second != close) {
        forms_.skip();
        named = !ends(close);
      }
      forms_.back_to(first);
      if (named && !name_key(event)) return false;
      forms_.blank();
      if (!nested) return both(event, close);
      return both(event, open_pair()) && ends(close);
    }
    if (event.key >= 0 || !pair || (!independent_ && decided_)) {
      if (lock) return true;
      if (pair || c == '{' || c == '#') return false;
      event.value = forms_.atom(history_.values, values_);
      return true;
    }
    const char close = open_pair();
    if (forms_.peek() == close || !name_key(event)) return false;
    forms_.blank();
    if (forms_.peek() == close || forms_.peek() == '[' || forms_.peek() == '{') return false;
    event.value = forms_.atom(history_.values, values_);
    return ends(close);
  }

  char open_pair() {
    const char close = forms_.peek() == '[' ? ']' : ')';
    forms_.next();
    forms_.blank();
    return close;
  }
  bool ends(char close) {
    forms_.blank();
    return forms_.peek() == close;
  }
  bool name_key(Event& event) {
    const char c = forms_.peek();
    if (c == '[' || c == '(' || c == '{') return false;
    event.key = forms_.atom(history_.key_atoms, keys_);
    return true;
  }
  bool both(Event& event, char close) {
    if (forms_.peek() == close) return false;
    event.expected = forms_.atom(history_.values, values_);
    forms_.blank();
    if (forms_.peek() == close) return false;
    event.value = forms_.atom(history_.values, values_);
    if (!ends(close)) return false;
    forms_.next();
    return true;
  }

  // Checks that either every operation with a value names its key, or none does.
  void check(Event& event, Forms::Mark map) {
    const bool must_tell = event.type == Type::ok && event.function == Function::read;
    const bool tells_key = event.key >= 0;
    const bool nil = event.has_value && !tells_key && event.value == kNil &&
                     event.function == Function::read;
    const bool lock = event.function == Function::acquire || event.function == Function::release;
    if (event.has_value && !nil && !(lock && !tells_key)) {
      if (event.type == Type::invoke || event.type == Type::ok) {
        if (decided_ && independent_ != tells_key)
          fail_line(name_, event.line,
                    independent_ ? "an operation without a key, while those before name one (got "
                                   "no [key value])"
                                 : "an operation that names a key, while those before do not (got "
                                   "[key value])");
        decided_ = true;
        independent_ = log_.independent = tells_key;
      } else if (independent_ != tells_key) {
        event.has_value = false;  // what the map says is not a value
        event.key = -1;
      }
    }
    if (must_tell && !event.has_value)
      fail_line(name_, event.line,
                "a read without a value in an :ok " +
                    forms_.missing(map, "value", kEventFields, "none", "one"));
  }

  Forms forms_;
  const std::string& name_;
  History& history_;
  Numbers keys_, values_;
  Budget& budget_;
  Log log_;
  bool independent_ = false, decided_ = false;
};

// The versions of a key made by :put and :append. Each is represented by the parts that make up its text.
//
// A version consists of its last part and the version before it, so a :get shows a chain of versions. If several
// operations wrote the same text, those that cannot have made a version are excluded: an operation did not make a
// version seen before the operation began, did not follow an operation that had not been invoked yet, and did not
// follow the empty text after a write had completed. An :append makes one version. A :put makes only one that has no
// version before it.
class Texts {
 public:
  static constexpr std::int32_t kNone = -1;
  struct Write {
    bool append;
    std::int32_t text;  // atom of the text
    std::int64_t begin, end, line;
    bool done;  // whether it certainly took place
    std::int32_t version = kNone;
  };

  Texts(const std::string& name, History& history) : name_(name), h_(history) {}

  // Adds a write and returns its number among the writes of the key.
  std::size_t write(std::int32_t key, const Write& write) {
    Key& of = keys_[key];
    of.appends |= write.append;
    of.writes.push_back(write);
    return of.writes.size() - 1;
  }

  // Must be called after all writes. Throws if texts could not be told apart where they are joined.
  void close() {
    for (auto& [key, of] : keys_) {
      for (std::size_t w = 0; w < of.writes.size(); ++w) {
        const Write& write = of.writes[w];
        if (!of.appends) continue;
        if (h_.values.kind(write.text) != AtomKind::string || h_.values.text(write.text).empty())
          unsupported_line(name_, write.line,
                           "a :put or :append of a value that is not a string, on a key with :append (expected a string "
                           "that is not empty)");
        of.parts[std::string(h_.values.text(write.text))].push_back(w);
      }
      const std::string* last = nullptr;
      for (const auto& [text, writes] : of.parts) {
        if (last != nullptr && text.starts_with(*last))
          unsupported_line(name_, of.writes[writes.front()].line,
                           "a string that begins with another string of its key, " + quoted(*last) +
                               " (expected texts that can be told apart where they are joined)");
        last = &text;
      }
    }
  }

  // Returns the version shown by a :get with this value. `end` is the time at which the :get ended. Returns kNone if
  // the key has no :append or if the writes cannot make the value.
  std::int32_t see(std::int32_t key, std::int32_t value, std::int64_t end) {
    const auto found = keys_.find(key);
    if (found == keys_.end() || !found->second.appends) return kNone;
    Key& of = found->second;
    if (h_.values.kind(value) != AtomKind::string) return kNone;
    const std::string whole(h_.values.text(value));
    std::vector<const Parts::value_type*> chain;
    for (std::string_view left = whole; !left.empty(); left.remove_prefix(chain.back()->first.size())) {
      auto part = of.parts.upper_bound(left);
      if (part == of.parts.begin() || !left.starts_with((--part)->first)) return kNone;
      chain.push_back(&*part);
    }
    std::int32_t version = kNone;
    for (const auto* part : chain) {
      const auto [at, fresh] =
          of.number.try_emplace({version, part}, static_cast<std::int32_t>(of.versions.size()));
      if (fresh) of.versions.push_back({version, part, end});
      version = at->second;
      of.versions[idx(version)].seen = std::min(of.versions[idx(version)].seen, end);
    }
    return version;
  }

  // Must be called after all reads. Finds the operation that made each version, and throws if it
  // cannot be determined.
  void assign() {
    for (auto& [key, of] : keys_) assign(of);
  }

  std::int32_t atom(std::int32_t key, std::int32_t version) const {
    return keys_.at(key).versions[idx(version)].atom;
  }
  // The atom written by a write. For an :append that a :get shows, `before` is the atom before it,
  // or kNone.
  struct Made {
    std::int32_t atom, before = kNone;
    bool follows = false;
  };
  Made made(std::int32_t key, std::size_t number) {
    const Key& of = keys_[key];
    const Write& write = of.writes[number];
    if (write.version != kNone) {
      const Version& version = of.versions[idx(write.version)];
      return {version.atom, version.parent == kNone ? kNone : of.versions[idx(version.parent)].atom,
              true};
    }
    if (!write.append || !of.appends || of.versions.empty()) return {write.text};
    return {unique_value(std::string(h_.values.text(write.text)) + ", line " + std::to_string(write.line))};
  }

 private:
  using Parts = std::map<std::string, std::vector<std::size_t>, std::less<>>;  // text → writes
  struct Version {
    std::int32_t parent;
    const Parts::value_type* part;
    std::int64_t seen;                                   // the earliest end of a :get that shows the version
    std::int64_t earliest = kTimeUnknownBegin;           // when all its parts had begun
    std::vector<std::size_t> makers{};                   // the writes that may have made the version
    std::int32_t atom = kNil;
    bool settled = false;
  };
  struct Key {
    bool appends = false;
    std::vector<Write> writes;
    Parts parts;
    std::vector<Version> versions;  // each version comes after its parent
    std::map<std::pair<std::int32_t, const void*>, std::int32_t> number;
  };

  void assign(Key& of) {
    std::int64_t written = kTimeUnknownEnd;  // from then on, the text is not empty
    for (const Write& write : of.writes)
      if (write.done) written = std::min(written, write.end);
    for (Version& version : of.versions) {
      const Version* const parent = version.parent == kNone ? nullptr : &of.versions[idx(version.parent)];
      std::int64_t begun = kTimeUnknownEnd;
      for (const std::size_t w : version.part->second) begun = std::min(begun, of.writes[w].begin);
      version.earliest = parent == nullptr ? begun : std::max(parent->earliest, begun);
      for (const std::size_t w : version.part->second) {
        const Write& write = of.writes[w];
        const bool fits = parent != nullptr ? write.append && write.end >= parent->earliest
                                            : !write.append || write.begin <= written;
        if (fits && write.begin < version.seen) version.makers.push_back(w);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t v = 0; v < of.versions.size(); ++v) {
        Version& version = of.versions[v];
        std::erase_if(version.makers, [&](std::size_t w) {
          return of.writes[w].version != kNone && of.writes[w].version != static_cast<std::int32_t>(v);
        });
        if (version.settled || version.makers.size() != 1) continue;
        version.settled = changed = true;
        if (Write& maker = of.writes[version.makers[0]]; maker.append)
          maker.version = static_cast<std::int32_t>(v);
      }
    }
    for (Version& version : of.versions) settle(of, version);
  }

  void settle(const Key& of, const Version& version) const {
    const auto puts = std::ranges::count_if(
        version.makers, [&](std::size_t w) { return !of.writes[w].append; });
    const bool only_puts = puts == static_cast<std::ptrdiff_t>(version.makers.size());
    bool open = version.makers.size() > 1 && !only_puts;
    if (version.part->second.size() > 1) {  // a repeated :put may make a version again
      const Version* root = &version;
      while (root->parent != kNone) root = &of.versions[idx(root->parent)];
      open |= root != &version && root->makers.size() > 1;
    }
    if (open)
      unsupported_line(name_, of.writes[version.makers.front()].line,
                       "several operations wrote the same string, so a :get of it has several possible sources "
                       "(got " + quoted(version.part->first) + ", expected a string for each)");
  }

 public:
  void name_versions() {
    for (auto& [key, of] : keys_)
      for (Version& version : of.versions) {
        const bool one = version.part->second.size() == 1;
        if (version.makers.empty())
          version.atom = unique_value(whole(of, version));
        else
          version.atom = h_.values.intern_text(
              AtomKind::string, one ? version.part->first : whole(of, version));
      }
  }

 private:
  static std::string whole(const Key& of, const Version& version) {
    std::string text = version.part->first;
    for (std::int32_t v = version.parent; v != kNone; v = of.versions[idx(v)].parent)
      text.insert(0, of.versions[idx(v)].part->first);
    return text;
  }
  // Returns a value different from all others: its kind does not occur in files.
  std::int32_t unique_value(const std::string& text) {
    return h_.values.intern_text(AtomKind::other, "text " + quoted(text));
  }

  const std::string& name_;
  History& h_;
  std::unordered_map<std::int32_t, Key> keys_;
};

class Pairing {
 public:
  Pairing(const Log& log, const std::string& name, FailedCas failed_cas, Reading& out,
          Budget& budget)
      : log_(log), name_(name), failed_cas_(failed_cas), h_(out.history), remarks_(out.remarks),
        budget_(budget), texts_(name, h_) {}

  void run() {
    free_ = h_.values.intern_text(AtomKind::keyword, "free");
    locked_ = h_.values.intern_text(AtomKind::keyword, "locked");
    empty_ = h_.values.intern_text(AtomKind::string, "");
    in_order();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      budget_.poll();
      step(order_[i], static_cast<std::int64_t>(i));
    }
    h_.has_time = invocations_ > 0;
    if (log_.appends) {
      for (Operation& operation : operations_) note_texts(operation);
      texts_.close();
      const auto gets = [&](auto visit) {
        for (Operation& operation : operations_)
          if (const Event* const done = operation.done;
              done != nullptr && done->type == Type::ok && done->function == Function::read)
            visit(operation, done->value);
      };
      gets([&](Operation& operation, std::int32_t value) {
        operation.version = texts_.see(key_of(operation), value, operation.end);
      });
      texts_.assign();
      texts_.name_versions();
      gets([&](Operation& operation, std::int32_t value) {
        operation.saw = operation.version == Texts::kNone
                            ? value
                            : texts_.atom(key_of(operation), operation.version);
      });
    }
    for (const Operation& operation : operations_) {
      budget_.poll();
      emit(operation);
    }
    report();
  }

 private:
  struct Operation {
    const Event *invoked = nullptr, *done = nullptr;
    std::int64_t begin = kTimeUnknownBegin, end = kTimeUnknownEnd;
    std::int32_t saw = kUnknownValue, version = Texts::kNone;
    std::size_t write = 0;  // its number in Texts
    const Event& first() const { return invoked != nullptr ? *invoked : *done; }
  };

  void in_order() {
    for (const Event& event : log_.events) order_.push_back(&event);
    by_index_ = !order_.empty() && std::ranges::all_of(order_, &Event::has_index);
    if (!by_index_) return;
    auto sorted = order_;
    std::ranges::stable_sort(sorted, {}, &Event::index);
    by_index_ = std::ranges::adjacent_find(sorted, {}, &Event::index) == sorted.end();
    if (by_index_) order_ = std::move(sorted);
  }

  void step(const Event* event, std::int64_t position) {
    const auto [open, fresh] = open_.try_emplace(event->process, -1);
    if (event->type == Type::invoke) {
      ++invocations_;
      if (open->second >= 0)
        fail_line(name_, event->line,
                  "process " + std::to_string(event->process) +
                      " has another open operation, that of line " +
                      std::to_string(operations_[idx(open->second)].first().line) +
                      "; hint: one operation at a time per :process");
      open->second = static_cast<std::int64_t>(operations_.size());
      operations_.push_back({event, nullptr, position});
      return;
    }
    if (open->second < 0) {
      if (!event->has_value) {  // nothing is known about the operation
        ++strays_;
        return;
      }
      ++uninvoked_;
      open->second = static_cast<std::int64_t>(operations_.size());
      operations_.push_back({});
    }
    Operation& operation = operations_[idx(std::exchange(open->second, -1))];
    operation.done = event;
    if (event->type != Type::info) operation.end = position;
    if (operation.invoked != nullptr && operation.invoked->function != event->function)
      fail_line(name_, event->line,
                "a completion of another :f than invoked in line " +
                    std::to_string(operation.invoked->line) + "; hint: one operation at a time "
                    "per :process");
  }

  std::int32_t key_of(const Operation& operation) const {
    const Event& first = operation.first();
    if (operation.done != nullptr && operation.done->key >= 0) return operation.done->key;
    return first.key;
  }
  // Returns the event that states the request. That is the invocation or, if the invocation states nothing, the
  // completion.
  const Event& asked(const Operation& operation) const {
    const bool tells = operation.invoked != nullptr && operation.invoked->has_value;
    return tells || operation.done == nullptr ? operation.first() : *operation.done;
  }

  void note_texts(Operation& operation) {
    const Event& event = asked(operation);
    if (event.function == Function::cas)
      unsupported_line(name_, event.line, "a :cas in a log with :append");
    if (event.has_value && (event.function == Function::write || event.function == Function::append))
      operation.write = texts_.write(key_of(operation),
                                     {event.function == Function::append, event.value,
                                      operation.begin, operation.end, event.line,
                                      operation.done != nullptr && operation.done->type == Type::ok});
  }

  void emit(const Operation& operation) {
    const Event& event = asked(operation);
    const Type type = operation.done == nullptr ? Type::info : operation.done->type;
    const bool known = event.has_value || event.function == Function::read ||
                       event.function == Function::acquire || event.function == Function::release;
    const bool compares = event.function == Function::cas ||
                          event.function == Function::acquire || event.function == Function::release;
    const bool failed = type == Type::fail && compares;
    const bool saw_another = failed && known && failed_cas_ != FailedCas::nothing &&
                             operation.done->compared.value_or(failed_cas_ == FailedCas::compared);
    const bool refused = failed && !saw_another;
    ++counts_[static_cast<std::size_t>(type)];
    refused_ += static_cast<std::int64_t>(refused);
    saw_another_ += static_cast<std::int64_t>(saw_another);
    const Status status = type == Type::ok || saw_another ? Status::committed
                          : type == Type::fail            ? Status::aborted
                                                          : Status::indeterminate;
    const auto [session, fresh] = session_.try_emplace(event.process, -1);
    if (session->second < 0) {
      session->second = h_.sessions;
      session_labels_.push_back(event.process);
    }
    const std::int64_t label = by_index_ ? operation.first().index : h_.transactions() + 1;
    h_.begin_transaction(session->second, status, label, event.line, 0,
                         h_.has_time ? operation.begin : kTimeUnknownBegin,
                         h_.has_time ? operation.end : kTimeUnknownEnd);
    if (status == Status::indeterminate) session->second = -1;  // the transaction may take effect later
    if (!known) {
      if (type == Type::ok)
        fail_line(name_, event.line, "an :ok without a known operation (got no :value)");
      ++unknown_;
      return;
    }
    add_operations(operation, event, type, saw_another);
  }

  void add_operations(const Operation& operation, const Event& event, Type type,
                      bool saw_another) {
    const std::int32_t key_atom = key_of(operation);
    const bool lock = event.function == Function::acquire || event.function == Function::release;
    if (key_atom < 0 && log_.independent && !lock) {
      if (type == Type::ok)
        fail_line(name_, event.line, "an operation without a key (got no [key value])");
      ++unknown_;
      return;
    }
    const std::int32_t key = number_of(key_atom, lock);
    const auto add = [&](OpKind kind, std::int32_t value) { h_.add_op(kind, key, value, event.line); };
    std::int32_t expected = event.expected, value = event.value;
    switch (event.function) {
      case Function::read:
        if (type != Type::ok) ++unknown_reads_;
        add(OpKind::read, type != Type::ok       ? kUnknownValue
                          : log_.appends         ? operation.saw
                                                 : operation.done->value);
        return;
      case Function::write:
        return add(OpKind::write, value);
      case Function::append: {
        const auto [text, before, follows] = texts_.made(key_atom, operation.write);
        if (follows) add(OpKind::read, before == Texts::kNone ? empty_ : before);
        return add(OpKind::write, text);
      }
      case Function::acquire:
        expected = free_;
        value = locked_;
        break;
      case Function::release:
        expected = locked_;
        value = free_;
        break;
      case Function::cas:
        break;
    }
    if (saw_another) {
      add(OpKind::read_none_of, h_.add_list({expected}));
      return;
    }
    add(OpKind::read, expected);
    add(OpKind::write, value);
  }

  std::int32_t number_of(std::int32_t atom, bool lock) {
    if (atom < 0)
      atom = h_.key_atoms.intern_text(AtomKind::keyword, lock ? "lock" : "register");
    return h_.key_of(atom, lock ? free_ : log_.appends ? empty_ : kNil);
  }

  void report() {
    const auto count = [&](Type type) { return counts_[static_cast<std::size_t>(type)]; };
    remarks_.emplace_back("order", std::string(by_index_ ? "index" : "line"));
    remarks_.emplace_back("ok", count(Type::ok));
    remarks_.emplace_back("fail", count(Type::fail));
    remarks_.emplace_back("info", count(Type::info));
    remarks_.emplace_back("saw_another", saw_another_);
    remarks_.emplace_back("refused", refused_);
    remarks_.emplace_back("nonclient", log_.nonclient);
    remarks_.emplace_back("stray_completions", strays_);
    remarks_.emplace_back("uninvoked", uninvoked_);
    remarks_.emplace_back("unknown_operations", unknown_);
    remarks_.emplace_back("unknown_reads", unknown_reads_);
    remarks_.emplace_back("appends", log_.appends);
    remarks_.emplace_back("session_labels", session_labels_);
  }

  const Log& log_;
  const std::string& name_;
  const FailedCas failed_cas_;  // `by_format` means that only an :error decides
  History& h_;
  Remarks& remarks_;
  Budget& budget_;
  Texts texts_;
  std::vector<const Event*> order_;
  bool by_index_ = false;
  std::vector<Operation> operations_;
  std::unordered_map<std::int64_t, std::int64_t> open_;     // process → its open operation, or -1
  std::unordered_map<std::int64_t, std::int32_t> session_;  // process → session, or -1
  std::vector<std::int64_t> session_labels_;
  std::array<std::int64_t, 5> counts_{};  // of the operations of each Type
  std::int64_t invocations_ = 0, strays_ = 0, uninvoked_ = 0, unknown_ = 0, unknown_reads_ = 0;
  std::int64_t refused_ = 0, saw_another_ = 0;
  std::int32_t free_ = -1, locked_ = -1, empty_ = -1;
};

}  // namespace

// Returns the lines of jepsen.util as maps, each on its own line: `process :type :f value`. Other lines become empty,
// so that the number of lines is unchanged.
std::string maps_of_log(std::string_view data, std::int64_t& others) {
  constexpr std::string_view kLogger = "jepsen.util - ";
  constexpr std::string_view kBlank = " \t\r";
  std::string maps;
  maps.reserve(data.size() * 2);
  while (!data.empty()) {
    std::string_view line = data.substr(0, data.find('\n'));
    data.remove_prefix(std::min(line.size() + 1, data.size()));
    const auto word = [&] {
      line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
      const std::string_view found = line.substr(0, line.find_first_of(kBlank));
      line.remove_prefix(found.size());
      return found;
    };
    if (const std::size_t at = line.find(kLogger); at != std::string_view::npos) {
      line.remove_prefix(at + kLogger.size());
      const std::string_view process = word(), type = word(), f = word();
      line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
      line.remove_suffix(line.size() - std::min(line.find_last_not_of(kBlank) + 1, line.size()));
      if (type.starts_with(':') && f.starts_with(':')) {
        maps += "{:process ";
        maps += process;
        maps += " :type ";
        maps += type;
        maps += " :f ";
        maps += f;
        if (!line.empty()) {
          maps += " :value ";
          maps += line;
        }
        maps += '}';
      } else {
        ++others;
      }
    } else if (line.find_first_not_of(kBlank) != std::string_view::npos) {
      ++others;
    }
    maps += '\n';
  }
  return maps;
}

Reading read_registers(std::string_view data, const std::string& name, FailedCas failed_cas,
                       Budget& budget) {
  check_size(name, data.size());
  data = without_byte_order_mark(data);
  Reading out;
  std::string maps;
  std::int64_t others = 0;
  const std::size_t start = data.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && data.substr(start).starts_with("INFO")) {
    maps = maps_of_log(data, others);
    data = maps;
    if (failed_cas == FailedCas::by_format) failed_cas = FailedCas::compared;
  }
  const Log log = Parser(data, name, out.history, budget).parse();
  Pairing(log, name, failed_cas, out, budget).run();
  out.remarks.emplace_back("other_lines", others);
  return out;
}

}  // namespace isolang
