// Adds plain operations, given as Python objects, directly to the columns. Anything that is not plain (a value of
// another type, a mistake) is left to isolang/history/build.py, which explains the fault.
#include <Python.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/history.hpp"
#include "readers/predicates.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

bool is_sequence(PyObject* o) { return PyTuple_CheckExact(o) || PyList_CheckExact(o); }

std::optional<std::string_view> text_of(PyObject* o) {
  if (!PyUnicode_CheckExact(o)) return std::nullopt;
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(o, &size);
  if (text == nullptr) {  // the text contains an unpaired surrogate
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string_view(text, static_cast<std::size_t>(size));
}

// Returns the atom of None, of a 64-bit integer or of a text, or nothing for other objects.
std::optional<std::int32_t> plain_atom(Atoms& atoms, PyObject* o) {
  if (o == Py_None) return kNil;
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow != 0) return std::nullopt;
    return atoms.intern_integer(number);
  }
  if (const auto text = text_of(o)) return atoms.intern_text(AtomKind::string, *text);
  return std::nullopt;
}

std::optional<std::int32_t> plain_list(History& h, PyObject* o) {
  if (!PyList_CheckExact(o)) return std::nullopt;
  std::vector<std::int32_t> atoms;
  const Items parts(o);
  for (Py_ssize_t i = 0; i < parts.size(); ++i) {
    const auto atom = plain_atom(h.values, parts[i]);
    if (!atom) return std::nullopt;
    atoms.push_back(*atom);
  }
  return h.add_list(atoms);
}

// Returns the key and value of each row returned by a predicate read, if all are plain.
using PlainRows = std::vector<std::pair<std::int32_t, std::int32_t>>;
std::optional<PlainRows> plain_rows(History& h, PyObject* rows, std::int32_t initial) {
  PlainRows found;
  PyObject *key = nullptr, *row = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(rows, &at, &key, &row) != 0;) {
    const auto number = plain_atom(h.key_atoms, key);
    const auto value = row == Py_None ? std::nullopt : plain_atom(h.values, row);
    if (!number || !value) return std::nullopt;
    found.emplace_back(h.key_of(*number, initial), *value);
  }
  return found;
}

// Adds ("scan", text of a predicate, rows).
bool add_plain_scan(History& h, PyObject* predicate, PyObject* rows, std::int64_t position,
                    std::int32_t initial) {
  const auto text = text_of(predicate);
  if (!text || text->empty() || !PyDict_CheckExact(rows)) return false;
  std::string canonical;
  try {
    canonical = canonical_predicate(*text);
  } catch (const std::invalid_argument&) {
    return false;
  }
  const auto found = plain_rows(h, rows, initial);
  if (!found) return false;
  h.begin_statement(canonical, position, 1);
  for (const auto& [key, value] : *found) h.add_op(OpKind::read, key, value, position);
  h.end_statement();
  return true;
}

// Adds ("r", key, value or list), ("w" | "insert" | "append", key, value), ("delete", key) or a "scan".
bool add_plain(History& h, PyObject* op, std::int64_t position, std::int32_t initial) {
  if (!is_sequence(op)) return false;
  const Items parts(op);
  const Py_ssize_t size = parts.size();
  if (size != 2 && size != 3) return false;
  const auto name = text_of(parts[0]);
  if ((name == "delete") != (size == 2)) return false;
  if (name == "delete") {
    const auto key = plain_atom(h.key_atoms, parts[1]);
    if (!key) return false;
    const std::int32_t number = h.key_of(*key, initial);
    h.add_op(OpKind::write, number, h.deleted_atom(), position);
    return true;
  }
  if (name == "scan") return add_plain_scan(h, parts[1], parts[2], position, initial);
  OpKind kind = OpKind::write;
  if (name == "r") {
    kind = PyList_CheckExact(parts[2]) ? OpKind::read_list : OpKind::read;
  } else if (name == "append") {
    kind = OpKind::append;
  } else if (name != "w" && name != "insert") {
    return false;
  }
  const auto key = plain_atom(h.key_atoms, parts[1]);
  if (!key) return false;
  const std::int32_t number = h.key_of(*key, initial);
  const auto value =
      kind == OpKind::read_list ? plain_list(h, parts[2]) : plain_atom(h.values, parts[2]);
  if (!value) return false;
  h.add_op(kind, number, *value, position);
  return true;
}

}  // namespace

void register_plain(nb::module_& m) {
  m.def(
      "add_plain_operations",
      [](History& h, nb::handle ops, Py_ssize_t first, std::int32_t initial) {
        if (h.transactions() == 0 || first < 0) throw nb::value_error("no transaction begun");
        if (!is_sequence(ops.ptr())) return first;
        const Items parts(ops);
        while (first < parts.size() && add_plain(h, parts[first], first + 1, initial)) ++first;
        return first;
      },
      "columns"_a, "operations"_a, "first"_a, "initial"_a,
      "Adds operations from `first` on to the last transaction, up to one that is not plain; gives "
      "its index. `initial`: the atom that T0 wrote to new keys.");
  m.def(
      "add_plain_rows",
      [](History& h, const nb::dict& rows, std::int64_t position, std::int32_t initial) {
        if (h.transactions() == 0) throw nb::value_error("no transaction begun");
        const auto found = plain_rows(h, rows.ptr(), initial);
        for (const auto& [key, value] : found.value_or(PlainRows{})) h.add_op(OpKind::read, key, value, position);
        return found.has_value();
      },
      "columns"_a, "rows"_a, "position"_a, "initial"_a,
      "Adds the rows that a predicate read returned, if all are plain; else none.");
}

}  // namespace isolang
