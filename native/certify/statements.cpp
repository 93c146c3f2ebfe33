// `check_statements` evaluates every predicate read on the rows that its transaction may have seen, and compares the
// result with the operations derived by the reader. This file has its own parser of forms, values and predicates,
// written from the definition in docs/predicates.md, because the checker must not repeat a mistake of the reader.
#include "certify/statements.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "certify/snapshots.hpp"
#include "core/implicit.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw NotCertified{"not certified: " + why}; }

// --- forms ---

// A form as a tree. Vectors and maps have parts; every other form has only its text.
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
  // Reads any other form, including tagged forms and sets. The texts of such forms are only compared.
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

// A number is a float or a 64-bit integer. Any other text that begins like a number is `odd`.
struct Value {
  bool null = false, number = false, floating = false, odd = false;
  __int128 integer = 0;  // not used for a float
  double real = 0;       // for an integer, the nearest float
  std::string text;
};

Value value_of(const std::string& text) {
  Value v;
  v.text = text;
  v.null = text == "nil";
  const std::size_t sign = text[0] == '-' ? 1 : 0;
  if (text.size() == sign || text[sign] < '0' || text[sign] > '9') return v;
  const std::string_view digits = std::string_view(text).substr(sign);
  v.floating = !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (v.floating) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v.real);
    v.odd = error != std::errc{} || end != text.data() + text.size();
  } else {
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    v.odd = error != std::errc{} || (sign != 0 && size > std::uint64_t{1} << 63U);
    v.integer = sign != 0 ? -static_cast<__int128>(size) : static_cast<__int128>(size);
    v.real = static_cast<double>(v.integer);
  }
  v.number = !v.odd;
  return v;
}

// Sets `integer` to the 64-bit integer that the number equals. Returns false if it equals none.
bool integral(const Value& v, __int128& integer) {
  if (!v.number) return false;
  integer = v.integer;
  if (!v.floating) return true;
  if (!(v.real >= -9223372036854775808.0 && v.real < 18446744073709551616.0)) return false;
  integer = static_cast<__int128>(v.real);
  return static_cast<double>(integer) == v.real;
}

// Returns -1, 0 or 1 for less, equal or greater, with both numbers rounded to floats.
int compare(const Value& a, const Value& b) { return a.real < b.real ? -1 : a.real > b.real ? 1 : 0; }

// Compares exactly. Returns false if the float nearest to an integer equals a float that the integer itself does not
// equal, because databases differ on whether these are equal.
bool compare(const Value& a, const Value& b, int& c) {
  c = compare(a, b);
  if (a.floating && b.floating) return true;
  if (!a.floating && !b.floating) c = a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
  __int128 one = 0, other = 0;
  return a.floating == b.floating || c != 0 || (integral(a, one) && integral(b, other) && one == other);
}

using Columns = std::vector<std::pair<std::string, Value>>;  // a row has few columns

// --- predicates ---

enum Truth : int { kFalse, kUnknown, kTrue };
// Bounds for the truth of a predicate on a row. If a part cannot be evaluated, its bounds are false and true; the other
// parts may still decide the predicate.
struct TruthBounds {
  int low, high;
};
constexpr TruthBounds kOpen{kFalse, kTrue};
using Test = std::function<TruthBounds(const Columns& row, const Value& key)>;

TruthBounds exactly(int truth) { return {truth, truth}; }
TruthBounds truth_of(bool b) { return exactly(b ? kTrue : kFalse); }

const Value* column(const Columns& row, const Value& key, const std::string& of) {
  if (of == "key") return &key;
  const auto found = std::ranges::find(row, of, &Columns::value_type::first);
  return found == row.end() ? nullptr : &found->second;
}

