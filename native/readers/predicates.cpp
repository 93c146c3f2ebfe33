#include "readers/predicates.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

[[noreturn]] void wrong(const std::string& what) { throw std::invalid_argument(what); }
std::string in_quotes(std::string_view text) {
  return "'" + std::string(text.substr(0, 60)) + (text.size() > 60 ? "…" : "") + "'";
}

// --- canonical texts of forms ---

// The elements of a vector or a map in canonical text.
class Elements {
 public:
  explicit Elements(std::string_view inside) : left_(inside) {}
  bool next(std::string_view& form) {
    if (left_.empty()) return false;
    const std::size_t size = length(left_);
    form = left_.substr(0, size);
    left_.remove_prefix(std::min(size + 1, left_.size()));
    return true;
  }

 private:
  // Of the first form: to the blank that is in no string and no bracket.
  static std::size_t length(std::string_view text) {
    int depth = 0;
    bool tagged = text[0] == '#' && text.size() > 1 && text[1] != '{' && text[1] != '"';
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"') {
        for (++i; i < text.size() && text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
      } else if (c == '\\') {
        ++i;
      } else if (c == '[' || c == '{') {
        ++depth;
      } else if (c == ']' || c == '}') {
        --depth;
      } else if (c == ' ' && depth == 0) {
        if (!tagged) return i;
        tagged = false;  // the form after the tag
      }
    }
    return text.size();
  }
  std::string_view left_;
};

std::vector<std::string_view> elements(std::string_view form) {
  std::vector<std::string_view> found;
  Elements inside(form.substr(1, form.size() - 2));
  for (std::string_view e; inside.next(e);) found.push_back(e);
  return found;
}

// The name that a keyword or a string says; JSON has strings only.
std::string_view name_of(std::string_view form) {
  if (form.size() > 1 && form[0] == ':') return form.substr(1);
  if (form.size() > 2 && form[0] == '"') return form.substr(1, form.size() - 2);
  return {};
}

// --- values ---

struct Cell {
  // odd: a number that is not exact here
  enum class Kind : std::uint8_t { null, number, text, odd } kind = Kind::null;
  bool whole = false;      // an integer of 64 bits, or a float that equals one
  bool real = false;       // a float
  __int128 integer = 0;    // if whole
  double number = 0;       // as a float, perhaps rounded
  std::string_view text;   // canonical
};

bool is_number(std::string_view form) {
  const std::size_t sign = !form.empty() && (form[0] == '-' || form[0] == '+') ? 1 : 0;
  return form.size() > sign && form[sign] >= '0' && form[sign] <= '9';
}

// A float that is an integer of 64 bits, signed or not.
bool is_whole(double real) { return real >= -0x1p63 && real < 0x1p64 && std::floor(real) == real; }

Cell cell_of(std::string_view form) {
  Cell cell;
  if (form == "nil") return cell;
  cell.text = form;
  cell.kind = Cell::Kind::text;
  if (!is_number(form)) return cell;
  const char *first = form.data(), *last = first + form.size();
  const auto read = [&](auto& number) {
    const auto [end, error] = std::from_chars(first, last, number);
    return error == std::errc{} && end == last;
  };
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  cell.kind = Cell::Kind::number;
  cell.whole = true;
  if (read(integer)) {
    cell.integer = integer;
    cell.number = static_cast<double>(integer);
  } else if (read(natural)) {
    cell.integer = natural;
    cell.number = static_cast<double>(natural);
  } else if (form.find_first_of(".eE") != std::string_view::npos && read(cell.number)) {
    cell.real = true;
    cell.whole = is_whole(cell.number);
    if (cell.whole) cell.integer = static_cast<__int128>(cell.number);
  } else {
    cell.kind = Cell::Kind::odd;
  }
  return cell;
}

void comparable(const Cell& cell) {
  if (cell.kind == Cell::Kind::odd)
    wrong("a number that predicates cannot compare exactly (got " + in_quotes(cell.text) +
          ", expected an integer of 64 bits or a float); hint: write decimals as integers of a unit");
}

