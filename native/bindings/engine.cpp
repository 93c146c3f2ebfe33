#include <algorithm>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "engine/hard/portfolio.hpp"
#include "engine/solve.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

std::vector<Automaton::Step> steps_of(nb::handle pairs) {
  std::vector<Automaton::Step> steps;
  for (nb::handle pair : pairs)
    steps.emplace_back(nb::cast<std::int32_t>(pair[0]), nb::cast<std::int32_t>(pair[1]));
  return steps;
}

// The relations of the language that speak of some reads only, and the one that they are part of.
struct StepPart {
  const char* name;
  Relation relation;
  std::uint8_t reads;
};
constexpr std::uint8_t item = kItemReads, predicate = kPredicateReads;
constexpr StepPart kParts[] = {
#define PART(id, name, whole, reads) {name, Relation::whole, reads},
#include "core/relations.def"
};

bool holds(nb::handle set, const char* name) {
  return nb::cast<bool>(set.attr("__contains__")(name));
}

// Per relation, the reads whose pairs are among the named ones.
Automaton::Reads reads_of(nb::handle names) {
  Automaton::Reads reads{};
  for (std::size_t r = 0; r < kRelations; ++r)
    if (holds(names, kRelationNames[r])) reads[r] = kAllReads;
  for (const StepPart& part : kParts)
    if (holds(names, part.name)) reads[static_cast<std::size_t>(part.relation)] |= part.reads;
  return reads;
}

// Steps of parts of a relation become steps of the relation.
void add_parts(nb::handle steps, Relation relation, std::vector<Automaton::Step>& to,
               std::vector<std::uint8_t>& reads) {
  std::vector<std::uint8_t> of_each(to.size(), kAllReads);
  for (const StepPart& part : kParts) {
    if (part.relation != relation || !holds(steps, part.name)) continue;
    for (const auto& step : steps_of(steps[part.name])) {
      const auto at = std::ranges::find(to, step) - to.begin();
      if (at == std::ssize(to)) {
        to.push_back(step);
        of_each.push_back(0);
      }
      of_each[static_cast<std::size_t>(at)] |= part.reads;
    }
  }
  const auto whole = [](std::uint8_t one) { return one == kAllReads; };
  if (!std::ranges::all_of(of_each, whole)) reads = std::move(of_each);
}

Automaton automaton_of(nb::handle a) {
  Automaton m;
  m.states = nb::cast<std::int32_t>(a.attr("states"));
  m.epsilon = steps_of(a.attr("epsilon"));
  const nb::object steps = a.attr("steps");
  std::size_t known = 0;
  for (std::size_t r = 0; r < kRelations; ++r)
    if (holds(steps, kRelationNames[r])) {
      m.steps[r] = steps_of(steps[kRelationNames[r]]);
      ++known;
    }
  for (const StepPart& part : kParts) known += holds(steps, part.name) ? 1 : 0;
  if (known != nb::len(steps)) throw nb::value_error("automaton: unknown relation among its steps");
  m.so_repeatable = nb::cast<bool>(a.attr("repeatable").attr("__contains__")("so"));
  m.of_one_key = nb::cast<bool>(a.attr("of_one_key"));
  m.by_statement = nb::cast<bool>(a.attr("by_statement"));
  m.by_operation = nb::cast<bool>(a.attr("by_operation"));
  m.back = steps_of(a.attr("back"));
  m.judges = nb::cast<bool>(a.attr("judges"));
  const nb::object direct = a.attr("direct");
  const auto has = [&](const char* name) { return holds(direct, name); };
  m.back_so = has("so");
  m.back_wr = has("wr");
  m.back_earlier_wr = has("earlier wr");
  const Automaton::Reads closing = reads_of(a.attr("closing"));
  if (has("components")) {
    m.component = reads_of(steps);
    m.closing = closing;
    m.closing_first = nb::cast<bool>(a.attr("closing_first"));
    m.steps = {};
  } else {
    for (const Relation r : {Relation::wr, Relation::rw})
      add_parts(steps, r, m.steps[static_cast<std::size_t>(r)],
                r == Relation::wr ? m.wr_reads : m.rw_reads);
    m.back_reads = closing[static_cast<std::size_t>(Relation::rw)];
    if (closing[static_cast<std::size_t>(Relation::wr)] != 0) {
      m.back_to_source.swap(m.back);
      m.back_reads = kAllReads;
    }
  }
  const auto check = [&](const std::vector<Automaton::Step>& list) {
    for (const auto& [q, r] : list)
      if (q < 0 || r < 0 || q >= m.states || r >= m.states)
        throw nb::value_error("automaton: step out of range");
  };
  check(m.epsilon);
  check(m.back);
  check(m.back_to_source);
  for (const auto& list : m.steps) check(list);
  return m;
}

