#include "certify/statements.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/index.hpp"

namespace isolang::certify {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw NotCertified{"not certified: " + why}; }

// --- forms ---

// A form as a tree: a vector or a map has parts, everything else is its text.
struct Form {
  std::string text;
  char open = '\0';  // '[' or '{'
  std::vector<Form> parts;
};

class FormReader {
 public:
  explicit FormReader(std::string_view text) : text_(text) {}
  Form read() {
    Form form = one();
    if (at_ != text_.size()) refuse("the text " + std::string(text_) + " is no form");
    return form;
  }

 private:
  Form one() {
    const std::size_t first = at_;
    Form form;
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '{')) {
      form.open = text_[at_++];
      const char close = form.open == '[' ? ']' : '}';
      while (at_ < text_.size() && text_[at_] != close) {
        form.parts.push_back(one());
        if (at_ < text_.size() && text_[at_] == ' ') ++at_;
      }
      ++at_;
    } else {
      scalar();
    }
    if (at_ > text_.size()) refuse("the text " + std::string(text_) + " ends early");
    form.text = text_.substr(first, at_ - first);
    return form;
  }
  // Also what has a tag, and sets: their texts are compared, no more.
  void scalar() {
    int depth = 0;
    bool tag = at_ + 1 < text_.size() && text_[at_] == '#' && text_[at_ + 1] != '{' && text_[at_ + 1] != '"';
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\\') {
        ++at_;
      } else if (c == '"') {
        while (++at_ < text_.size() && text_[at_] != '"')
          if (text_[at_] == '\\') ++at_;
      } else if (c == '[' || c == '{') {
        ++depth;
      } else if (c == ']' || c == '}') {
        if (depth-- == 0) return;
      } else if (c == ' ' && depth == 0) {
        if (!tag) return;
        tag = false;
      }
    }
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string name(const Form& form) {
  const std::string& text = form.text;
  if (text[0] == ':') return text.substr(1);
  return text[0] == '"' ? text.substr(1, text.size() - 2) : std::string();
}

// --- values ---

struct Value {
  bool null = false, number = false, whole = false;
  __int128 integer = 0;
  double real = 0;
  std::string text;
};

Value value_of(const std::string& text) {
  Value v;
  v.text = text;
  v.null = text == "nil";
  const std::size_t sign = text[0] == '-' ? 1 : 0;
  if (text.size() == sign || text[sign] < '0' || text[sign] > '9') return v;
  v.number = true;
  v.whole = text.size() <= 20 + sign && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(sign), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (v.whole) {
    for (std::size_t i = sign; i < text.size(); ++i) v.integer = 10 * v.integer + (text[i] - '0');
    if (sign != 0) v.integer = -v.integer;
    return v;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v.real);
  // Such a number is compared by nothing: neither the reader does it, nor this.
  if (error != std::errc{} || end != text.data() + text.size()) v.number = false, v.text = "#odd";
  return v;
}

// -1, 0, 1 for less, equal, greater.
int compare(const Value& a, const Value& b) {
  if (a.whole && b.whole) return a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
  const auto real = [](const Value& v) {
    return v.whole ? static_cast<long double>(v.integer) : static_cast<long double>(v.real);
  };
  return real(a) < real(b) ? -1 : real(a) > real(b) ? 1 : 0;
}

using Columns = std::vector<std::pair<std::string, Value>>;  // few

// --- predicates ---

enum Truth : int { kFalse, kUnknown, kTrue };
using Test = std::function<Truth(const Columns& row, const Value& key)>;

Truth truth_of(bool b) { return b ? kTrue : kFalse; }

const Value& column(const Columns& row, const Value& key, const std::string& of) {
  if (of == "key") return key;
  const auto found = std::ranges::find(row, of, &Columns::value_type::first);
  if (found == row.end()) refuse("a row without the column " + of + " of a predicate");
  return found->second;
}

