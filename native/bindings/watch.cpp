// The Python classes and functions of the watch: they open a window, cut it, and keep the last values and the loose
// keys. Python gets texts as bytes.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string_view>
#include <utility>

#include "bindings/bindings.hpp"
#include "watch/cut.hpp"
#include "watch/last_values.hpp"
#include "watch/loose_keys.hpp"
#include "watch/open_window.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang::watch {
namespace {

template <typename T>
std::span<const T> span_of(const Array<T>& array) {
  return {array.data(), array.size()};
}

template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(std::vector<T>&& numbers) {
  auto held = std::make_unique<std::vector<T>>(std::move(numbers));
  const std::size_t size = held->size();
  T* const data = held->data();
  const nb::capsule owner(held.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {data, {size}, owner};
}

std::vector<predicates::Predicate> parsed(const std::vector<std::string>& texts) {
  std::vector<predicates::Predicate> found;
  for (const std::string& text : texts) found.push_back(predicates::parse_predicate(text));
  return found;
}

nb::bytes as_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }
std::string_view text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

void register_watch(nb::module_& m) {
  m.attr("WATCH_NOTHING") = nb::str(kNothing.data(), kNothing.size());
  auto c = nb::class_<LastValues>(m, "LastValues",
                                  "What the cuts of a stream have left; see native/watch/last_values.hpp.");
  c.def(nb::init<>()).def("__len__", &LastValues::size).def("memory", &LastValues::memory);
  c.def_rw("keep_removed", &LastValues::keep_removed);
  c.def(
      "left_by",
      [](const LastValues& last, const History& part, Array<std::int64_t> order_start,
         Array<std::int32_t> order_txn) {
        return as_bytes(last.left_by(part, span_of(order_start), span_of(order_txn)));
      },
      "part"_a, "order_start"_a, "order_txn"_a, "What a part leaves, as bytes.");
  c.def(
      "replace",
      [](LastValues& last, const nb::bytes& change) { return as_bytes(last.replace(text_of(change))); },
      "change"_a, "Takes over what those bytes say; returns the bytes that undo it.");
  c.def_static(
      "of_reads",
      [](const nb::bytes& entries, const History& window, Array<std::int64_t> reads) {
        return LastValues::of_reads(text_of(entries), window, span_of(reads));
      },
      "entries"_a, "columns"_a, "reads"_a, "The entries in these bytes whose keys some reads of a history concern.");
  m.def(
      "entries_with",
      [](const nb::bytes& entries, const nb::bytes& change) {
        return as_bytes(entries_with(text_of(entries), text_of(change)));
      },
      "entries"_a, "change"_a, "The entries in these bytes, with the values that the change has for some of their keys.");
  c.def("numbers", &LastValues::numbers, "Keys have numbers below this.");
  c.def(
      "entries",
      [](const LastValues& last, std::int64_t first, std::int64_t count) {
        return as_bytes(last.entries(first, count));
      },
      "first"_a, "count"_a, "The entries of some keys, by their numbers, as bytes that replace takes.");
  c.def(
      "records",
      [](const LastValues& last, std::int64_t first, std::int64_t count) {
        nb::list records;
        for (const auto& [name, record] : last.records(first, count))
          records.append(nb::make_tuple(as_bytes(name), as_bytes(record)));
        return records;
      },
      "first"_a, "count"_a, "Key and entry of each of some keys, by their numbers, as bytes.");
  c.def("clear", &LastValues::clear, "Nothing is left.");
  c.def(
      "missing",
      [](const LastValues& last, const History& history) {
        nb::list names;
        for (const std::string& name : last.missing(history)) names.append(as_bytes(name));
        return names;
      },
      "columns"_a, "The keys of a history that are new to it, as bytes.");
  c.def(
      "take_matching",
      [](LastValues& last, const nb::bytes& entries, const std::vector<std::string>& some) {
        last.take_matching(text_of(entries), parsed(some));
      },
      "entries"_a, "predicates"_a,
      "Takes over the rows that one of the predicates may be true of, and whose key is new to it.");
  c.def(
      "open_window",
      [](LastValues& last, const History& raw) {
        Window window;
        try {
          nb::gil_scoped_release released;
          window = open_window(raw, last);
        } catch (const NotWatched& error) {
          throw nb::value_error(
              (std::to_string(error.txn) + " " + std::to_string(error.key) + " " + error.what).c_str());
        }
        return nb::make_tuple(std::move(window.history), as_array(std::move(window.stale)));
      },
      "columns"_a,
      "A window as a history whose initial state this is, and the transactions that read a list of "
      "which another beginning was left.");
  auto loose = nb::class_<LooseKeys>(m, "LooseKeys",
                                     "The keys whose last writers may have another order; see "
                                     "native/watch/loose_keys.hpp.");
  loose.def(nb::init<>()).def("__len__", &LooseKeys::size);
  loose.def(
      "add",
      [](LooseKeys& keys, const History& part, Array<std::int64_t> order_start, std::int64_t number) {
        keys.add(part, span_of(order_start), number);
      },
      "part"_a, "order_start"_a, "number"_a, "Takes the keys of the next part.");
  loose.def("forget", &LooseKeys::forget, "number"_a, "Forgets the parts from this number on.");
  loose.def(
      "unexplained",
      [](const LooseKeys& keys, const History& window, const LastValues& last) {
        LooseKeys::Reads reads = keys.unexplained(window, last);
        return nb::make_tuple(as_array(std::move(reads.op)), as_array(std::move(reads.part)));
      },
      "window"_a, "last"_a, "The reads that another order of last writers may explain, and the part of each.");
  m.def(
      "exchanged_order",
      [](const History& part, Array<std::int64_t> order_start, Array<std::int32_t> order_txn, const History& window,
         Array<std::int64_t> reads, const LastValues& last) {
        Exchanged found = exchanged(part, span_of(order_start), span_of(order_txn), window, span_of(reads), last);
        return nb::make_tuple(as_array(std::move(found.order)), as_array(std::move(found.keys)));
      },
      "part"_a, "order_start"_a, "order_txn"_a, "window"_a, "reads"_a, "last"_a,
      "The orders of a part in which some reads of a window read the last version, empty if there are none, and the "
        "keys of these reads.");
  m.def("predicates_of", &predicates_of, "columns"_a,
        "The predicates of the reads whose rows are known, each once.");
  m.def(
      "ranges_of",
      [](const std::string& text) {
        const predicates::Predicate predicate = predicates::parse_predicate(text);
        std::vector<Range> found;
        nb::list some;
        if (!ranges(predicate.where, found)) found.assign(1, {{}, 0, 0, std::nullopt, true});
        for (const Range& range : found)
          some.append(nb::make_tuple(std::string(range.column), range.low, range.high,
                                     range.text ? nb::object(as_bytes(marked(*range.text))) : nb::none(),
                                     range.texts));
        return nb::make_tuple(predicate.table, some);
      },
      "predicate"_a,
      "Its table, and of which columns an index must be asked: the least and the most number, or the text, "
      "and whether all texts are to be looked at. No column: each row of the table is.");
  m.def(
      "cells_of",
      [](const nb::bytes& entries, const std::string& table, const std::string& column) {
        nb::list cells;
        for (const auto& cell : cells_of(text_of(entries), table, column)) {
          if (!cell)
            cells.append(nb::none());
          else if (cell->is_number)
            cells.append(cell->number);
          else
            cells.append(as_bytes(cell->text));
        }
        return cells;
      },
      "entries"_a, "table"_a, "column"_a,
      "Of each entry what an index of a column has of it: a number, a text behind =, nothing (b'') for what "
      "cannot be compared; None for what is no row of the table, or nil.");
  m.def(
      "cut_window",
      [](const History& window, Array<std::int32_t> source, Array<std::int64_t> order_start,
         Array<std::int32_t> order_txn, Array<std::uint8_t> open, Array<std::uint8_t> in_flight,
         Array<std::uint8_t> young, bool timed, bool real_time, std::int64_t clock_error) {
        const Witness witness{span_of(source), span_of(order_start), span_of(order_txn)};
        const Limits limits{span_of(open), span_of(in_flight), span_of(young), timed, real_time, clock_error};
        std::vector<std::int32_t> going;
        {
          nb::gil_scoped_release released;
          going = cut(window, witness, limits);
        }
        return as_array(std::move(going));
      },
      "window"_a, "source"_a, "order_start"_a, "order_txn"_a, "open"_a, "in_flight"_a, "young"_a, "timed"_a,
      "real_time"_a, "clock_error"_a, "The transactions that no other one leads to.");
  m.def(
      "restrict_witness",
      [](const History& window, Array<std::int32_t> source, Array<std::int64_t> order_start,
         Array<std::int32_t> order_txn, Array<std::int32_t> going, const History& part) {
        for (std::size_t i = 0; i < going.size(); ++i)
          if (going.data()[i] < 0 || going.data()[i] >= window.transactions())
            throw nb::value_error("transactions out of range");
        const Witness witness{span_of(source), span_of(order_start), span_of(order_txn)};
        OwnWitness own = restricted(window, witness, span_of(going), part);
        return nb::make_tuple(as_array(std::move(own.source)), as_array(std::move(own.order_start)),
                              as_array(std::move(own.order_txn)));
      },
      "window"_a, "source"_a, "order_start"_a, "order_txn"_a, "going"_a, "part"_a,
      "What a witness says of some transactions, as a history of these alone.");
}

}  // namespace isolang::watch
