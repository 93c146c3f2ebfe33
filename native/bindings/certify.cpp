// The Python functions of the certificate checker. A check runs without the GIL, and returns an empty string if it
// accepts, or the reason if it does not. `StepReader` converts the steps of a refutation, which may come from the
// engine or from a file, and refuses malformed steps.
#include "certify/certify.hpp"
#include "certify/snapshots.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "core/index.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang::certify {
namespace {

// Converts a text. nanobind's own conversion would end the process if memory ran out.
std::string text_of(nb::handle object) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return std::string(text, idx(size));
}

std::vector<CheckText> check_texts(nb::sequence checks) {
  std::vector<CheckText> result;
  for (const nb::handle check : checks) {
    CheckText text{text_of(check[0]), nb::cast<CheckKind>(check[1]), text_of(check[2]), {}};
    if (nb::len(check) > 3)
      for (const nb::handle name : nb::object(check[3])) {
        NameText one{text_of(name[0]), {}, nb::cast<bool>(name[2])};
        for (const nb::handle pattern : nb::object(name[1])) one.patterns.push_back(text_of(pattern));
        text.names.push_back(std::move(one));
      }
    result.push_back(std::move(text));
  }
  return result;
}

// Runs a check without the GIL. Returns "" if it accepts, and otherwise the reason.
template <typename F>
std::string verdict(F&& check) {
  try {
    nb::gil_scoped_release released;
    check();
    return "";
  } catch (const Rejected& rejected) {
    return rejected.reason;
  } catch (const NotCertified& reason) {
    return reason.reason;
  } catch (const OutOfTime&) {
    return "not certified: timeout";
  } catch (const std::bad_alloc&) {
    return "not certified: out of memory";
  }
}

[[noreturn]] void malformed(std::size_t step) {
  throw Rejected{"step " + std::to_string(step) + ": malformed"};
}

// Reads a refutation step from tuples or lists, which come from the engine or from a file.
class StepReader {
 public:
  StepReader(nb::handle step, std::size_t number) : number_(number), parts_(sequence(step, 1)) {}

  RefutationStep read() {
    RefutationStep step{};
    const std::string name = text(parts_[0]);
    if (name == "cycle") {
      step.kind = StepKind::cycle;
      expect(parts_, 3);
      step.check = text(parts_[1]);
      for (const nb::handle edge : sequence(parts_[2], 0)) step.edges.push_back(read_edge(edge));
    } else if (name == "rup") {
      step.kind = StepKind::rup;
      expect(parts_, 2);
      for (const nb::handle literal : sequence(parts_[1], 0))
        step.literals.push_back(read_literal(literal));
    } else if (name == "order") {
      step.kind = StepKind::order;
      expect(parts_, 3);
      step.numbers.push_back(number(parts_[1]));
      for (const nb::handle t : sequence(parts_[2], 0)) step.numbers.push_back(number(t));
    } else if (name == "anomaly" || name == "choice") {
      step.kind = name == "choice" ? StepKind::choice : StepKind::anomaly;
      expect(parts_, name == "choice" ? 2 : 6);
      for (std::size_t i = 1; i < parts_.size(); ++i) step.numbers.push_back(number(parts_[i]));
    } else if (name == "exhaustion") {
      step.kind = StepKind::exhaustion;
      expect(parts_, 2);
      number(parts_[1]);
    } else {
      malformed(number_);
    }
    return step;
  }

 private:
  using Parts = std::vector<nb::handle>;  // borrowed from the step, which outlives this object

