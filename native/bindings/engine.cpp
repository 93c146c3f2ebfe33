// The Python functions of the engine, above all `solve` and `prune`. This file converts the automata compiled by Python
// from a specification to native automata, runs the engine without the GIL, and converts models and refutations to
// arrays of numbers and tuples.
#include <algorithm>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "engine/hard/portfolio.hpp"
#include "engine/graph/commit_order.hpp"
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

// A relation of the language that concerns only some reads, with the relation of which it is a
// part.
struct StepPart {
  const char* name;
  Relation relation;
  Pairs pairs;
};
constexpr Pairs item = kItemPairs, predicate = kPredicatePairs;
constexpr StepPart kParts[] = {
#define PART(id, name, whole, reads) {name, Relation::whole, reads},
#include "core/relations.def"
};

bool holds(nb::handle set, const char* name) {
  return nb::cast<bool>(set.attr("__contains__")(name));
}

// Returns for each relation the reads whose pairs are among the named relations.
Automaton::Reads reads_of(nb::handle names) {
  Automaton::Reads reads{};
  for (std::size_t r = 0; r < kRelations; ++r)
    if (holds(names, kRelationNames[r])) reads[r] = kAllPairs;
  for (const StepPart& part : kParts)
    if (holds(names, part.name)) reads[static_cast<std::size_t>(part.relation)] |= part.pairs;
  return reads;
}

// The letters restricted by a name in quotes, such as wr["audit/*"] and label "audit". Each is described as in Python's
// Automaton.restricted: the letter without the name, its patterns, and whether it is negated.
class Restrictions {
 public:
  void add(nb::handle automaton) {
    for (nb::handle entry : automaton.attr("restricted").attr("values")()) number(entry);
  }
  void resolve(const History& history) {
    if (!classes_.empty()) kinds_ = std::make_shared<const Kinds>(kinds_of(history, classes_));
  }
  std::shared_ptr<const Kinds> kinds() const { return kinds_; }
  Pairs pairs(nb::handle entry) { return kinds_->members[number(entry)]; }

 private:
  std::size_t number(nb::handle entry) {
    const auto base = nb::cast<std::string>(entry[0]);
    const NameClass one{base == "label"   ? NameClass::Of::labels
                        : base == "level" ? NameClass::Of::levels
                                          : NameClass::Of::keys,
                        nb::cast<std::vector<std::string>>(entry[1]), nb::cast<bool>(entry[2])};
    const auto at = std::ranges::find(classes_, one);
    if (at != classes_.end()) return static_cast<std::size_t>(at - classes_.begin());
    classes_.push_back(one);
    return classes_.size() - 1;
  }
  std::vector<NameClass> classes_;
  std::shared_ptr<const Kinds> kinds_;
};

// The steps of all letters of a relation, each with the pairs to which it applies.
class Steps {
 public:
  void add(const Automaton::Step& step, Pairs pairs) {
    const auto at = static_cast<std::size_t>(std::ranges::find(steps, step) - steps.begin());
    if (at == steps.size()) {
      steps.push_back(step);
      pairs_.push_back(0);
    }
    pairs_[at] |= pairs;
  }
  std::vector<Pairs> pairs() const {
    const auto whole = [](Pairs one) { return one == kAllPairs; };
    return std::ranges::all_of(pairs_, whole) ? std::vector<Pairs>{} : pairs_;
  }
  std::vector<Automaton::Step> steps;

 private:
  std::vector<Pairs> pairs_;
};

// Returns the relation of a letter without names, and the reads that it concerns.
std::pair<std::size_t, Pairs> letter_of(const std::string& name) {
  for (std::size_t r = 0; r < kRelations; ++r)
    if (name == kRelationNames[r]) return {r, kAllPairs};
  for (const StepPart& part : kParts)
    if (name == part.name) return {static_cast<std::size_t>(part.relation), part.pairs};
  throw nb::value_error("automaton: unknown relation among its steps");
}