Test test_of(const Form& form) {
  if (form.text == ":true")
    return [](const Columns&, const Value&) { return exactly(kTrue); };
  if (form.open != '[' || form.parts.empty()) refuse("the predicate " + form.text + " is none");
  const std::string head = name(form.parts[0]);
  if (head == "and" || head == "or") {
    std::vector<Test> tests;
    for (std::size_t i = 1; i < form.parts.size(); ++i) tests.push_back(test_of(form.parts[i]));
    return [tests, all = head == "and"](const Columns& row, const Value& key) {
      TruthBounds found = exactly(all ? kTrue : kFalse);
      const auto join = [&](int& found, int t) {
        // mutant: checker-and-or
        if (all ? t < found : t > found) found = t;
      };
      for (const Test& test : tests) {
        const TruthBounds t = test(row, key);
        join(found.low, t.low);
        join(found.high, t.high);
      }
      return found;
    };
  }
  if (head == "not" && form.parts.size() == 2)
    return [test = test_of(form.parts[1])](const Columns& row, const Value& key) {
      const TruthBounds t = test(row, key);
      // mutant: checker-unknown-negated
      const auto negated = [](int truth) { return kTrue - truth; };
      return TruthBounds{negated(t.high), negated(t.low)};
    };
  if (form.parts.size() < 2) refuse("the predicate " + form.text + " is none");
  const std::string of = name(form.parts[1]);
  if (head == "null")
    return [of](const Columns& row, const Value& key) {
      const Value* v = column(row, key, of);
      return v == nullptr ? kOpen : truth_of(v->null);
    };
  if (form.parts.size() < 3) refuse("the predicate " + form.text + " is none");
  const Value constant = value_of(form.parts[2].text);
  const auto with = [&](auto&& holds) -> Test {
    return [of, constant, holds](const Columns& row, const Value& key) {
      const Value* v = column(row, key, of);
      if (v == nullptr) return kOpen;
      // mutant: checker-null-compared
      if (v->null || constant.null) return exactly(kUnknown);
      return holds(*v, constant);
    };
  };
  const auto equal = [&](bool wanted) {
    return with([wanted](const Value& a, const Value& b) {
      if (a.odd || b.odd) return kOpen;
      if (!a.number || !b.number) return truth_of((a.number == b.number && a.text == b.text) == wanted);
      int c = 0;
      return compare(a, b, c) ? truth_of((c == 0) == wanted) : kOpen;
    });
  };
  const auto ordered = [&](auto&& holds) {
    return with([holds](const Value& a, const Value& b) {
      int c = 0;
      return a.number && b.number && compare(a, b, c) ? truth_of(holds(c)) : kOpen;
    });
  };
  if (head == "=") return equal(true);
  if (head == "!=") return equal(false);
  if (head == "<") return ordered([](int c) { return c < 0; });
  if (head == "<=") return ordered([](int c) { return c <= 0; });
  if (head == ">") return ordered([](int c) { return c > 0; });
  if (head == ">=") return ordered([](int c) { return c >= 0; });
  if (head == "mod" && form.parts.size() == 4) {
    __int128 by = 0, rest = 0;
    const Value wanted = value_of(form.parts[3].text);
    if (!integral(constant, by) || by < 1 || !(wanted.null || integral(wanted, rest)))
      refuse("the predicate " + form.text + " is none");
    return with([by, rest, unknown = wanted.null](const Value& v, const Value&) {
      if (unknown) return exactly(kUnknown);
      __int128 whole = 0;
      if (!integral(v, whole)) return kOpen;
      // mutant: checker-negative-remainder
      return truth_of((whole % by + by) % by == rest);
    });
  }
  refuse("the predicate " + form.text + " is none");
}

// An interval of one column outside which no row matches. Without a column, no interval is known.
struct Interval {
  std::string column;
  bool has_low = false, has_high = false;
  Value low, high;
};

