// The Python class of the CDCL solver for propositional clauses, with the conventions of DIMACS.
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "bindings/bindings.hpp"
#include "engine/cdcl/acyclic_solver.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

using EdgeRows = nb::ndarray<const std::int32_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

// A solver with the conventions of DIMACS: variables are numbered from 1, and a negative number is a negated variable.
class DimacsSolver {
 public:
  DimacsSolver(std::int32_t nodes, std::uint64_t seed) : solver_(nodes, seed) {
    if (nodes < 0) throw nb::value_error("nodes must not be negative");
  }

  std::int32_t new_variables(std::int32_t count, bool phase, std::int32_t group) {
    if (count < 0 ||
        count > (std::numeric_limits<std::int32_t>::max() >> 1) - solver_.sat().variables())
      throw nb::value_error("too many variables");
    const std::int32_t first = solver_.sat().variables() + 1;
    for (std::int32_t i = 0; i < count; ++i) solver_.new_variable(phase, group);
    return first;
  }

  void add_clauses(const Array<std::int32_t>& literals) {
    const std::span<const std::int32_t> all(literals.data(), literals.size());
    if (!all.empty() && all.back() != 0)
      throw nb::value_error("the last clause does not end with 0");
    for (const std::int32_t l : all)
      if (l != 0) literal(l);  // check all literals before adding any
    std::vector<Lit> clause;
    for (const std::int32_t l : all) {
      if (l != 0) {
        clause.push_back(literal(l));
      } else {
        solver_.add_clause(clause);
        clause.clear();
      }
    }
  }

  void add_edges(const EdgeRows& rows) {
    const auto at = [&](std::size_t i, std::size_t j) { return rows.data()[3 * i + j]; };
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
      for (const std::size_t j : {0U, 1U})
        if (at(i, j) < 0 || at(i, j) >= solver_.nodes())
          throw nb::value_error("an edge's node is out of range");
      if (at(i, 2) != 0) literal(at(i, 2));
    }
    for (std::size_t i = 0; i < rows.shape(0); ++i)
      solver_.add_edge(
          {at(i, 0), at(i, 1), at(i, 2) == 0 ? std::nullopt : std::optional(literal(at(i, 2)))});
  }

  nb::object solve(double seconds, std::int64_t max_conflicts,
                   const std::vector<std::int32_t>& assumptions, nb::object progress) {
    std::vector<Lit> assumed;
    for (const std::int32_t l : assumptions) assumed.push_back(literal(l));
    const Budget budget = interruptible_budget(seconds, progress);
    Cdcl::Result result{};
    {
      nb::gil_scoped_release release;
      result = solver_.solve(budget, max_conflicts, assumed);
    }
    if (result == Cdcl::Result::gave_up) return nb::none();
    return nb::bool_(result == Cdcl::Result::satisfiable);
  }

  nb::object model() const {
    const auto n = static_cast<std::size_t>(solver_.sat().variables()) + 1;
    auto values = std::make_unique<std::int8_t[]>(n);
    for (std::size_t v = 1; v < n; ++v)
      values[v] = solver_.model(static_cast<std::int32_t>(v) - 1) ? 1 : 0;
    std::int8_t* const data = values.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::int8_t*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::int8_t, nb::ndim<1>>(data, {n}, owner));
  }

  std::vector<std::int32_t> core() const {
    std::vector<std::int32_t> literals;
    for (const Lit l : solver_.core())
      literals.push_back(l.negated() ? -(l.variable() + 1) : l.variable() + 1);
    return literals;
  }

  nb::dict statistics() const {
    nb::dict d;
    d["variables"] = solver_.sat().variables();
    d["edges"] = solver_.edges();
    d["decisions"] = solver_.sat().decisions;
    d["conflicts"] = solver_.sat().conflicts;
    d["restarts"] = solver_.sat().restarts;
    d["decisions_kept"] = solver_.sat().decisions_kept;
    return d;
  }

 private:
  Lit literal(std::int32_t l) const {
    const std::int64_t variable = std::abs(static_cast<std::int64_t>(l)) - 1;
    if (variable < 0 || variable >= solver_.sat().variables())
      throw nb::value_error("a literal is of no variable");
    const auto v = static_cast<std::int32_t>(variable);
    return l < 0 ? Lit::negative(v) : Lit::positive(v);
  }
  AcyclicSolver solver_;
};

}  // namespace

void register_sat(nb::module_& m) {
  nb::class_<DimacsSolver>(
      m, "AcyclicSolver",
      "Clauses, and guarded edges that must not form a cycle; literals as in DIMACS.")
      .def(nb::init<std::int32_t, std::uint64_t>(), "nodes"_a, "seed"_a = 0)
      .def("new_variables", &DimacsSolver::new_variables, "count"_a, "phase"_a = false, "group"_a = 0)
      .def("add_clauses", &DimacsSolver::add_clauses, "literals"_a)
      .def("add_edges", &DimacsSolver::add_edges, "rows"_a)
      .def("solve", &DimacsSolver::solve, "seconds"_a = 0.0, "max_conflicts"_a = std::int64_t{1} << 62,
           "assumptions"_a = std::vector<std::int32_t>(), "progress"_a = nb::none())
      .def("model", &DimacsSolver::model)
      .def("core", &DimacsSolver::core)
      .def("statistics", &DimacsSolver::statistics);
}

}  // namespace isolang