Sites sites_of(const std::string& name) {
  constexpr const char* kNames[] = {"transactions", "accesses", "statements", "operations"};
  const auto at = std::ranges::find(kNames, name);
  if (at == std::end(kNames)) throw nb::value_error("automaton: unknown sites");
  return static_cast<Sites>(at - std::begin(kNames));
}

Automaton automaton_of(nb::handle a, Restrictions& restrictions) {
  Automaton m;
  m.states = nb::cast<std::int32_t>(a.attr("states"));
  m.epsilon = steps_of(a.attr("epsilon"));
  const nb::object steps = a.attr("steps"), restricted = a.attr("restricted");
  std::vector<Steps> found(kRelations);
  for (nb::handle item : steps.attr("items")()) {
    const auto letter = nb::cast<std::string>(item[0]);
    const bool named = holds(restricted, letter.c_str());
    const nb::object entry = named ? nb::object(restricted[letter.c_str()]) : nb::object();
    auto [relation, pairs] = letter_of(named ? nb::cast<std::string>(entry[0]) : letter);
    if (named) pairs &= restrictions.pairs(entry);
    for (const auto& step : steps_of(item[1])) found[relation].add(step, pairs);
  }
  m.so_repeatable = nb::cast<bool>(a.attr("repeatable").attr("__contains__")("so"));
  m.sites = sites_of(nb::cast<std::string>(a.attr("sites")));
  m.back.by_rw = steps_of(a.attr("back"));
  m.judges = nb::cast<bool>(a.attr("judges"));
  const nb::object direct = a.attr("direct");
  const auto has = [&](const char* name) { return holds(direct, name); };
  m.back.so = has("so");
  m.back.wr = has("wr");
  m.back.earlier_wr = has("earlier wr");
  const Automaton::Reads closing = reads_of(a.attr("closing"));
  if (has("components")) {
    if (nb::len(restricted) > 0) throw nb::value_error("automaton: names in a check of components");
    m.component = reads_of(steps);
    m.closing = closing;
    if (nb::cast<bool>(a.attr("without_writers")))
      for (auto* const reads : {&m.component, &m.closing}) (*reads)[static_cast<std::size_t>(Relation::rw)] &= ~kWriterPairs;
    m.closing_first = nb::cast<bool>(a.attr("closing_first"));
  } else {
    m.kinds = restrictions.kinds();
    for (std::size_t r = 0; r < kRelations; ++r) {
      m.pairs[r] = found[r].pairs();
      m.steps[r] = std::move(found[r].steps);
    }
    m.back.rw_pairs = closing[static_cast<std::size_t>(Relation::rw)];
    if (closing[static_cast<std::size_t>(Relation::wr)] != 0) {
      m.back.by_wr.swap(m.back.by_rw);
      m.back.rw_pairs = kAllPairs;
    }
  }
  const auto check = [&](const std::vector<Automaton::Step>& list) {
    for (const auto& [q, r] : list)
      if (q < 0 || r < 0 || q >= m.states || r >= m.states)
        throw nb::value_error("automaton: step out of range");
  };
  check(m.epsilon);
  check(m.back.by_rw);
  check(m.back.by_wr);
  for (const auto& list : m.steps) check(list);
  return m;
}

