// `automata` returns the stronger checks over one total order, in which the anti-dependencies of
// reads that are apart do not count. `judge` decides what a refutation of these checks means: it
// refutes the requested checks, or more predicate reads become apart.
#include "engine/presolve/reads_apart.hpp"

#include <algorithm>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

// Returns whether every cycle of the check is also a cycle of any check that has the same steps and
// more.
bool is_acyclic_over_one_state(const Automaton& m) {
  return m.states == 1 && m.judges && m.epsilon.empty() && m.places_are_transactions() &&
         !m.forbids_return_paths() && !m.tests() && m.of(Relation::rw).empty() && !m.splits();
}

// Returns whether a check only forbids that the versions of one key lead back to a reader of the key. Such a check is
// judged in addition to the total order.
bool is_of_own_versions(const Automaton& m) {
  if (!m.of_one_key() || m.judges || m.tests() || m.direct() || m.back.by_rw.empty()) return false;
  for (std::size_t r = 0; r < kRelations; ++r)
    if (!m.steps[r].empty() && r != idx(Relation::ww)) return false;
  return true;
}

// Returns the checks over one total order, if one of them is a check of components and all others
// are acyclic without anti-dependencies, or of own versions.
std::optional<Automaton> total_order_of(const std::vector<Automaton>& checks) {
  const auto component = std::ranges::find_if(checks, &Automaton::of_components);
  if (component->of_one_pair()) return std::nullopt;
  Automaton total;
  for (const Automaton& m : checks) {
    if (&m != &*component && is_of_own_versions(m)) continue;
    if (&m != &*component && !is_acyclic_over_one_state(m)) return std::nullopt;
    for (std::size_t r = 0; r < kRelations; ++r)
      if (!m.steps[r].empty() || m.component[r] != 0) total.steps[r] = {{0, 0}};
  }
  total.steps[idx(Relation::rw)] = {{0, 0}};
  // SOUND BECAUSE the check of components does not use the anti-dependencies of a key's writers
  // either. The checks of own versions judge them.
  if (component->tells_writers()) total.pairs[idx(Relation::rw)] = {~kWriterPairs};
  total.so_repeatable = total.repeats(Relation::so);
  total.closing = component->closing;
  total.closing_first = component->closing_first;
  return total;
}

}  // namespace

std::optional<ReadsApart> ReadsApart::of(const Problem& problem,
                                         const std::vector<Automaton>& checks) {
  const auto names = [](const Automaton& m) { return m.kinds != nullptr; };
  if (problem.read_predicate.empty() || std::ranges::any_of(checks, names)) return std::nullopt;
  if (std::ranges::none_of(checks, &Automaton::of_components)) return std::nullopt;
  auto total = total_order_of(checks);
  return total ? std::optional(ReadsApart(problem, checks, std::move(*total))) : std::nullopt;
}

ReadsApart::ReadsApart(const Problem& problem, const std::vector<Automaton>& checks,
                       Automaton stronger)
    : problem_(problem),
      checks_(checks),
      component_(idx(std::ranges::find_if(checks, &Automaton::of_components) - checks.begin())),
      stronger_(std::move(stronger)) {
  for (std::size_t c = 0; c < checks.size(); ++c)
    if (is_of_own_versions(checks[c])) own_versions_.push_back(c);
  find_contradicted_by_own_reads();
}

// Sets apart the predicate reads that have no possible source in common with another read of the
// same key by their transaction. No total order has a place for both.
void ReadsApart::find_contradicted_by_own_reads() {
  const Problem& p = problem_;
  const auto share_a_source = [&](std::int32_t r, std::int32_t other) {
    return std::ranges::any_of(p.candidates(r), [&](std::size_t i) {
      return std::ranges::any_of(p.candidates(other), [&](std::size_t j) {
        return p.candidate[i] == p.candidate[j];
      });
    });
  };
  std::vector<std::int32_t> reads;  // of one transaction
  for (std::int32_t first = 0, end = 0; first < p.reads(); first = end) {
    reads.clear();
    for (; end < p.reads() && p.read_txn[end] == p.read_txn[first]; ++end) reads.push_back(end);
    std::ranges::stable_sort(reads, {}, [&](std::int32_t r) { return p.read_key[r]; });
    for (std::size_t i = 1; i < reads.size(); ++i)
      for (std::size_t j = i; j-- > 0 && p.read_key[reads[j]] == p.read_key[reads[i]];) {
        const std::int32_t a = reads[j], b = reads[i];
        if ((p.read_predicate[idx(a)] | p.read_predicate[idx(b)]) == 0 || share_a_source(a, b)) continue;
        given_.apart.resize(p.read_predicate.size());
        for (const std::int32_t r : {a, b})
          if (p.read_predicate[idx(r)] != 0) given_.apart[idx(r)] = 1;
      }
  }
}

