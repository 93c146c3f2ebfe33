// The Python class `Problem`. It runs the pre-pass on a history and exposes the columns of the neutral problem.
#include "core/problem.hpp"

#include <stdexcept>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "problem/one_total_order.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

// Returns five numbers for each anomaly: kind, transaction, operation, other transaction, other operation.
NumberArray table(const std::vector<Anomaly>& anomalies) {
  std::vector<std::int64_t> rows;
  rows.reserve(anomalies.size() * 5);
  for (const Anomaly& a : anomalies)
    rows.insert(rows.end(), {static_cast<std::int64_t>(a.kind), a.txn, a.op, a.other_txn, a.other_op});
  return owned_numbers(std::move(rows), 5);
}

}  // namespace

void register_problem(nb::module_& m) {
  // std::domain_error is a well-formed input that cannot be expressed.
  nb::exception<std::domain_error>(m, "NotExpressible", PyExc_ValueError);

  auto c = nb::class_<Problem>(m, "Problem",
                               "The neutral problem of one history; see native/core/problem.hpp.");
  c.def_ro("n", &Problem::n).def_ro("sessions", &Problem::sessions).def_ro("keys", &Problem::keys);
  c.def_ro("has_time", &Problem::has_time);
  c.def_ro("ignored_failed_ops", &Problem::ignored_failed_ops);
  c.def_ro("ignored_unknown_reads", &Problem::ignored_unknown_reads);
#define ISOLANG_COLUMN(name) def_column(c, #name, &Problem::name)
  ISOLANG_COLUMN(inclusion);
  ISOLANG_COLUMN(unfinished);
  ISOLANG_COLUMN(session);
  ISOLANG_COLUMN(group);
  ISOLANG_COLUMN(begin);
  ISOLANG_COLUMN(end);
  ISOLANG_COLUMN(key_start);
  ISOLANG_COLUMN(first_answer);
  ISOLANG_COLUMN(commit_begin);
  ISOLANG_COLUMN(commit_end);
  ISOLANG_COLUMN(slack);
  ISOLANG_COLUMN(write_answer);
  ISOLANG_COLUMN(writer_txn);
  ISOLANG_COLUMN(writer_op);
  ISOLANG_COLUMN(read_txn);
  ISOLANG_COLUMN(read_key);
  ISOLANG_COLUMN(read_op);
  ISOLANG_COLUMN(read_predicate);
  ISOLANG_COLUMN(candidate_start);
  ISOLANG_COLUMN(candidate);
  ISOLANG_COLUMN(omitted);
  ISOLANG_COLUMN(vo_before);
  ISOLANG_COLUMN(vo_after);
  ISOLANG_COLUMN(vo_op);
  ISOLANG_COLUMN(impossible);
#undef ISOLANG_COLUMN
  c.def_prop_ro(
      "anomalies", [](const Problem& p) { return table(p.anomalies); }, nb::rv_policy::automatic);
  c.def_ro("refusal", &Problem::refusal);
  c.def_prop_ro(
      "impossible_reason", [](const Problem& p) { return table(p.impossible_reason); },
      nb::rv_policy::automatic);

  m.def(
      "build_problem",
      [](const History& h, bool unread, bool each_read, std::optional<PredicateRows> rows, bool moments) {
        std::vector<ReturnedRow> kept;
        for (std::size_t i = 0; rows && i < rows->shape(0); ++i) kept.push_back({(*rows)(i, 0), (*rows)(i, 1)});
        nb::gil_scoped_release release;
        return build_problem(h, unread, each_read, rows ? std::optional(std::span<const ReturnedRow>(kept)) : std::nullopt, moments);
      },
      "columns"_a, nb::kw_only(), "unread"_a = false, "each_read"_a = false, "rows"_a = nb::none(), "moments"_a = true,
      "The neutral problem of the columns; with unread, no transaction of unknown outcome is out; "
      "with each_read, no two external reads are one; with rows, other returned rows of implicit "
      "predicate reads are omitted if they have several candidates; without moments, those that only done, late and "
      "locked compare are left out.");
  m.def("fits_one_total_order", &fits_one_total_order, "problem"_a, nb::kw_only(), "sessions"_a,
        "real_time"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Whether all included transactions fit in one total order, each read after one of its "
        "candidates.");
}

}  // namespace isolang