  Parts sequence(nb::handle object, std::size_t at_least) const {
    if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) malformed(number_);
    const Items items(object);
    Parts parts;
    for (Py_ssize_t i = 0; i < items.size(); ++i) parts.emplace_back(items[i]);
    if (parts.size() < at_least) malformed(number_);
    return parts;
  }

  void expect(const Parts& parts, std::size_t size) const {
    if (parts.size() != size) malformed(number_);
  }

  std::string text(nb::handle object) const {
    if (!PyUnicode_Check(object.ptr())) malformed(number_);
    try {
      return text_of(object);
    } catch (nb::python_error&) {  // the text contains an unpaired surrogate
      malformed(number_);
    }
  }

  std::int64_t number(nb::handle object) const {
    std::int64_t result = 0;
    if (PyBool_Check(object.ptr()) || !PyLong_Check(object.ptr()) || !nb::try_cast(object, result))
      malformed(number_);
    return result;
  }

  Edge read_edge(nb::handle object) const {
    const Parts parts = sequence(object, 1);
    expect(parts, 6);
    return {relation_of(text(parts[0])),
            number(parts[1]),
            number(parts[2]),
            number(parts[3]),
            number(parts[4]),
            number(parts[5])};
  }

  Literal read_literal(nb::handle object) const {
    const Parts signed_literal = sequence(object, 1);
    expect(signed_literal, 2);
    if (!PyBool_Check(signed_literal[0].ptr())) malformed(number_);
    const Parts parts = sequence(signed_literal[1], 1);
    Literal literal{signed_literal[0].ptr() == Py_True, LiteralKind::in, 0, 0, 0};
    const std::string name = text(parts[0]);
    if (name == "source") {
      literal.kind = LiteralKind::source;
      expect(parts, 3);
      literal.y = number(parts[2]);
    } else if (name == "before") {
      literal.kind = LiteralKind::before;
      expect(parts, 4);
      literal.y = number(parts[2]);
      literal.z = number(parts[3]);
    } else if (name == "in") {
      expect(parts, 2);
    } else {
      malformed(number_);
    }
    literal.x = number(parts[1]);
    return literal;
  }

  std::size_t number_;
  Parts parts_;
};

}  // namespace

void register_certify(nb::module_& m) {
  nb::enum_<CheckKind>(m, "CheckKind", "What a check forbids; see native/certify/certify.hpp.")
      .value("acyclic", CheckKind::acyclic)
      .value("irreflexive", CheckKind::irreflexive)
      .value("earlier", CheckKind::earlier)
      .value("of_one_key", CheckKind::of_one_key)
      .value("by_statement", CheckKind::by_statement)
      .value("back_by_statement", CheckKind::back_by_statement);
  m.def(
      "verify_witness",
      [](const History& columns, nb::sequence checks, Array<std::int32_t> source,
         Array<std::int64_t> order_start, Array<std::int32_t> order_txn,
         std::optional<Array<std::int32_t>> commits, std::optional<Array<std::int64_t>> seen, double seconds) {
        const std::vector<CheckText> texts = check_texts(checks);
        Budget budget = interruptible_budget(seconds);
        return verdict([&] {
          const std::span sources(source.data(), source.size());
          const std::span starts(order_start.data(), order_start.size());
          const std::span order(order_txn.data(), order_txn.size());
          if (commits && seen)
            verify_implicit_witness(columns, texts, sources, starts, order,
                                    {commits->data(), commits->size()}, {seen->data(), seen->size()}, budget);
          else
            verify_witness(columns, texts, sources, starts, order, budget);
        });
      },
      "columns"_a, "checks"_a, "source"_a, "order_start"_a, "order_txn"_a,
      "commits"_a = nb::none(), "seen"_a = nb::none(), "seconds"_a = 0.0,
      "Check a witness; returns an empty string if it is right, else the reason.");
  m.def(
      "verify_refutation",
      [](const History& columns, nb::sequence checks, nb::sequence steps, double seconds) {
        const std::vector<CheckText> texts = check_texts(checks);
        std::vector<RefutationStep> read;
        try {
          for (const nb::handle step : steps) read.push_back(StepReader(step, read.size()).read());
        } catch (const Rejected& rejected) {
          return rejected.reason;
        } catch (const NotCertified& reason) {
          return reason.reason;
        }
        Budget budget = interruptible_budget(seconds);
        return verdict([&] { verify_refutation(columns, texts, read, budget); });
      },
      "columns"_a, "checks"_a, "steps"_a, "seconds"_a = 0.0,
      "Check a refutation; returns an empty string if it is right, else the reason.");
}

}  // namespace isolang::certify