Interval interval_of(const Form& form) {
  Interval found;
  if (form.parts.empty()) return found;
  const std::string head = name(form.parts[0]);
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

class StatementChecker {
 public:
  StatementChecker(const History& h, Budget& budget) : h_(h), budget_(budget) {}

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
      if (is_judged(h_, s)) {
        budget_.poll();
        statement(s);
      }
  }

  // Replays the rows through all commits, for one table and one column of numbers at a time, and checks each predicate
  // read at its snapshot.
  void replay(const Snapshots& snapshots) {
    std::map<std::pair<Table*, std::string>, std::vector<std::size_t>> asked;
    for (std::size_t s = 0; s < snapshots.seen.size(); ++s)
      if (snapshots.seen[s] >= 0) {
        const Predicate& p = predicate(h_.statement_predicate[s]);
        asked[{p.table, p.interval.column}].push_back(s);
      }
    for (auto& [of, statements] : asked) {
      std::ranges::stable_sort(statements, {}, [&](std::size_t s) { return snapshots.seen[s]; });
      replay(*of.first, of.second, statements, snapshots);
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
    std::map<std::string, std::vector<InColumn>> by_column;  // ascending by the column
    std::map<std::string, std::vector<const Version*>> beside;  // versions without a number in the column
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

  static bool holds(const Predicate& p, const Columns& row, const Value& key) {
    const TruthBounds t = p.test(row, key);
    if (t.low != kTrue && t.high == kTrue) refuse("whether a row matches a predicate stays open");
    return t.low == kTrue;
  }

  // Calls visit(held) for each matching row ever held by the table.
  template <typename Visit>
  void each_match(const Predicate& p, const Visit& visit) {
    Table& of = *p.table;
    const auto judge = [&](const Version& v) {
      if (holds(p, *v.row, *v.key)) visit(v.held);
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
        const Value* value = column(*v.row, *v.key, within.column);
        if (value != nullptr && value->number)
          sorted.push_back({value, &v});
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

  // Rows ordered by one column, each with its key. Rows without a number in the column come first.
  using Standing = std::map<std::pair<double, std::int32_t>, std::int32_t>;

  void replay(const Table& table, const std::string& of, const std::vector<std::size_t>& statements,
              const Snapshots& snapshots) {
    constexpr double kNoNumber = -std::numeric_limits<double>::infinity();
    Standing rows;
    std::unordered_map<std::int32_t, double> at;  // the position of each key's row in the order
    const auto write = [&](std::int32_t key, std::int32_t value, bool gone) {
      const auto known = table.keys.find(key);
      if (known == table.keys.end()) return;
      if (const auto old = at.find(key); old != at.end()) {
        rows.erase({old->second, key});
        at.erase(old);
      }
      // mutant: checker-deleted-stays
      if (gone) return;
      const Value* const cell = of.empty() ? nullptr : column(row(value), known->second, of);
      const double place = cell != nullptr && cell->number ? cell->real : kNoNumber;
      at[key] = place;
      rows[{place, key}] = value;
    };
    for (std::int32_t key = 0; key < h_.n_keys(); ++key)
      write(key, h_.initial_value[key], h_.initial_value[key] == kNil);
    auto done = snapshots.commits.begin();
    for (const std::size_t s : statements) {
      budget_.poll();
      for (; done - snapshots.commits.begin() < snapshots.seen[s]; ++done)
        for (std::int64_t op = h_.op_start[*done]; op < h_.op_start[*done + 1]; ++op)
          if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0)
            write(h_.op_key[op], h_.op_value[op], h_.op_value[op] == h_.deleted);
      const Predicate& p = predicate(h_.statement_predicate[s]);
      const auto judge = [&](Standing::iterator first, const auto& last) {
        for (; first != rows.end() && !last(first->first.first); ++first)
          if (holds(p, row(first->second), table.keys.at(first->first.second)) &&
              !is_shown_otherwise(s, first->first.second))
            throw Rejected{"predicate read " + std::to_string(s) + " sees a row of key " +
                           std::to_string(first->first.second) + ", which matches, and did not return it"};
      };
      constexpr std::int32_t kFirst = std::numeric_limits<std::int32_t>::min();
      if (of.empty()) {
        judge(rows.begin(), [](double) { return false; });
        continue;
      }
      judge(rows.begin(), [](double place) { return place != kNoNumber; });
      const Interval& within = p.interval;
      judge(within.has_low ? rows.lower_bound({within.low.real, kFirst}) : rows.upper_bound({kNoNumber, std::numeric_limits<std::int32_t>::max()}),
            [&](double place) { return within.has_high && place > within.high.real; });
    }
  }

  // Returns whether an operation of the predicate read, or an earlier write of its transaction, shows which version of
  // the key the predicate read saw.
  bool is_shown_otherwise(std::size_t s, std::int32_t key) const {
    for (std::int64_t op = h_.op_start[h_.statement_txn[s]]; op < h_.statement_end[s]; ++op)
      if (h_.op_key[op] == key && (op >= h_.statement_start[s] || (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0)))
        return true;
    return false;
  }

  void statement(std::size_t s) {
    const std::int32_t t = h_.statement_txn[s];
    const std::int64_t start = h_.statement_start[s], end = h_.statement_end[s];
    const auto bad = [&](const char* what) {
      refuse("the predicate read before operation " + std::to_string(end) + " " + what);
    };
    Predicate& p = predicate(h_.statement_predicate[s]);
    std::vector<std::int32_t> returned;
    std::vector<Held> missed;  // the versions that were absent according to the set-reads
    std::ptrdiff_t set_reads = 0;
    for (std::int64_t op = start; op < end; ++op) {
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
      // mutant: checker-returned-rows
      if (holds(p, row(seen), p.table->keys.at(key)) == one) bad("has a row that was judged otherwise");
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
    const auto expect = [&](const Held& held) {
      if (std::ranges::binary_search(returned, held.key)) return;
      const auto mine = own.find(held.key);
      // mutant: checker-own-rows
      if (mine == own.end() || mine->second == held.value) expected.push_back(held);
    };
    if (h_.statement_known[s] == kImplicit) {
      // The keys of its set-reads, and the keys that its transaction wrote earlier.
      std::vector<std::int32_t> told;
      for (const Held& held : missed) told.push_back(held.key);
      for (const auto& [key, value] : own) told.push_back(key);
      std::ranges::sort(told);
      told.erase(std::unique(told.begin(), told.end()), told.end());
      for (const std::int32_t key : told) {
        const auto known = p.table->keys.find(key);
        if (known == p.table->keys.end()) continue;
        for (auto v = std::ranges::lower_bound(held_, key, {}, &Held::key); v != held_.end() && v->key == key; ++v)
          if (holds(p, row(v->value), known->second)) expect(*v);
      }
    } else {
      each_match(p, expect);
    }
    sort_once(expected);
    // mutant: checker-missed-rows
    if (missed != expected) bad("does not say of which rows it says that they were not there");
  }

  const History& h_;
  Budget& budget_;
  std::vector<Held> held_;     // ascending
  std::vector<Columns> rows_;  // for each value; empty until first needed
  std::map<std::string, Table> tables_;
  std::unordered_map<std::int32_t, Predicate> predicates_;
};

}  // namespace

bool is_judged(const History& h, std::size_t s) {
  const auto status = static_cast<Status>(h.txn_status[h.statement_txn[s]]);
  if (h.statement_predicate[s] == kJudged || (h.statement_known[s] != 1 && h.statement_known[s] != kImplicit) ||
      (status != Status::committed && status != Status::indeterminate))
    return false;
  for (std::int64_t op = h.statement_start[s]; op < h.statement_end[s]; ++op)
    // mutant: checker-failed-predicate-read
    if (h.op_ok[op] == 0) return false;
  return true;
}

void check_statements(const History& history, Budget& budget, const Snapshots* snapshots) {
  if (history.statement_start.empty()) return;
  StatementChecker checker(history, budget);
  checker.run();
  if (snapshots != nullptr) checker.replay(*snapshots);
}

}  // namespace isolang::certify