template <typename Number>
int order(const Number& a, const Number& b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// -1, 0, 1 for less, equal, greater, of numbers. None of an integer and a float where it matters
// whether the integer is first rounded to a float: databases differ in that.
std::optional<int> compare(const Cell& a, const Cell& b) {
  const int rounded = order(a.number, b.number);
  if (a.real == b.real) return a.real ? rounded : order(a.integer, b.integer);
  if (rounded != 0 || (a.whole && b.whole && a.integer == b.integer)) return rounded;
  return std::nullopt;
}

// --- predicates ---

enum class Truth : std::uint8_t { no, unknown, yes };
enum class Test : std::uint8_t { all, any, negation, null, equal, unequal, less, less_equal, greater, greater_equal, mod };

struct Node {
  Test test;
  std::vector<Node> parts;
  std::string column;
  std::vector<std::string> constants;  // canonical texts; `cells` view them
  std::vector<Cell> cells;
};

Node comparison(Test test, std::string_view column, std::string_view constant) {
  return {test, {}, std::string(column), {std::string(constant)}, {}};
}

struct Parser {
  static constexpr std::pair<std::string_view, Test> kComparisons[] = {
      {"=", Test::equal},       {"!=", Test::unequal},     {"not=", Test::unequal},
      {"<>", Test::unequal},    {"<", Test::less},         {"<=", Test::less_equal},
      {">", Test::greater},     {">=", Test::greater_equal}};

  static Node parse(std::string_view form, int depth = 0) {
    if (depth > 64) wrong("a predicate nested more than 64 deep");
    if (name_of(form) == "true" || form == "true") return {Test::all, {}, {}, {}, {}};
    if (form.size() < 2 || form[0] != '[')
      wrong("not a predicate (got " + in_quotes(form) + ", expected [:= :column value] or the like)");
    const auto parts = elements(form);
    const std::string_view head = parts.empty() ? std::string_view{} : name_of(parts[0]);
    const auto arguments = [&](std::size_t least, std::size_t most) {
      if (parts.size() - 1 < least || parts.size() - 1 > most)
        wrong("a predicate with " + std::to_string(parts.size() - 1) + " arguments (got " +
              in_quotes(form) + ", expected " + std::to_string(least) + ")");
    };
    if (head == "and" || head == "or" || head == "not") {
      if (head == "not") arguments(1, 1);
      Node node{head == "and" ? Test::all : head == "or" ? Test::any : Test::negation, {}, {}, {}, {}};
      for (std::size_t i = 1; i < parts.size(); ++i) node.parts.push_back(parse(parts[i], depth + 1));
      return node;
    }
    for (const auto& [name, test] : kComparisons)
      if (head == name) {
        arguments(1, 2);  // one: of the value itself, as Elle has it
        return comparison(test, parts.size() == 2 ? "value" : column(parts[1]), parts.back());
      }
    if (head == "null") {
      arguments(1, 1);
      return {Test::null, {}, std::string(column(parts[1])), {}, {}};
    }
    if (head == "between") {
      arguments(3, 3);
      const std::string_view of = column(parts[1]);
      return {Test::all, {comparison(Test::greater_equal, of, parts[2]), comparison(Test::less_equal, of, parts[3])}, {}, {}, {}};
    }
    if (head == "in") {
      arguments(2, 2);
      if (parts[2].empty() || parts[2][0] != '[')
        wrong("not a list of values (got " + in_quotes(parts[2]) + ", expected [value …])");
      Node node{Test::any, {}, {}, {}, {}};
      for (const std::string_view value : elements(parts[2]))
        node.parts.push_back(comparison(Test::equal, column(parts[1]), value));
      return node;
    }
    if (head == "mod") {
      arguments(2, 3);
      const auto at = parts.size() - 2;
      return {Test::mod, {}, std::string(at == 1 ? "value" : column(parts[1])), {std::string(parts[at]), std::string(parts[at + 1])}, {}};
    }
    if (head == "like" || head == "ilike" || head == "similar" || head == "regex")
      wrong("a predicate on patterns, which a collation decides (got " + in_quotes(form) + "); hint: " + kHint);
    if (head == "limit" || head == "top" || head == "offset" || head == "order-by")
      wrong("a read of some of the rows that match, which says nothing of those that it did not return (got " +
            in_quotes(form) + "); hint: record the rows as item reads");
    if (head == "count" || head == "sum" || head == "min" || head == "max" || head == "avg" || head == "exists")
      wrong("an aggregate, which no row by itself decides (got " + in_quotes(form) + "); hint: " + kHint);
    wrong("an unknown predicate (got " + in_quotes(form) +
          ", expected :=, :!=, :<, :<=, :>, :>=, :between, :in, :null, :mod, :and, :or or :not)");
  }

  static std::string_view column(std::string_view form) {
    const std::string_view name = name_of(form);
    if (name.empty()) wrong("not a column (got " + in_quotes(form) + ", expected :name)");
    return name;
  }
  static constexpr const char* kHint = "record the rows that it returned as item reads";
};

void show(const Node& n, std::string& out) {
  const auto parts = [&](const char* head) {
    out += head;
    for (const Node& part : n.parts) {
      out += ' ';
      show(part, out);
    }
    out += ']';
  };
  const auto values = [&](std::string head) {
    const bool plain = n.column.find_first_of(" \"\\[]{}:") == std::string::npos;
    out += "[:" + head + " " + (plain ? ":" + n.column : "\"" + n.column + "\"");
    for (const std::string& value : n.constants) out += " " + value;
    out += ']';
  };
  switch (n.test) {
    case Test::all: return parts("[:and");
    case Test::any: return parts("[:or");
    case Test::negation: return parts("[:not");
    case Test::null: return values("null");
    case Test::equal: return values("=");
    case Test::unequal: return values("!=");
    case Test::less: return values("<");
    case Test::less_equal: return values("<=");
    case Test::greater: return values(">");
    case Test::greater_equal: return values(">=");
    case Test::mod: return values("mod");
  }
}

// Constants are looked at once; what cannot be compared is refused.
void settle(Node& n) {
  for (Node& part : n.parts) settle(part);
  for (const std::string& constant : n.constants) {
    n.cells.push_back(cell_of(constant));
    comparable(n.cells.back());
    const bool order = n.test != Test::equal && n.test != Test::unequal;
    if (order && n.cells.back().kind == Cell::Kind::text)
      wrong("an order of values that are no numbers, which a collation decides (got " +
            in_quotes(constant) + ", expected a number)");
  }
  if (n.test == Test::mod && (!n.cells[0].whole || n.cells[0].integer < 1))
    wrong("a modulus that is no positive integer of 64 bits (got " + in_quotes(n.constants[0]) + ")");
  if (n.test == Test::mod && n.cells[1].kind != Cell::Kind::null && !n.cells[1].whole)
    wrong("a remainder that is no integer of 64 bits (got " + in_quotes(n.constants[1]) + ")");
}

struct Predicate {
  std::string table;  // canonical text of the first part of its keys; empty for all keys
  Node where;
};

Predicate parse_predicate(std::string_view form) {
  Predicate p{{}, {Test::all, {}, {}, {}, {}}};
  if (form.empty() || form[0] != '{') {
    p.where = Parser::parse(form);
  } else {
    const auto parts = elements(form);
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      const std::string_view name = name_of(parts[i]);
      if (name == "table") {
        p.table = parts[i + 1];
      } else if (name == "where") {
        p.where = Parser::parse(parts[i + 1]);
      } else if (name == "limit" || name == "order-by" || name == "offset" || name == "group-by") {
        wrong("a read of some of the rows that match, which says nothing of those that it did not return (got " +
              in_quotes(form) + "); hint: record the rows as item reads");
      } else {
        wrong("not a predicate read (got " + in_quotes(form) + ", expected {:table T :where P})");
      }
    }
  }
  settle(p.where);
  return p;
}