Test test_of(const Form& form) {
  if (form.open != '[' || form.parts.empty()) refuse("the predicate " + form.text + " is none");
  const std::string head = name(form.parts[0]);
  if (head == "and" || head == "or") {
    std::vector<Test> tests;
    for (std::size_t i = 1; i < form.parts.size(); ++i) tests.push_back(test_of(form.parts[i]));
    return [tests, all = head == "and"](const Columns& row, const Value& key) {
      int found = all ? kTrue : kFalse;
      for (const Test& test : tests) {
        const int t = test(row, key);
        // mutant: checker-and-or
        if (all ? t < found : t > found) found = t;
      }
      return static_cast<Truth>(found);
    };
  }
  if (head == "not" && form.parts.size() == 2)
    return [test = test_of(form.parts[1])](const Columns& row, const Value& key) {
      // mutant: checker-unknown-negated
      return static_cast<Truth>(kTrue - test(row, key));
    };
  if (form.parts.size() < 2) refuse("the predicate " + form.text + " is none");
  const std::string of = name(form.parts[1]);
  if (head == "null")
    return [of](const Columns& row, const Value& key) { return truth_of(column(row, key, of).null); };
  if (form.parts.size() < 3) refuse("the predicate " + form.text + " is none");
  const Value constant = value_of(form.parts[2].text);
  const auto with = [&](auto&& holds) -> Test {
    return [of, constant, holds](const Columns& row, const Value& key) {
      const Value& v = column(row, key, of);
      // mutant: checker-null-compared
      if (v.null || constant.null) return kUnknown;
      return truth_of(holds(v, constant));
    };
  };
  const auto equal = [](const Value& a, const Value& b) {
    return a.number == b.number && (a.number ? compare(a, b) == 0 : a.text == b.text);
  };
  const auto ordered = [&](auto&& holds) {
    return with([holds](const Value& a, const Value& b) {
      if (!a.number || !b.number) refuse("an order of values that are no numbers");
      return holds(compare(a, b));
    });
  };
  if (head == "=") return with(equal);
  if (head == "!=") return with([equal](const Value& a, const Value& b) { return !equal(a, b); });
  if (head == "<") return ordered([](int c) { return c < 0; });
  if (head == "<=") return ordered([](int c) { return c <= 0; });
  if (head == ">") return ordered([](int c) { return c > 0; });
  if (head == ">=") return ordered([](int c) { return c >= 0; });
  if (head == "mod" && form.parts.size() == 4) {
    const Value rest = value_of(form.parts[3].text);
    return [of, constant, rest](const Columns& row, const Value& key) {
      const Value& v = column(row, key, of);
      if (v.null || rest.null) return kUnknown;
      if (!v.whole || !constant.whole || constant.integer < 1 || !rest.number) refuse("a remainder of what is no integer");
      Value found;
      found.number = found.whole = true;
      // mutant: checker-negative-remainder
      found.integer = (v.integer % constant.integer + constant.integer) % constant.integer;
      return truth_of(compare(found, rest) == 0);
    };
  }
  refuse("the predicate " + form.text + " is none");
}

// The least interval of one column outside which no row matches; without a column: none is known.
struct Interval {
  std::string column;
  bool has_low = false, has_high = false;
  Value low, high;
};

Interval interval_of(const Form& form) {
  const std::string head = name(form.parts[0]);
  Interval found;
  if (head == "and") {
    for (std::size_t i = 1; i < form.parts.size(); ++i) {
      const Interval part = interval_of(form.parts[i]);
      if (part.column.empty()) continue;
      if (found.column.empty()) {
        found = part;
      } else if (part.column == found.column) {
        if (part.has_low && (!found.has_low || compare(part.low, found.low) > 0))
          found.has_low = true, found.low = part.low;
        if (part.has_high && (!found.has_high || compare(part.high, found.high) < 0))
          found.has_high = true, found.high = part.high;
      }
    }
    return found;
  }
  const bool low = head == ">" || head == ">=" || head == "=", high = head == "<" || head == "<=" || head == "=";
  if (!low && !high) return found;
  const Value constant = value_of(form.parts[2].text);
  if (!constant.number) return found;
  found.column = name(form.parts[1]);
  found.has_low = low;
  found.has_high = high;
  found.low = found.high = constant;
  return found;
}

class Checker {
 public:
  Checker(const History& h, Budget& budget) : h_(h), budget_(budget) {}

