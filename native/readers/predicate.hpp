// Predicates of predicate reads, and the rows that they are true of: read from their texts, and judged
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

// Throws std::invalid_argument, as all here do for what cannot be judged.
[[noreturn]] void wrong(const std::string& what);
std::string in_quotes(std::string_view text);  // its beginning
// Of a vector or a map in canonical text.
std::vector<std::string_view> elements(std::string_view form);
std::string text_of(const Atoms& atoms, std::int32_t atom);
std::string text_of(AtomKind kind, std::int64_t number, std::string_view text);
// The key of a row of a table, by the text of a key; of the empty table each key is one itself.
std::optional<std::string_view> key_in_table(std::string_view key, std::string_view table);

struct Cell {
  // odd: a number that is not exact here
  enum class Kind : std::uint8_t { null, number, text, odd } kind = Kind::null;
  bool whole = false;      // an integer of 64 bits, or a float that equals one
  bool real = false;       // a float
  __int128 integer = 0;    // if whole
  double number = 0;       // as a float, perhaps rounded
  std::string_view text;   // canonical
};

Cell cell_of(std::string_view form);

enum class Test : std::uint8_t { all, any, negation, null, equal, unequal, less, less_equal, greater, greater_equal, mod };

struct Node {
  Test test;
  std::vector<Node> parts;
  std::string column;
  std::vector<std::string> constants;  // canonical texts; `cells` view them
  std::vector<Cell> cells;
};

struct Predicate {
  std::string table;  // canonical text of the first part of its keys; empty for all keys
  Node where;
};

Predicate parse_predicate(std::string_view form);
// Its canonical text, to the end of `out`.
void show(const Node& n, std::string& out);

struct Row {
  std::vector<std::pair<std::string_view, Cell>> columns;
  std::string text;        // of an atom that has no text of its own
  std::string_view whole;  // the atom's text, where `columns` point into
};

// Of a text that outlives it.
void read_row(std::string_view text, Row& row);

class Rows {
 public:
  explicit Rows(const History& h) : h_(h), rows_(static_cast<std::size_t>(h.values.size())) {}
  const Row& of(std::int32_t value);

 private:
  const History& h_;
  std::vector<std::unique_ptr<Row>> rows_;  // per atom; none: not asked for yet
};
// `key` of the column :key; nullptr if the row has no such column.
const Cell* column(const Row& row, const Cell& key, std::string_view name);

bool matches(const Node& n, const Row& row, const Cell& key);

// What a matching row must have in one column, so that an index finds it; as floats, perhaps
// rounded, as the index has them: rounding keeps the order, so that nothing is missed.
struct Bounds {
  std::string_view column;
  double low = -std::numeric_limits<double>::infinity(), high = -low;
};
std::optional<Bounds> bounds(const Node& n);

}  // namespace isolang::predicates