// --- rows ---

struct Row {
  std::vector<std::pair<std::string_view, Cell>> columns;
  std::string text;  // that of the atom, where `columns` point into
};

std::string text_of(const Atoms& atoms, std::int32_t atom) {
  switch (atoms.kind(atom)) {
    case AtomKind::nil: return "nil";
    case AtomKind::integer: return std::to_string(atoms.number(atom));
    case AtomKind::natural: return std::to_string(static_cast<std::uint64_t>(atoms.number(atom)));
    case AtomKind::keyword: return ":" + std::string(atoms.text(atom));
    case AtomKind::other: return std::string(atoms.text(atom));
    case AtomKind::string: break;
  }
  std::string text = "\"";
  for (const char c : atoms.text(atom)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text += '"';
}

class Rows {
 public:
  explicit Rows(const History& h) : h_(h) {}
  const Row& of(std::int32_t value) {
    auto& row = rows_[value];
    if (row != nullptr) return *row;
    row = std::make_unique<Row>();
    row->text = text_of(h_.values, value);
    if (row->text[0] == '{') {
      const auto parts = elements(row->text);
      for (std::size_t i = 0; i + 1 < parts.size(); i += 2) row->columns.emplace_back(name_of(parts[i]), cell_of(parts[i + 1]));
    } else {
      row->columns.emplace_back("value", cell_of(row->text));
    }
    return *row;
  }

 private:
  const History& h_;
  std::unordered_map<std::int32_t, std::unique_ptr<Row>> rows_;
};

// Of what is true of a row: the least and the most that it may be. They differ where a part cannot
// be decided, `why` says which; that does no harm if the other parts decide the matter.
struct Judged {
  Truth least, most;
};

Judged known(Truth truth) { return {truth, truth}; }
Truth of(bool yes) { return yes ? Truth::yes : Truth::no; }
Truth negated(Truth t) {
  // mutant: unknown-negated
  return t == Truth::unknown ? t : of(t == Truth::no);
}

Judged compared(const Node& n, const Row& row, const Cell& key, std::string& why) {
  const auto open = [&](const auto&... parts) {
    if (why.empty()) (why += ... += parts);
    return Judged{Truth::no, Truth::yes};
  };
  const Cell* found = n.column == "key" ? &key : nullptr;
  for (const auto& [column, cell] : row.columns)
    if (found == nullptr && column == n.column) found = &cell;
  if (found == nullptr)
    return open("the row ", in_quotes(row.text), " has no column ", in_quotes(n.column),
                " (hint: name the table of the predicate, or give all columns of a row)");
  const Cell& cell = *found;
  if (n.test == Test::null) return known(of(cell.kind == Cell::Kind::null));
  const Cell& constant = n.cells[n.test == Test::mod ? 1 : 0];
  // mutant: null-compared
  if (cell.kind == Cell::Kind::null || constant.kind == Cell::Kind::null) return known(Truth::unknown);
  try {
    comparable(cell);
  } catch (const std::invalid_argument& e) {
    return open(e.what());
  }
  if (n.test == Test::mod) {
    if (!cell.whole) return open("a remainder of what is no integer of 64 bits (got ", in_quotes(cell.text), ")");
    const __int128 by = n.cells[0].integer;
    return known(of((cell.integer % by + by) % by == constant.integer));
  }
  const bool numbers = cell.kind == Cell::Kind::number && constant.kind == Cell::Kind::number;
  if (n.test == Test::equal || n.test == Test::unequal) {
    if (!numbers) return known(of((cell.kind == constant.kind && cell.text == constant.text) == (n.test == Test::equal)));
  } else if (!numbers) {
    return open("an order of values that are no numbers, which a collation decides (got ", in_quotes(cell.text),
                " in column ", in_quotes(n.column), ")");
  }
  const std::optional<int> c = compare(cell, constant);
  if (!c)
    return open("an integer and a float that are equal in databases that round the integer (got ",
                in_quotes(cell.text), " and ", in_quotes(constant.text), ")");
  switch (n.test) {
    case Test::equal: return known(of(*c == 0));
    case Test::unequal: return known(of(*c != 0));
    case Test::less: return known(of(*c < 0));
    case Test::less_equal: return known(of(*c <= 0));
    case Test::greater: return known(of(*c > 0));
    default: return known(of(*c >= 0));
  }
}

Judged truth(const Node& n, const Row& row, const Cell& key, std::string& why) {
  if (n.test == Test::all || n.test == Test::any) {
    Judged found = known(of(n.test == Test::all));
    for (const Node& part : n.parts) {
      const Judged t = truth(part, row, key, why);
      found = n.test == Test::all ? Judged{std::min(found.least, t.least), std::min(found.most, t.most)}
                                  : Judged{std::max(found.least, t.least), std::max(found.most, t.most)};
    }
    return found;
  }
  if (n.test != Test::negation) return compared(n, row, key, why);
  const Judged t = truth(n.parts[0], row, key, why);
  return {negated(t.most), negated(t.least)};
}

bool matches(const Node& n, const Row& row, const Cell& key) {
  std::string why;
  const Judged t = truth(n, row, key, why);
  if (t.least != Truth::yes && t.most == Truth::yes) wrong(why);
  return t.least == Truth::yes;
}

// What a matching row must have in one column, so that an index finds it; as floats, perhaps
// rounded, as the index has them: rounding keeps the order, so that nothing is missed.
struct Bounds {
  std::string_view column;
  double low = -std::numeric_limits<double>::infinity(), high = -low;
};
std::optional<Bounds> bounds(const Node& n) {
  if (n.test == Test::all) {
    std::optional<Bounds> best;
    for (const Node& part : n.parts) {
      const auto found = bounds(part);
      if (!found) continue;
      if (!best) {
        best = found;
      } else if (best->column == found->column) {
        best->low = std::max(best->low, found->low);
        best->high = std::min(best->high, found->high);
      }
    }
    return best;
  }
  if (n.cells.empty() || n.cells[0].kind != Cell::Kind::number) return std::nullopt;
  Bounds b{n.column};
  const double constant = n.cells[0].number;
  if (n.test == Test::equal || n.test == Test::greater || n.test == Test::greater_equal) b.low = constant;
  if (n.test == Test::equal || n.test == Test::less || n.test == Test::less_equal) b.high = constant;
  if (n.test == Test::unequal || n.test == Test::mod) return std::nullopt;
  return b;
}

// --- lowering ---

// The rows that the keys of one table ever held, with an index for each column that is asked.
class Table {
 public:
  struct Version {
    std::int32_t key, value;
    const Row* row;
  };
  std::vector<Version> versions;
  std::unordered_map<std::int32_t, Cell> cell_of_key;

  template <typename Visit>
  void matching(const Predicate& p, const Visit& visit) {
    const auto test = [&](const Version& v) {
      if (matches(p.where, *v.row, cell_of_key.at(v.key))) visit(v);
    };
    const auto b = bounds(p.where);
    if (!b) {
      for (const Version& v : versions) test(v);
      return;
    }
    const Index& index = index_of(b->column);
    const auto first = std::ranges::lower_bound(index.sorted, b->low, {}, &Entry::first),
               last = std::ranges::upper_bound(index.sorted, b->high, {}, &Entry::first);
    for (auto i = first; i < last; ++i) test(versions[i->second]);
    for (const std::size_t i : index.others) test(versions[i]);
  }

 private:
  using Entry = std::pair<double, std::size_t>;
  struct Index {
    std::vector<Entry> sorted;       // numbers
    std::vector<std::size_t> others;  // texts, and what will be refused
  };
  const Index& index_of(std::string_view column) {
    const auto [at, fresh] = indexes_.try_emplace(std::string(column));
    if (!fresh) return at->second;
    for (std::size_t i = 0; i < versions.size(); ++i) {
      const Cell* cell = column == "key" ? &cell_of_key.at(versions[i].key) : nullptr;
      for (const auto& [name, found] : versions[i].row->columns)
        if (cell == nullptr && name == column) cell = &found;
      if (cell != nullptr && cell->kind == Cell::Kind::number)
        at->second.sorted.emplace_back(cell->number, i);
      else if (cell == nullptr || cell->kind != Cell::Kind::null)
        at->second.others.push_back(i);
    }
    std::ranges::sort(at->second.sorted);
    return at->second;
  }
  std::map<std::string, Index, std::less<>> indexes_;
};

bool may_be_included(const History& h, std::int32_t t) {
  return h.txn_status[t] == static_cast<std::uint8_t>(Status::committed) ||
         h.txn_status[t] == static_cast<std::uint8_t>(Status::indeterminate);
}

class Lowering {
 public:
  explicit Lowering(History& h) : h_(h), rows_(h), key_texts_(idx(h.n_keys())) {
    for (std::int32_t k = 0; k < h.n_keys(); ++k) key_texts_[k] = text_of(h.key_atoms, h.key_atom[k]);
  }

  void run() {
    forget();
    collect_versions();
    for (std::size_t s = 0; s < h_.statement_start.size(); ++s) {
      try {
        statement(s);
      } catch (const std::invalid_argument& e) {
        throw PredicateError{h_.statement_txn[s], h_.statement_position[s], e.what()};
      }
    }
    insert();
  }

 private:
  struct Added {
    std::int32_t key, list;
  };

  // What an earlier lowering added goes: T0 may hold other rows now.
  void forget() {
    std::vector<std::uint8_t> gone(h_.op_kind.size(), 0);
    for (std::size_t s = 0; s < h_.statement_start.size(); ++s) {
      if (h_.statement_known[s] != 1 || h_.statement_predicate[s] == kJudged) continue;
      for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op)
        if (h_.kind(op) == OpKind::read_none_of) gone[op] = 1;
    }
    if (std::ranges::find(gone, 1) == gone.end()) return;
    std::vector<std::int64_t> now(gone.size() + 1, 0);
    for (std::size_t op = 0; op < gone.size(); ++op) now[op + 1] = now[op] + (1 - gone[op]);
    const auto keep = [&](auto& column) {
      for (std::size_t op = 0; op < column.size(); ++op) column[now[op]] = column[op];
      if (!column.empty()) column.resize(idx(now.back()));
    };
    for (auto* column : {&h_.op_kind, &h_.op_ok}) keep(*column);
    for (auto* column : {&h_.op_key, &h_.op_value, &h_.op_version}) keep(*column);
    for (auto* column : {&h_.op_source, &h_.op_position, &h_.op_begin, &h_.op_end}) keep(*column);
    for (auto* column : {&h_.op_start, &h_.statement_start, &h_.statement_end})
      for (std::int64_t& op : *column) op = now[op];
    for (std::int64_t& source : h_.op_source)
      if (source >= 0) source = now[source];
  }

  // Every row that may have been there: a value that is never a last write only excludes itself.
  void collect_versions() {
    std::vector<std::pair<std::int32_t, std::int32_t>> found;
    for (std::int32_t t = 0; t < h_.transactions(); ++t)
      if (may_be_included(h_, t))
        for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
          if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0 && h_.op_value[op] != h_.deleted)
            found.emplace_back(h_.op_key[op], h_.op_value[op]);
    for (std::int32_t k = 0; k < h_.n_keys(); ++k)
      if (h_.initial_value[k] != kNil) found.emplace_back(k, h_.initial_value[k]);
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    all_ = std::move(found);
  }

  Table& table(const std::string& name) {
    auto& table = tables_[name];
    if (table != nullptr) return *table;
    table = std::make_unique<Table>();
    std::vector<std::uint8_t> inside(idx(h_.n_keys()), 0);
    for (std::int32_t k = 0; k < h_.n_keys(); ++k) {
      const std::string_view text = key_texts_[k];
      std::string_view key = text;
      if (!name.empty()) {
        if (text[0] != '[') continue;
        const auto parts = elements(text);
        if (parts.size() != 2 || parts[0] != name) continue;
        key = parts[1];
      }
      inside[k] = 1;
      table->cell_of_key[k] = cell_of(key);
    }
    for (const auto& [key, value] : all_)
      if (inside[key] != 0) table->versions.push_back({key, value, &rows_.of(value)});
    return *table;
  }

  void statement(std::size_t s) {
    added_.emplace_back();
    const std::int32_t t = h_.statement_txn[s];
    if (h_.statement_known[s] != 1 || h_.statement_predicate[s] == kJudged || !may_be_included(h_, t))
      return;
    auto& p = predicates_[h_.statement_predicate[s]];
    if (!p) p = parse_predicate(h_.predicates[idx(h_.statement_predicate[s])]);
    Table& of = table(p->table);
    std::unordered_map<std::int32_t, std::int32_t> own;  // the last write of each key so far
    for (std::int64_t op = h_.op_start[t]; op < h_.statement_start[s]; ++op)
      if (is_write(h_.kind(op)) && h_.op_ok[op] != 0) own[h_.op_key[op]] = h_.op_value[op];
    std::vector<std::int32_t> returned;
    for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op) {
      if (h_.op_ok[op] == 0) return;
      const std::int32_t key = h_.op_key[op];
      returned.push_back(key);
      const auto cell = of.cell_of_key.find(key);
      if (cell == of.cell_of_key.end())
        wrong("a returned row of another table (got " + in_quotes(key_texts_[key]) + ", expected a key [" + p->table + " …])");
      if (h_.kind(op) == OpKind::read &&
          !matches(p->where, rows_.of(h_.op_value[op]), cell->second)) {
        h_.op_kind[op] = static_cast<std::uint8_t>(OpKind::read_one_of);
        h_.op_value[op] = h_.add_list({h_.op_value[op]});
      }
    }
    std::ranges::sort(returned);
    if (std::ranges::adjacent_find(returned) != returned.end())
      wrong("a row that was returned twice (got " + in_quotes(key_texts_[*std::ranges::adjacent_find(returned)]) + ")");
    std::vector<std::pair<std::int32_t, std::int32_t>> missed;
    of.matching(*p, [&](const Table::Version& v) {
      if (std::ranges::binary_search(returned, v.key)) return;
      const auto mine = own.find(v.key);
      // mutant: own-rows-missed
      if (mine == own.end() || mine->second == v.value) missed.emplace_back(v.key, v.value);
    });
    std::ranges::sort(missed);
    std::vector<std::int32_t> values;
    for (std::size_t i = 0; i < missed.size(); ++i) {
      values.push_back(missed[i].second);
      if (i + 1 < missed.size() && missed[i + 1].first == missed[i].first) continue;
      added_.back().push_back({missed[i].first, h_.add_list(values)});
      values.clear();
    }
  }

  // The columns with the new operations, each at the end of its statement.
  void insert() {
    std::size_t total = h_.op_kind.size();
    for (const auto& added : added_) total += added.size();
    if (total == h_.op_kind.size()) return;
    History old = std::move(h_);
    h_ = old;  // everything else as it was
    for (auto* column : {&h_.op_kind, &h_.op_ok}) column->clear();
    for (auto* column : {&h_.op_key, &h_.op_value, &h_.op_version}) column->clear();
    for (auto* column : {&h_.op_source, &h_.op_position, &h_.op_begin, &h_.op_end}) column->clear();
    h_.reserve_operations(total);
    std::vector<std::int64_t> now(old.op_kind.size());
    std::size_t s = 0;
    const bool timed = old.has_operation_times();
    const auto add_times = [&](std::int64_t begin, std::int64_t end) {
      h_.op_begin.push_back(begin);
      h_.op_end.push_back(end);
    };
    const auto add = [&](OpKind kind, std::int32_t key, std::int32_t value, std::int64_t source, std::int64_t position, std::uint8_t ok) {
      h_.op_kind.push_back(static_cast<std::uint8_t>(kind));
      h_.op_ok.push_back(ok);
      h_.op_key.push_back(key);
      h_.op_value.push_back(value);
      h_.op_source.push_back(source);
      h_.op_position.push_back(position);
    };
    const auto finish = [&](std::int64_t op, std::int32_t t) {  // statements that end before it
      for (; s < added_.size() && old.statement_txn[s] == t && old.statement_end[s] <= op; ++s) {
        h_.statement_start[s] = h_.operations() - (old.statement_end[s] - old.statement_start[s]);
        for (const Added& a : added_[s]) {
          add(OpKind::read_none_of, a.key, a.list, kSourceByValue, old.statement_position[s], 1);
          if (timed) add_times(old.statement_sent[s], old.statement_answered[s]);
        }
        h_.statement_end[s] = h_.operations();
      }
    };
    for (std::int32_t t = 0; t < old.transactions(); ++t) {
      h_.op_start[t] = h_.operations();
      for (std::int64_t op = old.op_start[t]; op < old.op_start[t + 1]; ++op) {
        finish(op, t);
        now[op] = h_.operations();
        add(old.kind(op), old.op_key[op], old.op_value[op], old.op_source[op], old.op_position[op], old.op_ok[op]);
        if (old.has_versions() && old.op_version[idx(op)] != kNoVersion)
          h_.set_version(h_.operations() - 1, old.op_version[idx(op)]);
        if (timed) add_times(old.op_begin[op], old.op_end[op]);
      }
      finish(old.op_start[t + 1], t);
    }
    h_.op_start[old.transactions()] = h_.operations();
    if (old.has_versions()) h_.op_version.resize(h_.op_kind.size(), kNoVersion);
    for (std::int64_t& source : h_.op_source)
      if (source >= 0) source = now[source];
  }

  History& h_;
  Rows rows_;
  std::vector<std::string> key_texts_;
  std::vector<std::pair<std::int32_t, std::int32_t>> all_;
  std::map<std::string, std::unique_ptr<Table>> tables_;
  std::unordered_map<std::int32_t, std::optional<Predicate>> predicates_;
  std::vector<std::vector<Added>> added_;
};

}  // namespace

std::string canonical_predicate(std::string_view form) {
  const Predicate p = parse_predicate(form);
  std::string text = p.table.empty() ? "{:where " : "{:table " + p.table + " :where ";
  show(p.where, text);
  return text += '}';
}

void lower_predicates(History& history) {
  if (history.statement_start.empty()) return;
  Lowering(history).run();
}

}  // namespace isolang
