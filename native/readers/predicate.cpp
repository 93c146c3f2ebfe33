// `parse_predicate` turns a text into a tree of tests, and `matches` evaluates the tree on a row. Truth is
// three-valued, as in SQL. A comparison that databases evaluate differently is reported instead of decided.
#include "readers/predicate.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/index.hpp"

namespace isolang::predicates {

void refuse(const std::string& what) { throw std::invalid_argument(what); }
std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  quoted += text.substr(0, 60);
  return quoted += text.size() > 60 ? "…'" : "'";
}

// --- canonical texts of forms ---

namespace {

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
  // Returns the length of the first form, which ends at the first blank outside strings and brackets.
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

}  // namespace

std::vector<std::string_view> elements(std::string_view form) {
  std::vector<std::string_view> found;
  Elements inside(form.substr(1, form.size() - 2));
  for (std::string_view e; inside.next(e);) found.push_back(e);
  return found;
}

namespace {

// Returns the name in a keyword or in a string. JSON has only strings.
std::string_view name_of(std::string_view form) {
  if (form.size() > 1 && form[0] == ':') return form.substr(1);
  if (form.size() > 2 && form[0] == '"') return form.substr(1, form.size() - 2);
  return {};
}

// --- values ---

bool is_number(std::string_view form) {
  const std::size_t sign = !form.empty() && (form[0] == '-' || form[0] == '+') ? 1 : 0;
  return form.size() > sign && form[sign] >= '0' && form[sign] <= '9';
}

// Returns whether a float is a 64-bit integer, signed or unsigned.
bool is_whole(double real) { return real >= -0x1p63 && real < 0x1p64 && std::floor(real) == real; }

}  // namespace

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

namespace {

void comparable(const Cell& cell) {
  if (cell.kind == Cell::Kind::odd)
    refuse("a number that predicates cannot compare exactly (got " + in_quotes(cell.text) +
          ", expected an integer of 64 bits or a float); hint: write decimals as integers of a unit");
}

template <typename Number>
int order(const Number& a, const Number& b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// Compares two numbers: -1, 0 or 1 for less, equal or greater. Returns nothing for an integer and a float if the result
// depends on whether the integer is first rounded to a float, because databases differ in this.
std::optional<int> compare(const Cell& a, const Cell& b) {
  const int rounded = order(a.number, b.number);
  if (a.real == b.real) return a.real ? rounded : order(a.integer, b.integer);
  if (rounded != 0 || (a.whole && b.whole && a.integer == b.integer)) return rounded;
  return std::nullopt;
}

// --- predicates ---

enum class Truth : std::uint8_t { no, unknown, yes };
Node comparison(Test test, std::string_view column, std::string_view constant) {
  return {test, {}, std::string(column), {std::string(constant)}, {}};
}

struct Parser {
  static constexpr std::pair<std::string_view, Test> kComparisons[] = {
      {"=", Test::equal},       {"!=", Test::unequal},     {"not=", Test::unequal},
      {"<>", Test::unequal},    {"<", Test::less},         {"<=", Test::less_equal},
      {">", Test::greater},     {">=", Test::greater_equal}};

  static Node parse(std::string_view form, int depth = 0) {
    if (depth > 64) refuse("a predicate nested more than 64 deep");
    if (name_of(form) == "true" || form == "true") return {Test::all, {}, {}, {}, {}};
    if (form.size() < 2 || form[0] != '[')
      refuse("not a predicate (got " + in_quotes(form) + ", expected [:= :column value] or the like)");
    const auto parts = elements(form);
    const std::string_view head = parts.empty() ? std::string_view{} : name_of(parts[0]);
    const auto arguments = [&](std::size_t least, std::size_t most) {
      if (parts.size() - 1 < least || parts.size() - 1 > most)
        refuse("a predicate with " + std::to_string(parts.size() - 1) + " arguments (got " +
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
        arguments(1, 2);  // with one argument, the test applies to the value itself, as in Elle
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
        refuse("not a list of values (got " + in_quotes(parts[2]) + ", expected [value …])");
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
      refuse("a predicate on patterns, which a collation decides (got " + in_quotes(form) + "); hint: " + kHint);
    if (head == "limit" || head == "top" || head == "offset" || head == "order-by")
      refuse("a read of only some of the rows that match, which tells nothing about the rows that it did not return (got " +
            in_quotes(form) + "); hint: record the rows as item reads");
    if (head == "count" || head == "sum" || head == "min" || head == "max" || head == "avg" || head == "exists")
      refuse("an aggregate, which does not depend on each row separately (got " + in_quotes(form) + "); hint: " + kHint);
    refuse("an unknown predicate (got " + in_quotes(form) +
          ", expected :=, :!=, :<, :<=, :>, :>=, :between, :in, :null, :mod, :and, :or or :not)");
  }

  static std::string_view column(std::string_view form) {
    const std::string_view name = name_of(form);
    if (name.empty()) refuse("not a column (got " + in_quotes(form) + ", expected :name)");
    return name;
  }
  static constexpr const char* kHint = "record the rows that it returned as item reads";
};

}  // namespace

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
    case Test::all:
      if (n.parts.empty()) {
        out += ":true";
        return;
      }
      return parts("[:and");
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

namespace {

// Parses the constants once, and refuses those that cannot be compared.
void settle(Node& n) {
  for (Node& part : n.parts) settle(part);
  for (const std::string& constant : n.constants) {
    n.cells.push_back(cell_of(constant));
    comparable(n.cells.back());
    const bool order = n.test != Test::equal && n.test != Test::unequal;
    if (order && n.cells.back().kind == Cell::Kind::text)
      refuse("an order of values that are not numbers, which depends on the collation (got " +
            in_quotes(constant) + ", expected a number)");
  }
  if (n.test == Test::mod && (!n.cells[0].whole || n.cells[0].integer < 1))
    refuse("a modulus that is not a positive 64-bit integer (got " + in_quotes(n.constants[0]) + ")");
  if (n.test == Test::mod && n.cells[1].kind != Cell::Kind::null && !n.cells[1].whole)
    refuse("a remainder that is not a 64-bit integer (got " + in_quotes(n.constants[1]) + ")");
}

}  // namespace

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
        refuse("a read of only some of the rows that match, which tells nothing about the rows that it did not return (got " +
              in_quotes(form) + "); hint: record the rows as item reads");
      } else {
        refuse("not a predicate read (got " + in_quotes(form) + ", expected {:table T :where P})");
      }
    }
  }
  settle(p.where);
  return p;
}