  void run() {
    for (std::int32_t t = 0; t < h_.transactions(); ++t) {
      if (!live(t)) continue;
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
        if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0 && h_.op_value[op] != h_.deleted)
          held_.push_back({h_.op_key[op], h_.op_value[op]});
    }
    for (std::int32_t k = 0; k < h_.n_keys(); ++k)
      // mutant: checker-loaded-rows
      if (h_.initial_value[k] != kNil) held_.push_back({k, h_.initial_value[k]});
    sort_once(held_);
    rows_.resize(idx(h_.values.size()));
    for (std::size_t s = 0; s < h_.statement_start.size(); ++s)
      if (h_.statement_predicate[s] != kJudged && h_.statement_known[s] == 1 && live(h_.statement_txn[s])) {
        budget_.poll();
        statement(s);
      }
  }

 private:
  struct Held {
    std::int32_t key, value;
    auto operator<=>(const Held&) const = default;
  };
  struct Version {
    Held held;
    const Columns* row;
    const Value* key;
  };
  struct InColumn {
    const Value* value;
    const Version* version;
  };
  struct Table {
    std::unordered_map<std::int32_t, Value> keys;
    std::vector<Version> versions;
    std::map<std::string, std::vector<InColumn>> by_column;  // ascending
    std::map<std::string, std::vector<const Version*>> beside;  // no numbers there
  };
  struct Predicate {
    Table* table;
    Test test;
    Interval interval;
  };

  static void sort_once(std::vector<Held>& versions) {
    std::ranges::sort(versions);
    const auto repeated = std::ranges::unique(versions);
    versions.erase(repeated.begin(), repeated.end());
  }

  bool live(std::int32_t t) const {
    const auto status = static_cast<Status>(h_.txn_status[t]);
    return status == Status::committed || status == Status::indeterminate;
  }

  static std::string text(const Atoms& atoms, std::int32_t atom) {
    switch (atoms.kind(atom)) {
      case AtomKind::nil: return "nil";
      case AtomKind::integer: return std::to_string(atoms.number(atom));
      case AtomKind::natural: return std::to_string(static_cast<std::uint64_t>(atoms.number(atom)));
      case AtomKind::keyword: return ":" + std::string(atoms.text(atom));
      case AtomKind::other: return std::string(atoms.text(atom));
      case AtomKind::string: break;
    }
    std::string quoted = "\"";
    for (const char c : atoms.text(atom)) quoted += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
    return quoted + "\"";
  }

  const Columns& row(std::int32_t value) {
    Columns& columns = rows_[idx(value)];
    if (!columns.empty()) return columns;
    const std::string whole = text(h_.values, value);
    const Form form = FormReader(whole).read();
    if (form.open != '{') {
      columns.emplace_back("value", value_of(whole));
    } else {
      for (std::size_t i = 0; i + 1 < form.parts.size(); i += 2)
        columns.emplace_back(name(form.parts[i]), value_of(form.parts[i + 1].text));
    }
    return columns;
  }

  Table& table(const std::string& of) {
    const auto [at, fresh] = tables_.try_emplace(of);
    Table& table = at->second;
    if (!fresh) return table;
    for (std::int32_t k = 0; k < h_.n_keys(); ++k) {
      const Form key = FormReader(text(h_.key_atoms, h_.key_atom[k])).read();
      if (of.empty())
        table.keys.emplace(k, value_of(key.text));
      else if (key.open == '[' && key.parts.size() == 2 && key.parts[0].text == of)
        table.keys.emplace(k, value_of(key.parts[1].text));
    }
    for (const Held& held : held_)
      if (const auto key = table.keys.find(held.key); key != table.keys.end())
        table.versions.push_back({held, &row(held.value), &key->second});
    return table;
  }

  Predicate& predicate(std::int32_t number) {
    const auto [at, fresh] = predicates_.try_emplace(number);
    if (!fresh) return at->second;
    const Form form = FormReader(h_.predicates[number]).read();
    std::string of;
    for (std::size_t i = 0; i + 1 < form.parts.size(); i += 2) {
      if (name(form.parts[i]) == "table") of = form.parts[i + 1].text;
      if (name(form.parts[i]) == "where") {
        at->second.test = test_of(form.parts[i + 1]);
        at->second.interval = interval_of(form.parts[i + 1]);
      }
    }
    at->second.table = &table(of);
    return at->second;
  }

  // Calls visit(held) for each row that ever was in the table and matches.
  template <typename Visit>
  void each_match(const Predicate& p, const Visit& visit) {
    Table& of = *p.table;
    const auto judge = [&](const Version& v) {
      if (p.test(*v.row, *v.key) == kTrue) visit(v.held);
    };
    const Interval& within = p.interval;
    if (within.column.empty()) {
      for (const Version& v : of.versions) judge(v);
      return;
    }
    const auto less = [](const Value* a, const Value* b) { return compare(*a, *b) < 0; };
    const auto [at, fresh] = of.by_column.try_emplace(within.column);
    auto& sorted = at->second;
    auto& beside = of.beside[within.column];
    if (fresh) {
      for (const Version& v : of.versions) {
        const Value& value = column(*v.row, *v.key, within.column);
        if (value.number)
          sorted.push_back({&value, &v});
        else
          beside.push_back(&v);
      }
      std::ranges::stable_sort(sorted, less, &InColumn::value);
    }
    auto i = within.has_low ? std::ranges::lower_bound(sorted, &within.low, less, &InColumn::value) : sorted.begin();
    // mutant: checker-interval
    for (; i != sorted.end() && (!within.has_high || compare(*i->value, within.high) <= 0); ++i) judge(*i->version);
    // mutant: checker-rows-beside
    for (const Version* other : beside) judge(*other);
  }

  void statement(std::size_t s) {
    const std::int32_t t = h_.statement_txn[s];
    const std::int64_t start = h_.statement_start[s], end = h_.statement_end[s];
    const auto bad = [&](const char* what) {
      refuse("the predicate read before operation " + std::to_string(end) + " " + what);
    };
    Predicate& p = predicate(h_.statement_predicate[s]);
    std::vector<std::int32_t> returned;
    std::vector<Held> missed;  // what the set-reads say was not there
    std::ptrdiff_t set_reads = 0;
    for (std::int64_t op = start; op < end; ++op) {
      // mutant: checker-failed-predicate-read
      if (h_.op_ok[op] == 0) return;  // it failed
      const std::int32_t key = h_.op_key[op];
      if (!p.table->keys.contains(key)) bad("has a row of another table");
      const std::int32_t value = h_.op_value[op];
      if (h_.kind(op) == OpKind::read_none_of) {
        const std::int64_t first = h_.list_start[value], last = h_.list_start[idx(value) + 1];
        for (std::int64_t i = first; i < last; ++i) missed.push_back({key, h_.list_values[i]});
        ++set_reads;
        continue;
      }
      returned.push_back(key);
      const bool one = h_.kind(op) == OpKind::read_one_of;
      const std::int32_t seen = one ? h_.list_values[h_.list_start[value]] : value;
      const bool holds = p.test(row(seen), p.table->keys.at(key)) == kTrue;
      // mutant: checker-returned-rows
      if (holds == one) bad("has a row that was judged otherwise");
    }
    std::ranges::sort(returned);
    if (std::ranges::adjacent_find(returned) != returned.end()) bad("returned a key twice");
    sort_once(missed);
    std::ptrdiff_t keys = 0;
    for (std::size_t i = 0; i < missed.size(); ++i) keys += i == 0 || missed[i].key != missed[i - 1].key;
    if (keys != set_reads) bad("misses a key twice, or for no row");
    std::unordered_map<std::int32_t, std::int32_t> own;
    for (std::int64_t op = h_.op_start[t]; op < start; ++op)
      if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0) own[h_.op_key[op]] = h_.op_value[op];
    std::vector<Held> expected;
    each_match(p, [&](const Held& held) {
      if (std::ranges::binary_search(returned, held.key)) return;
      const auto mine = own.find(held.key);
      // mutant: checker-own-rows
      if (mine == own.end() || mine->second == held.value) expected.push_back(held);
    });
    sort_once(expected);
    // mutant: checker-missed-rows
    if (missed != expected) bad("does not say of which rows it says that they were not there");
  }

  const History& h_;
  Budget& budget_;
  std::vector<Held> held_;     // ascending
  std::vector<Columns> rows_;  // per value; empty: not asked for yet
  std::map<std::string, Table> tables_;
  std::unordered_map<std::int32_t, Predicate> predicates_;
};

}  // namespace

void check_statements(const History& history, Budget& budget) {
  if (!history.statement_start.empty()) Checker(history, budget).run();
}

}  // namespace isolang::certify