nb::tuple literal(const ProofLiteral& l) {
  switch (l.kind) {
    case ProofLiteral::Kind::before:
      return nb::make_tuple(l.positive, nb::make_tuple("before", l.key, l.a, l.b));
    case ProofLiteral::Kind::source:
      return nb::make_tuple(l.positive, nb::make_tuple("source", l.op, l.b));
    default:
      return nb::make_tuple(l.positive, nb::make_tuple("in", l.a));
  }
}

nb::tuple step(const ProofStep& s) {
  nb::list items;
  switch (s.kind) {
    case ProofStep::Kind::anomaly:
      return nb::make_tuple("anomaly", static_cast<int>(s.anomaly.kind), s.anomaly.txn,
                            s.anomaly.op, s.anomaly.other_txn, s.anomaly.other_op);
    case ProofStep::Kind::choice:
      return nb::make_tuple("choice", s.op);
    case ProofStep::Kind::cycle:
      for (const ProofEdge& e : s.edges)
        items.append(nb::make_tuple(kRelationNames[static_cast<std::size_t>(e.relation)], e.from,
                                    e.to, e.key, e.op, e.writer));
      return nb::make_tuple("cycle", s.check, items);
    case ProofStep::Kind::order:
      for (const std::int32_t t : s.txns) items.append(t);
      return nb::make_tuple("order", s.key, items);
    case ProofStep::Kind::exhaustion:
      return nb::make_tuple("exhaustion", s.states);
    default:
      for (const ProofLiteral& l : s.literals) items.append(literal(l));
      return nb::make_tuple("rup", items);
  }
}