// --- rows ---

std::string text_of(AtomKind kind, std::int64_t number, std::string_view text) {
  switch (kind) {
    case AtomKind::nil: return "nil";
    case AtomKind::integer: return std::to_string(number);
    case AtomKind::natural: return std::to_string(static_cast<std::uint64_t>(number));
    case AtomKind::keyword: return std::string(":").append(text);
    case AtomKind::other: return std::string(text);
    case AtomKind::string: break;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted += '"';
}

std::string text_of(const Atoms& atoms, std::int32_t atom) {
  const AtomKind kind = atoms.kind(atom);
  return text_of(kind, atoms.number(atom), kind >= AtomKind::string ? atoms.text(atom) : std::string_view{});
}

std::optional<std::string_view> key_in_table(std::string_view key, std::string_view table) {
  if (table.empty()) return key;
  if (key[0] != '[') return std::nullopt;
  const auto parts = elements(key);
  if (parts.size() != 2 || parts[0] != table) return std::nullopt;
  return parts[1];
}

void read_row(std::string_view text, Row& row) {
  row.whole = text;
  if (text[0] == '{') {
    const auto parts = elements(text);
    row.columns.reserve(parts.size() / 2);
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) row.columns.emplace_back(name_of(parts[i]), cell_of(parts[i + 1]));
  } else {
    row.columns.emplace_back("value", cell_of(text));
  }
}

const Row& Rows::of(std::int32_t value) {
  auto& row = rows_[idx(value)];
  if (row != nullptr) return *row;
  row = std::make_unique<Row>();
  std::string_view text = h_.values.kind(value) == AtomKind::other ? h_.values.text(value) : std::string_view{};
  if (text.empty()) text = row->text = text_of(h_.values, value);
  read_row(text, *row);
  return *row;
}

const Cell* column(const Row& row, const Cell& key, std::string_view name) {
  if (name == "key") return &key;
  for (const auto& [column, cell] : row.columns)
    if (column == name) return &cell;
  return nullptr;
}

namespace {

// Bounds on the truth of a predicate on a row. They differ if some part cannot be decided (`why` holds the reason).
// This does no harm if the other parts decide the predicate.
struct TruthRange {
  Truth least, most;
};

TruthRange known(Truth truth) { return {truth, truth}; }
Truth of(bool yes) { return yes ? Truth::yes : Truth::no; }
Truth negated(Truth t) {
  // mutant: unknown-negated
  return t == Truth::unknown ? t : of(t == Truth::no);
}

TruthRange compared(const Node& n, const Row& row, const Cell& key, std::string& why) {
  const auto open = [&](const auto&... parts) {
    if (why.empty()) (why += ... += parts);
    return TruthRange{Truth::no, Truth::yes};
  };
  const Cell* const found = column(row, key, n.column);
  if (found == nullptr)
    return open("the row ", in_quotes(row.whole), " has no column ", in_quotes(n.column),
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
    if (!cell.whole) return open("a remainder of a value that is not a 64-bit integer (got ", in_quotes(cell.text), ")");
    const __int128 by = n.cells[0].integer;
    return known(of((cell.integer % by + by) % by == constant.integer));
  }
  const bool numbers = cell.kind == Cell::Kind::number && constant.kind == Cell::Kind::number;
  if (n.test == Test::equal || n.test == Test::unequal) {
    if (!numbers) return known(of((cell.kind == constant.kind && cell.text == constant.text) == (n.test == Test::equal)));
  } else if (!numbers) {
    return open("an order of values that are not numbers, which depends on the collation (got ", in_quotes(cell.text),
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

TruthRange truth(const Node& n, const Row& row, const Cell& key, std::string& why) {
  if (n.test == Test::all || n.test == Test::any) {
    TruthRange found = known(of(n.test == Test::all));
    for (const Node& part : n.parts) {
      const TruthRange t = truth(part, row, key, why);
      found = n.test == Test::all ? TruthRange{std::min(found.least, t.least), std::min(found.most, t.most)}
                                  : TruthRange{std::max(found.least, t.least), std::max(found.most, t.most)};
    }
    return found;
  }
  if (n.test != Test::negation) return compared(n, row, key, why);
  const TruthRange t = truth(n.parts[0], row, key, why);
  return {negated(t.most), negated(t.least)};
}

}  // namespace

bool matches(const Node& n, const Row& row, const Cell& key) {
  std::string why;
  const TruthRange t = truth(n, row, key, why);
  if (t.least != Truth::yes && t.most == Truth::yes) refuse(why);
  return t.least == Truth::yes;
}

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

}  // namespace isolang::predicates
