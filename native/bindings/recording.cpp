// Writes the lines of a recorder. This must be fast, because a client of a database waits for each
// line.
#include <nanobind/stl/string_view.h>

#include <charconv>
#include <string>
#include <string_view>

#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

void add(std::string& line, long long number) {
  char digits[24];
  line.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void add(std::string& line, std::string_view before, long long number) {
  line += before;
  add(line, number);
}

std::string_view utf8(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const at = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (at == nullptr) throw nb::python_error();
  return {at, static_cast<std::size_t>(size)};
}

bool plain(std::string_view text) {
  for (const char c : text)
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  return true;
}

// Appends a value as text. Integers, nil and texts without escapes are written here, and everything
// else by `spell`.
void add(std::string& line, nb::handle value, const nb::callable& spell) {
  PyObject* const object = value.ptr();
  if (object == Py_None) {
    line += "nil";
    return;
  }
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return add(line, number);
  } else if (PyUnicode_CheckExact(object)) {
    if (const std::string_view text = utf8(value); plain(text)) {
      line += '"';
      line += text;
      line += '"';
      return;
    }
  }
  line += utf8(spell(value));
}

}  // namespace

void register_recording(nb::module_& m) {
  m.def("recorded_line", [](long long index, std::string_view kind, long long process, long long when,
                            long long began, const nb::sequence& operations, bool planned, const nb::list& times,
                            const nb::tuple& commit, const nb::callable& spell) {
    std::string line;
    line.reserve(512);
    add(line, "{:index ", index);
    line += ", :type :";
    line += kind;
    add(line, ", :process ", process);
    add(line, ", :time ", when - began);
    line += ", :f :txn, :value [";
    bool first = true;
    for (const nb::handle operation : operations) {
      const nb::tuple parts = nb::cast<nb::tuple>(operation);
      if (parts.size() != 3) throw std::invalid_argument("an operation has a name, a key and a value");
      const std::string_view name = utf8(parts[0]);
      line += first ? "[:" : " [:";
      first = false;
      line += name;
      line += ' ';
      add(line, parts[1], spell);
      if (planned && name == "r")
        line += " nil";
      else if (name != "delete")
        add(line += ' ', parts[2], spell);
      line += ']';
    }
    line += ']';
    if (times.size() > 0) {
      line += ", :times [";
      for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
        if (i > 0) line += ' ';
        const auto sent = nb::cast<long long>(times[i]);
        if (sent < 0) {
          line += "nil";
          continue;
        }
        add(line, "[", sent - began);
        add(line, " ", nb::cast<long long>(times[i + 1]) - began);
        line += ']';
      }
      line += ']';
    }
    if (commit.size() == 2) {
      add(line, ", :commit [", nb::cast<long long>(commit[0]) - began);
      add(line, " ", nb::cast<long long>(commit[1]) - began);
      line += ']';
    }
    line += "}\n";
    return nb::bytes(line.data(), line.size());
  }, "index"_a, "kind"_a, "process"_a, "when"_a, "began"_a, "operations"_a, "planned"_a, "times"_a, "commit"_a, "spell"_a);
}

}  // namespace isolang