template <typename T>
nb::object array(std::vector<T> values) {
  auto* const owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

void check_strategy(const std::string& name) {
  const auto known = strategies();
  if (std::ranges::find(known, name) != known.end()) return;
  std::string message = "strategy (got " + name + ", expected one of";
  for (const std::string& one : known) message += " " + one;
  throw nb::value_error((message + ")").c_str());
}

nb::dict solve_problem(const History& history, const Problem& problem, nb::sequence automata,
                       double seconds, std::uint64_t seed, std::size_t max_clock_bytes,
                       nb::object progress, bool presolve, const std::string& strategy,
                       std::size_t max_search_bytes, std::size_t threads, std::int64_t work) {
  check_strategy(strategy);
  if (threads == 0) throw nb::value_error("threads (got 0, expected at least 1)");
  std::vector<Automaton> machines;
  for (nb::handle a : automata) machines.push_back(automaton_of(a));
  const SolveOptions options{.seed = seed,
                             .max_clock_bytes = max_clock_bytes,
                             .max_search_bytes = max_search_bytes,
                             .threads = threads,
                             .presolve = presolve,
                             .strategy = strategy};
  Budget budget = interruptible_budget(seconds, progress);
  budget.limit_work(work);
  Solution solution;
  std::vector<std::int32_t> source;
  {
    nb::gil_scoped_release release;
    // A check that looks at single reads of a transaction needs each of them.
    const bool each_read = std::ranges::any_of(
        machines, [](const Automaton& m) { return m.back_earlier_wr || m.by_statement; });
    const Problem unmerged = each_read ? build_problem(history, false, true) : Problem{};
    const Problem& used = each_read ? unmerged : problem;
    solution = solve(used, machines, options, budget);
    if (solution.model) source = sources_by_operation(history, used, *solution.model);
  }
  nb::dict result, statistics;
  result["work"] = budget.work();
  for (const auto& [name, value] : solution.statistics) statistics[name.c_str()] = value;
  result["statistics"] = statistics;
  if (solution.model) {
    result["source"] = array(std::move(source));
    result["order_start"] = array(std::move(solution.model->order_start));
    result["order_txn"] = array(std::move(solution.model->order_txn));
  } else {
    nb::list steps;
    for (const ProofStep& s : solution.refutation) steps.append(step(s));
    result["refutation"] = steps;
  }
  return result;
}

// Pruning alone, for other encodings: what remains of the problem. `consistent` is false if nothing
// remains.
nb::dict prune_problem(const Problem& problem, nb::sequence automata, double seconds,
                       std::size_t max_clock_bytes, nb::object progress) {
  std::vector<Automaton> machines;
  for (nb::handle a : automata) machines.push_back(automaton_of(a));
  Budget budget = interruptible_budget(seconds, progress);
  EventGraph graph(problem, machines);
  Pruner pruner(graph, budget, max_clock_bytes);
  Pruner::Pairs pairs;
  std::vector<std::int32_t> edges;
  bool consistent = false;
  {
    nb::gil_scoped_release release;
    budget.phase = "pruning";
    consistent = pruner.run();
    if (consistent) pairs = pruner.pairs();
    edges.reserve(graph.edges.size() * 2);
    for (const Edge& e : graph.edges) edges.insert(edges.end(), {e.from, e.to});
  }
  nb::dict result;
  result["consistent"] = consistent;
  result["nodes"] = graph.nodes();
  result["version_base"] = graph.has_version_nodes() ? graph.order_node(0) : -1;
  result["edges"] = array(std::move(edges));
  result["source"] = array(std::move(pruner.source));
  result["alive"] = array(std::move(pruner.alive));
  result["inclusion"] = array(std::move(pruner.inclusion));
  result["settled"] = array(std::move(pairs.settled));
  result["open"] = array(std::move(pairs.open));
  result["passes"] = pruner.passes;
  result["fixpoint"] = pruner.at_fixpoint();
  return result;
}

nb::object operation_sources(
    const History& history, const Problem& problem,
    nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> source) {
  if (source.shape(0) != static_cast<std::size_t>(problem.reads()))
    throw nb::value_error("source: one entry per read");
  Model model;
  model.source.assign(source.data(), source.data() + source.shape(0));
  for (const std::int32_t writer : model.source)
    if (writer < -1 || writer >= static_cast<std::int32_t>(problem.writer_txn.size()))
      throw nb::value_error("source: no such writer");
  return array(sources_by_operation(history, problem, model));
}

}  // namespace

void register_engine(nb::module_& m) {
  m.def("load", &load, "problem"_a,
        "What the reads demand against what the concurrency leaves open; beyond about 0.5 a "
        "history is hard to decide.");
  nb::exception<OutOfTime>(m, "OutOfTime", PyExc_TimeoutError);
  nb::exception<OutOfMemory>(m, "OutOfMemory", PyExc_MemoryError);
  m.def("strategies", &strategies,
        "What may decide: all in turns, or one of the searches by itself.");
  m.def("solve", &solve_problem, "columns"_a, "problem"_a, "automata"_a, "seconds"_a = 0.0,
        "seed"_a = 0, "max_clock_bytes"_a = std::size_t{1} << 29, "progress"_a = nb::none(),
        "presolve"_a = true, "strategy"_a = "auto", "max_search_bytes"_a = std::size_t{1} << 30,
        "threads"_a = std::size_t{1}, "work"_a = std::int64_t{0},
        "Decides a problem: a model (source, order_start, order_txn) or a refutation, and "
        "statistics.");
  m.def("prune", &prune_problem, "problem"_a, "automata"_a, "seconds"_a = 0.0,
        "max_clock_bytes"_a = std::size_t{1} << 29, "progress"_a = nb::none(),
        "Known edges, settled sources and orders, and the choices that are left.");
  m.def("operation_sources", &operation_sources, "columns"_a, "problem"_a, "source"_a,
        "The transaction that each operation reads from, given each read's writer.");
}

}  // namespace isolang
