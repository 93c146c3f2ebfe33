// Treats a check of components (Automaton::component) as a total order from which a few predicate
// reads are set apart.
//
// Such a check allows cycles without a closing pair, so a search knows nothing about them until all choices are made.
// But in most histories, only a few predicate reads, those that missed some row, are on such a cycle at all. So
// initially, every anti-dependency counts for one total order. If that is refuted, and each cycle of the refutation
// violates a requested check, then the refutation holds for the requested checks as well. Otherwise the predicate reads
// on the other cycles are apart: the order says nothing about their anti-dependencies, and the check of components
// judges these at the end. Predicate reads that miss what their own transaction saw are apart from the beginning.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "engine/graph/automaton.hpp"
#include "engine/graph/event_graph.hpp"
#include "engine/proof/refutation.hpp"

namespace isolang {

class ReadsApart {
 public:
  // Returns nothing without predicate reads, or unless one check is a check of components and all others are acyclic
  // over one state without anti-dependencies, or are about the versions of one key.
  static std::optional<ReadsApart> of(const Problem& problem, const std::vector<Automaton>& checks);

  // The total order, followed by the checks of one key, and by the check of components if reads are apart.
  std::vector<Automaton> automata() const;
  const AssumedOrders& given() const { return given_; }
  bool any() const { return !given_.apart.empty(); }

  enum class Verdict {
    refuted,    // the steps refute the requested checks and name them
    withdrawn,  // more reads are apart
    open
  };
  Verdict judge(std::vector<ProofStep>& refutation);

  // Sets all predicate reads apart. Returns false, and sets none apart, if a cycle of the stronger
  // check might then violate no requested check.
  bool set_all_apart();

 private:
  ReadsApart(const Problem& problem, const std::vector<Automaton>& checks, Automaton stronger);
  bool is_of(const Automaton& check, const ProofStep& cycle) const;
  bool is_predicate(const ProofEdge& edge) const;
  std::int32_t read_of(const ProofEdge& edge) const;
  Pairs pairs_of(const ProofEdge& edge) const;
  void find_contradicted_by_own_reads();

  const Problem& problem_;
  const std::vector<Automaton>& checks_;
  std::size_t component_;  // the number of the check of components
  std::vector<std::size_t> own_versions_;  // the numbers of the checks of one key
  Automaton stronger_;
  AssumedOrders given_{};
};

}  // namespace isolang