std::vector<Automaton> automata_of(const History& history, nb::sequence automata) {
  Restrictions restrictions;
  for (nb::handle a : automata) restrictions.add(a);
  restrictions.resolve(history);
  std::vector<Automaton> machines;
  for (nb::handle a : automata) machines.push_back(automaton_of(a, restrictions));
  return machines;
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
  return nb::cast(owned_numbers(std::move(values)));
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
                       std::size_t max_search_bytes, std::size_t threads, std::int64_t work,
                       std::vector<std::int32_t> likely_order) {
  check_strategy(strategy);
  if (threads == 0) throw nb::value_error("threads (got 0, expected at least 1)");
  for (const std::int32_t t : likely_order)
    if (t < 0 || t >= problem.n) throw nb::value_error("likely_order: no such transaction");
  std::vector<Automaton> machines = automata_of(history, automata);
  const SolveOptions options{.seed = seed,
                             .max_clock_bytes = max_clock_bytes,
                             .max_search_bytes = max_search_bytes,
                             .threads = threads,
                             .presolve = presolve,
                             .strategy = strategy,
                             .likely_order = std::move(likely_order)};
  Budget budget = interruptible_budget(seconds, progress);
  budget.limit_work(work);
  Solution solution;
  std::vector<std::int32_t> source;
  {
    nb::gil_scoped_release release;
    // A check about single reads of a transaction needs every read, even if several reads of a transaction saw the same
    // version.
    const bool apart = !problem.each_read && std::ranges::any_of(machines, [](const Automaton& m) {
      return m.back.earlier_wr || m.by_statement();
    });
    const Problem unmerged = apart ? build_problem(history, false, true) : Problem{};
    const Problem& used = apart ? unmerged : problem;
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

// Prunes the problem for other encodings and returns what remains. `consistent` is false if nothing remains.
nb::dict prune_problem(const History& history, const Problem& problem, nb::sequence automata, double seconds,
                       std::size_t max_clock_bytes, nb::object progress) {
  std::vector<Automaton> machines = automata_of(history, automata);
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

nb::object order_of_commits(const History& history, const Problem& problem,
                              nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> source,
                              nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> order_start,
                              nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> order_txn,
                              nb::frozenset relations, bool serial, bool versions_only, bool item_rw, bool by_statement,
                              bool as_modelled, double seconds) {
  Budget budget = interruptible_budget(seconds);
  const auto kept = [&](const char* name) { return relations.contains(name); };
  const KeptRelations given{.so = kept("so"), .rt = kept("rt"), .group_rt = kept("group-rt"), .done = kept("done"),
                   .late = kept("late"), .locked = kept("locked"), .serial = serial,
                   .versions_only = versions_only, .item_rw = item_rw, .by_statement = by_statement,
                   .as_modelled = as_modelled};
  std::optional<CommitOrder> found;
  {
    nb::gil_scoped_release release;
    const PredicateReads statements{history.statement_txn, history.statement_start, history.statement_end};
    found = commit_order(problem, statements, {source.data(), source.shape(0)}, {order_start.data(), order_start.shape(0)},
                           {order_txn.data(), order_txn.shape(0)}, given, budget);
  }
  if (!found) return nb::none();
  return nb::make_tuple(array(std::move(found->commits)), array(std::move(found->seen)), array(std::move(found->order_txn)), array(std::move(found->source)));
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
        "likely_order"_a = std::vector<std::int32_t>{},
        "Decides a problem: a model (source, order_start, order_txn) or a refutation, and "
        "statistics.");
  m.def("prune", &prune_problem, "columns"_a, "problem"_a, "automata"_a, "seconds"_a = 0.0,
        "max_clock_bytes"_a = std::size_t{1} << 29, "progress"_a = nb::none(),
        "Known edges, settled sources and orders, and the choices that are left.");
  m.def("commit_order", &order_of_commits, "columns"_a, "problem"_a, "source"_a, "order_start"_a, "order_txn"_a,
        nb::kw_only(), "relations"_a, "serial"_a, "versions_only"_a = false, "item_rw"_a = false, "by_statement"_a = false, "as_modelled"_a = false,
        "seconds"_a = 0.0,
        "An order of the included transactions, and per predicate read how many of them it sees "
        "(-1: its transaction is not included), and the version orders and sources by it; None if there is none.");
  m.def("operation_sources", &operation_sources, "columns"_a, "problem"_a, "source"_a,
        "The transaction that each operation reads from, given each read's writer.");
}

}  // namespace isolang
