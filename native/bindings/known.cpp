// The Python functions for the edges shown directly by a history, and for the short cycles among them
// (engine/graph/known_edges.hpp).
#include <nanobind/stl/string.h>

#include <span>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "engine/graph/known_edges.hpp"
#include "engine/graph/reduced_edges.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

std::uint8_t relations_of(nb::handle names) {
  std::uint8_t set = 0;
  for (std::size_t r = 0; r < kKnownRelations; ++r)
    if (nb::cast<bool>(names.attr("__contains__")(name_of(static_cast<KnownRelation>(r)))))
      set |= static_cast<std::uint8_t>(1U << r);
  return set;
}

nb::tuple edge_of(const KnownEdge& e) {
  nb::list shown;
  for (const std::int64_t op : e.shown) shown.append(op);
  return nb::make_tuple(name_of(e.relation), e.from, e.to, e.key,
                        e.op, e.writer, nb::tuple(shown));
}

nb::tuple short_cycles(const KnownGraph& graph, nb::handle back, nb::handle closing,
                       std::size_t longest, std::size_t most, std::int64_t effort) {
  const CycleSearch search{.back = relations_of(back),
                           .closing = relations_of(closing),
                           .longest = longest,
                           .most = most,
                           .effort = effort};
  Budget budget = interruptible_budget(0);
  KnownCycles found;
  {
    nb::gil_scoped_release release;
    found = graph.short_cycles(search, budget);
  }
  nb::list cycles;
  for (const KnownCycle& cycle : found.cycles) {
    nb::list edges;
    for (const std::int32_t e : cycle.edges)
      edges.append(edge_of(graph.edges()[static_cast<std::size_t>(e)]));
    cycles.append(nb::make_tuple(edges, cycle.component));
  }
  return nb::make_tuple(cycles, found.complete && graph.complete());
}

KnownGraph* known_graph(const Problem& problem, std::int32_t low, std::int32_t high,
                        std::int64_t effort) {
  if (low < 0 || high < low || high > problem.n || effort < 0)
    throw nb::value_error("known graph: no such transactions");
  Budget budget = interruptible_budget(0);
  nb::gil_scoped_release release;
  return new KnownGraph(problem, low, high, effort, budget);
}

nb::object reduced(std::int32_t nodes,
                   nb::ndarray<const std::int32_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>
                       edges,
                   double seconds) {
  const std::span<const std::int32_t> all(edges.data(), 2 * edges.shape(0));
  for (const std::int32_t v : all)
    if (v < 0 || v >= nodes) throw nb::value_error("edges: no such node");
  Budget budget = interruptible_budget(seconds);
  std::vector<std::int32_t> kept;
  {
    nb::gil_scoped_release release;
    kept = reduced_edges(nodes, all, budget);
  }
  auto* owned = new std::vector<std::int32_t>(std::move(kept));
  const nb::capsule owner(
      owned, [](void* p) noexcept { delete static_cast<std::vector<std::int32_t>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, std::int32_t, nb::ndim<2>>(
      owned->data(), {owned->size() / 2, 2}, owner));
}

}  // namespace

void register_known(nb::module_& m) {
  nb::class_<KnownGraph>(m, "KnownGraph", "The edges that a history shows by itself.")
      .def(nb::new_(&known_graph), "problem"_a, "low"_a, "high"_a, "effort"_a)
      .def("short_cycles", &short_cycles, "back"_a, "closing"_a, "longest"_a, "most"_a,
           "effort"_a);
  m.def("reduced_edges", &reduced, "nodes"_a, "edges"_a, "seconds"_a = 0.0,
        "The edges of a graph without most that two others replace; all of one with a cycle.");
}

}  // namespace isolang
