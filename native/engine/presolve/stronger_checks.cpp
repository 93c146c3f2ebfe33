// Each function combines the steps of the requested checks into one automaton whose cycles include
// all forbidden walks. The result is stronger: a model of it is a model of the requested checks,
// but a refutation of it does not refute them.
#include "engine/presolve/stronger_checks.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace isolang {
namespace {

// State 0 is before a pair, and state 1 is after a pair that is not rw.
Automaton nonadjacent(const Automaton& all) {
  Automaton result;
  result.states = 2;
  for (std::size_t r = 0; r < kRelations; ++r)
    if (!all.steps[r].empty()) result.steps[r] = {{0, 1}};
  result.epsilon = {{1, 0}};
  result.steps[idx(Relation::rw)] = {{1, 0}};
  result.so_repeatable = result.repeats(Relation::so);
  return result;
}

constexpr std::int64_t kAmbiguous = 2;  // candidate sources per read

bool one_source_each(const Problem& problem) {
  return problem.candidate_start.all_ordinal();
}

// Adds the relations, except rw, whose cycles a check of components allows in part.
void add_component(const Automaton& m, Automaton& to) {
  for (const Relation r : {Relation::wr, Relation::ww})
    if (m.component[idx(r)] != 0) to.steps[idx(r)] = {{0, 0}};
}

// Returns true for relations that lead from a statement of a walk by operations to a later
// statement, to COMMIT, or by rw to another transaction.
constexpr bool inside_or_away(Relation r) {
  return r == Relation::po || r == Relation::own_commit || r == Relation::rw;
}

// Adds the pairs that form a forbidden return path by themselves, or close one.
void add_returns(const Automaton& m, Automaton& to) {
  if (m.back.so) to.steps[idx(Relation::so)] = {{0, 0}};
  if (m.back.wr || m.back.earlier_wr || !m.back.by_wr.empty()) to.steps[idx(Relation::wr)] = {{0, 0}};
}

// Combines the steps of all checks and return paths, over one state.
// Returns nothing if the checks are likely to need no search, unless `anyway`.
std::optional<Automaton> together(const Problem& problem, const std::vector<Automaton>& automata,
                                  bool anyway = false) {
  const bool unique = one_source_each(problem);
  Automaton all;
  bool search = anyway;
  for (const Automaton& m : automata) {
    // A walk by operations is also a walk of whole transactions, in which no two rw pairs are
    // adjacent.
    if (m.by_operation()) {
      for (std::size_t r = 0; r < kRelations; ++r)
        if (!m.steps[r].empty() && !inside_or_away(static_cast<Relation>(r))) all.steps[r] = {{0, 0}};
      search = true;
      continue;
    }
    if (m.states > 1 || !m.of(Relation::rw).empty() || m.tests()) return std::nullopt;
    // A search decides direct checks faster if they are unchanged.
    search |= m.of_product() && (!unique || !m.of(Relation::ww).empty());
    for (std::size_t r = 0; r < kRelations; ++r)
      if (!m.steps[r].empty()) all.steps[r] = m.steps[r];
    add_returns(m, all);
    add_component(m, all);
    search |= m.of_components();
  }
  if (!search) return std::nullopt;
  return all;
}
constexpr std::size_t kTests = idx(Relation::writes);

// Adds the steps of `m`, and the return paths of one pair that it forbids, from the single state to
// itself.
void add_steps(const Automaton& m, Automaton& to) {
  for (std::size_t r = 0; r < kTests; ++r)
    if (!m.steps[r].empty()) to.steps[r] = {{0, 0}};
  add_returns(m, to);
  to.so_repeatable = to.repeats(Relation::so);
}

// Requires a single order of all transactions.
std::optional<std::vector<Automaton>> in_total_order(std::optional<Automaton> all) {
  if (!all) return std::nullopt;
  all->steps[idx(Relation::rw)] = {{0, 0}};
  all->so_repeatable = all->repeats(Relation::so);
  return std::vector{std::move(*all)};
}

}  // namespace

std::optional<std::vector<Automaton>> as_one_cycle(const Problem& problem,
                                                   const std::vector<Automaton>& automata) {
  if (std::ranges::any_of(automata, &Automaton::of_components)) return std::nullopt;
  const auto all = together(problem, automata);
  if (!all) return std::nullopt;
  return std::vector{nonadjacent(*all)};
}

std::optional<std::vector<Automaton>> as_one_total_order(const Problem& problem,
                                                         const std::vector<Automaton>& automata) {
  if (static_cast<std::int64_t>(problem.candidate.size()) < kAmbiguous * problem.reads() &&
      std::ranges::none_of(automata, &Automaton::of_components))
    return std::nullopt;
  return in_total_order(together(problem, automata));
}

std::optional<std::vector<Automaton>> as_one_order_of_times(const Problem& problem,
                                                            const std::vector<Automaton>& automata) {
  if (!problem.has_time || std::ranges::none_of(automata, &Automaton::of_product))
    return std::nullopt;
  return in_total_order(together(problem, automata, true));
}

std::optional<std::vector<Automaton>> as_one_state(const std::vector<Automaton>& automata) {
  const auto scatters = [](const Automaton& m) {
    return m.tests() || (m.of_product() && (m.states > 1 || m.of_one_key()));
  };
  if (std::ranges::none_of(automata, scatters) ||
      std::ranges::any_of(automata, [](const Automaton& m) {
        return m.of_components() || m.by_statement();  // steps that lead to statements need statements as places
      }))
    return std::nullopt;
  std::vector<Automaton> result(1);
  for (const Automaton& m : automata) {
    add_steps(m, result[0]);
    // A walk back to a source is a cycle of the combined steps.
    if (!m.direct() && m.back.by_rw.empty()) continue;
    Automaton& own = result.emplace_back();
    add_steps(m, own);
    own.back.by_rw = {{0, 0}};
    own.judges = false;
  }
  return result;
}

}  // namespace isolang
