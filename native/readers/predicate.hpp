// The predicates of predicate reads, and the rows that they match. Both are parsed from their texts. A row is judged
// exactly or not at all (docs/predicates.md).
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/history.hpp"

namespace isolang::predicates {

// Always throws std::invalid_argument. The other functions here call it for anything that cannot be
// judged.
[[noreturn]] void refuse(const std::string& what);
std::string in_quotes(std::string_view text);  // the beginning of the text, in quotes
// Returns the elements of a vector or a map in canonical text.
std::vector<std::string_view> elements(std::string_view form);
std::string text_of(const Atoms& atoms, std::int32_t atom);
std::string text_of(AtomKind kind, std::int64_t number, std::string_view text);
// Returns the key of a row within a table, from the text of a key. In the empty table, each key is a row key itself.
std::optional<std::string_view> key_in_table(std::string_view key, std::string_view table);

struct Cell {
  // `odd` is a number that cannot be represented exactly here.
  enum class Kind : std::uint8_t { null, number, text, odd } kind = Kind::null;
  bool whole = false;      // whether it is a 64-bit integer, or a float that equals one
  bool real = false;       // whether it is a float
  __int128 integer = 0;    // if `whole`
  double number = 0;       // the value as a float, perhaps rounded
  std::string_view text;   // canonical text
};

Cell cell_of(std::string_view form);

enum class Test : std::uint8_t { all, any, negation, null, equal, unequal, less, less_equal, greater, greater_equal, mod };

struct Node {
  Test test;
  std::vector<Node> parts;
  std::string column;
  std::vector<std::string> constants;  // canonical texts, into which `cells` point
  std::vector<Cell> cells;
};

struct Predicate {
  std::string table;  // canonical text of the first part of the table's keys; empty for all keys
  Node where;
};

Predicate parse_predicate(std::string_view form);
// Appends the canonical text of the node to `out`.
void show(const Node& n, std::string& out);

struct Row {
  std::vector<std::pair<std::string_view, Cell>> columns;
  std::string text;        // for an atom that has no text of its own
  std::string_view whole;  // text of the atom, into which `columns` point
};

// Parses a row from a text, which must outlive the row.
void read_row(std::string_view text, Row& row);

class Rows {
 public:
  explicit Rows(const History& h) : h_(h), rows_(static_cast<std::size_t>(h.values.size())) {}
  const Row& of(std::int32_t value);

 private:
  const History& h_;
  std::vector<std::unique_ptr<Row>> rows_;  // for each atom; null until first needed
};
// Returns the cell of a column, where the column :key is `key`. Returns nullptr if the row has no such column.
const Cell* column(const Row& row, const Cell& key, std::string_view name);

bool matches(const Node& n, const Row& row, const Cell& key);

// A necessary condition on one column of each matching row, for use with an index. The bounds are floats, perhaps
// rounded, like the numbers in the index. Rounding keeps the order, so no match is missed.
struct Bounds {
  std::string_view column;
  double low = -std::numeric_limits<double>::infinity(), high = -low;
};
std::optional<Bounds> bounds(const Node& n);

}  // namespace isolang::predicates