std::vector<Automaton> ReadsApart::automata() const {
  std::vector<Automaton> result{stronger_};
  // mutant: own-versions-not-judged
  for (const std::size_t c : own_versions_) result.push_back(checks_[c]);
  if (given_.apart.empty()) return result;
  const auto rw = idx(Relation::rw);
  result.front().pairs[rw] = {~kApartPairs & stronger_.of_step(Relation::rw, 0)};
  // SOUND BECAUSE the stronger check has all steps of the other checks, even if reads are apart:
  // none of their steps is an anti-dependency.
  // mutant: apart-and-not-judged
  result.push_back(checks_[component_]);
  return result;
}

std::int32_t ReadsApart::read_of(const ProofEdge& edge) const {
  const auto at = std::ranges::lower_bound(problem_.read_op, edge.op);
  return static_cast<std::int32_t>(at - problem_.read_op.begin());
}

bool ReadsApart::is_predicate(const ProofEdge& edge) const {
  return problem_.read_predicate[idx(read_of(edge))] != 0;
}

Pairs ReadsApart::pairs_of(const ProofEdge& edge) const {
  if (edge.op < 0) return kAllPairs;
  return is_predicate(edge) ? kPredicatePairs : kItemPairs;
}

// Returns whether a cycle of the stronger check violates a requested check, as far as the relations
// of its edges show that.
bool ReadsApart::is_of(const Automaton& check, const ProofStep& cycle) const {
  if (!check.of_components())
    return is_acyclic_over_one_state(check) &&
           std::ranges::all_of(cycle.edges,
                               [&](const ProofEdge& e) { return !check.of(e.relation).empty(); });
  const auto is_in = [&](const Automaton::Reads& reads) {
    return [&](const ProofEdge& e) { return (reads[idx(e.relation)] & pairs_of(e)) != 0; };
  };
  if (!std::ranges::all_of(cycle.edges, is_in(check.component))) return false;
  // mutant: any-pair-closes
  return std::ranges::any_of(cycle.edges, is_in(check.closing));
}

ReadsApart::Verdict ReadsApart::judge(std::vector<ProofStep>& refutation) {
  bool refutes = true, more = false;
  std::vector<std::uint8_t> apart = given_.apart;
  apart.resize(problem_.read_predicate.size());
  for (ProofStep& step : refutation) {
    if (step.kind != ProofStep::Kind::cycle) continue;
    if (step.check > 0) {
      const std::size_t after = idx(step.check - 1);
      step.check = static_cast<std::int32_t>(after < own_versions_.size() ? own_versions_[after] : component_);
      continue;
    }
    const auto check =
        std::ranges::find_if(checks_, [&](const Automaton& m) { return is_of(m, step); });
    if (check != checks_.end()) {
      step.check = static_cast<std::int32_t>(check - checks_.begin());
      continue;
    }
    // mutant: cycle-of-no-check
    refutes = false;
    for (const ProofEdge& e : step.edges)
      if (e.relation == Relation::rw && is_predicate(e))
        more |= std::exchange(apart[idx(read_of(e))], std::uint8_t{1}) == 0;
  }
  if (refutes) return Verdict::refuted;
  if (!more) return Verdict::open;
  given_.apart = std::move(apart);
  return Verdict::withdrawn;
}

bool ReadsApart::set_all_apart() {
  const Automaton* const component = &checks_[component_];
  // All predicate reads can be set apart only if every forbidden cycle either violates the check of
  // components and is closed by an item anti-dependency, or violates a check that forbids all cycles
  // of the other relations.
  const auto all_reads = [&](Relation r) { return component->component[idx(r)] == kAllPairs; };
  if (!all_reads(Relation::wr) || !all_reads(Relation::ww)) return false;
  const Pairs items = component->tells_writers() && !own_versions_.empty() ? kItemPairs & ~kWriterPairs : kItemPairs;
  if ((items & ~(component->component[idx(Relation::rw)] & component->closing[idx(Relation::rw)])) != 0)
    return false;
  for (const Automaton& m : checks_)
    for (std::size_t r = 0; r < kRelations; ++r)
      if (!m.steps[r].empty() && component->component[r] == 0) return false;
  const auto forbids = [](const Automaton& m) {
    return !m.of(Relation::wr).empty() && !m.of(Relation::ww).empty();
  };
  if (std::ranges::none_of(checks_, forbids)) return false;
  given_.apart = problem_.read_predicate;
  return true;
}

}  // namespace isolang
