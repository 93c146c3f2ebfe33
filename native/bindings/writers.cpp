#include "writers/writers.hpp"

#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

WrittenFormat format_of(const std::string& name) {
  if (name == "dbcop") return WrittenFormat::bincode;
  if (name == "plume") return WrittenFormat::plume;
  if (name == "edn") return WrittenFormat::edn;
  throw nb::value_error(("no such format: " + name).c_str());
}

}  // namespace

void register_writers(nb::module_& m) {
  m.def("is_plain", [](const History& h, const std::string& name, bool real_time) {
    const nb::gil_scoped_release released;
    return is_plain(h, format_of(name), real_time);
  }, "columns"_a, "name"_a, "real_time"_a);
  m.def("write_plain", [](const History& h, const std::string& name, bool real_time, nb::callable write) {
    const WrittenFormat format = format_of(name);
    Budget budget = interruptible_budget(0.0);
    const Sink sink = [&](std::string_view piece) {
      const nb::gil_scoped_acquire held;
      write(nb::bytes(piece.data(), piece.size()));
    };
    const nb::gil_scoped_release released;
    if (!is_plain(h, format, real_time)) throw std::invalid_argument("the history is not plain");
    if (format == WrittenFormat::bincode) write_bincode(h, sink, budget);
    if (format == WrittenFormat::plume) write_plume(h, sink, budget);
    if (format == WrittenFormat::edn) write_edn(h, real_time, sink, budget);
  }, "columns"_a, "name"_a, "real_time"_a, "write"_a);
}

}  // namespace isolang
