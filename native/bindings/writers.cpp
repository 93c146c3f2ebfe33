// The Python functions of the native writers. They check all indices of the outline, which Python describes with
// arrays, and pass the output to Python piece by piece.
#include "writers/writers.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

template <typename T>
std::span<const T> span_of(const Array<T>& array) {
  return {array.data(), array.shape(0)};
}

// Returns the outline described by the arrays from Python, after checking that all their indices are in range.
Outline outline_of(const History& h, const Array<std::int32_t>& txns, const Array<std::int64_t>& start,
                   const Array<std::int64_t>& ops, std::size_t names) {
  const Outline out{h, span_of(txns), span_of(start), span_of(ops)};
  const auto bad = [](const char* what) { throw std::invalid_argument(what); };
  if (out.start.size() != out.txns.size() + 1 || names != out.ops.size()) bad("arrays of different lengths");
  for (const std::int32_t t : out.txns)
    if (t < 0 || t >= h.transactions()) bad("no such transaction");
  for (const std::int64_t op : out.ops)
    if (op < 0 || op >= h.operations()) bad("no such operation");
  for (std::size_t i = 0; i < out.txns.size(); ++i)
    if (out.start[i] < 0 || out.start[i] > out.start[i + 1]) bad("operations that decrease");
  if (out.start.back() != static_cast<std::int64_t>(out.ops.size())) bad("operations without a transaction");
  return out;
}

Sink sink_of(const nb::callable& write) {
  return [&write](std::string_view piece) {
    const nb::gil_scoped_acquire held;
    write(nb::bytes(piece.data(), piece.size()));
  };
}

using WriteNumbers = void (*)(const Outline&, std::span<const std::uint64_t>, std::span<const std::uint64_t>,
                              const Sink&, Budget&);

void register_numbers(nb::module_& m, const char* name, WriteNumbers spell) {
  m.def(name, [spell](const History& h, const Array<std::int32_t>& txns, const Array<std::int64_t>& start,
                      const Array<std::int64_t>& ops, const Array<std::uint64_t>& keys,
                      const Array<std::uint64_t>& values, const nb::callable& write) {
    const Outline outline = outline_of(h, txns, start, ops, std::min(keys.shape(0), values.shape(0)));
    Budget budget = interruptible_budget(0.0);
    const Sink sink = sink_of(write);
    const nb::gil_scoped_release released;
    spell(outline, span_of(keys), span_of(values), sink, budget);
  }, "columns"_a, "txns"_a, "start"_a, "ops"_a, "keys"_a, "values"_a, "write"_a);
}

}  // namespace

void register_writers(nb::module_& m) {
  register_numbers(m, "write_bincode", write_bincode);
  register_numbers(m, "write_plume", write_plume);
  m.def("write_jepsen", [](const History& h, const Array<std::int32_t>& txns, const Array<std::int64_t>& start,
                           const Array<std::int64_t>& ops, const Array<std::int64_t>& names, bool json, bool times, bool real_time,
                           std::vector<std::int64_t> processes, Texts keys, Texts values, Texts groups, Texts versions,
                           std::vector<std::string> labels, std::vector<std::string> levels,
                           std::vector<std::string> statements, std::vector<std::string> units,
                           const nb::callable& write) {
    const Outline outline = outline_of(h, txns, start, ops, names.shape(0));
    for (std::size_t i = 0; i < outline.ops.size(); ++i) {
      const bool list = holds_list(h.kind(outline.ops[i]));
      const auto limit = list ? static_cast<std::int64_t>(h.list_start.size()) - 1 : std::int64_t{h.values.size()};
      if (names.data()[i] >= limit) throw std::invalid_argument("no such value");
    }
    const JepsenSpelling spelling{json, times, real_time, std::move(processes), std::move(keys), std::move(values),
                                  std::move(groups), std::move(versions), std::move(labels), std::move(levels),
                                  std::move(statements), std::move(units)};
    Budget budget = interruptible_budget(0.0);
    const Sink sink = sink_of(write);
    const nb::gil_scoped_release released;
    return write_jepsen(outline, span_of(names), spelling, sink, budget);
  }, "columns"_a, "txns"_a, "start"_a, "ops"_a, "names"_a, "json"_a, "times"_a, "real_time"_a, "processes"_a, "keys"_a,
     "values"_a, "groups"_a, "versions"_a, "labels"_a, "levels"_a, "statements"_a, "units"_a,
     "write"_a);
}

}  // namespace isolang
