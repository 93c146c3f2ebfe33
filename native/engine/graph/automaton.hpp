// The automaton of a check: for each relation, its steps between a few states. This is all that the engine knows about
// a level. State 0 is the only initial and the only final state, and every loop passes through it (the compiler of the
// language proves that). The cycles of the product are therefore exactly the violations.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "engine/graph/kinds.hpp"

namespace isolang {

// The names are in core/relations.def. X_of_key and the three names after it are the steps of X
// between transactions that access the same key (Filtered). writes and reads are tests: they are
// steps inside a transaction that writes, or that has an external read, and in the graph they
// become edges like epsilon. closing is an rw pair that closes a return path, see Automaton::back.
enum class Relation : std::uint8_t {
#define RELATION(id, name) id,
#include "core/relations.def"
#define FILTERED(id, name) id##_of_key, id##_of_key_wr, id##_of_key_rw, id##_of_key_rr,
#include "core/relations.def"
#define TEST(id, name) id,
#include "core/relations.def"
  epsilon,
  auxiliary,
  closing
};
inline constexpr const char* kRelationNames[] = {
#define RELATION(id, name) name,
#include "core/relations.def"
#define FILTERED(id, name) name "[W,W]", name "[W,R]", name "[R,W]", name "[R,R]",
#include "core/relations.def"
#define TEST(id, name) name,
#include "core/relations.def"
    "epsilon", "auxiliary", "closing"};
// The number of relations of a history: init … reads.
inline constexpr std::size_t kRelations = static_cast<std::size_t>(Relation::epsilon);
static_assert(std::size(kRelationNames) == kRelations + 3);
// A relation restricted to transactions that access the same key.
struct Filtered {
  Relation relation, letter;  // for example rt, and rt from a writer to a reader
  bool from_reader, to_reader;
};
inline std::vector<Filtered> filtered_relations() {
  constexpr std::pair<Relation, Relation> kFirst[] = {
#define FILTERED(id, name) {Relation::id, Relation::id##_of_key},
#include "core/relations.def"
  };
  std::vector<Filtered> all;
  for (const auto& [relation, first] : kFirst)
    for (int ends = 0; ends < 4; ++ends)
      all.push_back({relation, static_cast<Relation>(idx(first) + static_cast<std::size_t>(ends)),
                     ends >= 2, ends % 2 == 1});
  return all;
}
// Returns true for an rw pair, whether or not it is an edge of the graph.
constexpr bool overwrites(Relation r) { return r == Relation::rw || r == Relation::closing; }

// The places of a walk: each node of the product is a place with a state.
enum class Sites : std::uint8_t {
  transactions,
  // A walk stays on one key. Its nodes are the accesses of transactions to keys, and every step connects accesses to
  // the same key. A test passes a transaction only if it writes, or reads, that key.
  accesses,
  // Each statement that reads is a separate place. wr and committed_before lead to a statement; rw,
  // committed_after and own_commit leave a statement; answered_before and po lead from one
  // statement to another. All other steps lead from COMMIT to COMMIT.
  statements,
  // Statements, and the positions at which a transaction writes. ww leads to the first statement at
  // or after the last write of the key, or to the position after all statements if there is none,
  // and po leads on from that position. All walks leave by rw or own_commit.
  operations
};

// The return walks that a single pair must not close. Such pairs are not edges of the product,
// because a cycle of several such pairs is allowed.
struct ForbiddenReturn {
  using Step = std::pair<std::int32_t, std::int32_t>;
  // `irreflexive phi ; rw`: for each (q, r), an rw pair s -> b is forbidden if (b, r) reaches (s, q).
  std::vector<Step> by_rw;
  Pairs rw_pairs = kAllPairs;  // the rw pairs to which this applies
  // `irreflexive wr ; phi`: for each (q, r), a wr pair a -> t is forbidden if (t, r) reaches (a, q).
  std::vector<Step> by_wr;
  // Return walks of a single pair, closed by rw. They need no product. so: b precedes s in its
  // session. wr: s read from b. earlier_wr: s read from b by an operation before the operation of
  // the rw pair. Such an automaton has no steps.
  bool so = false, wr = false, earlier_wr = false;
};

struct Automaton {
  using Step = ForbiddenReturn::Step;
  std::int32_t states = 1;
  std::array<std::vector<Step>, kRelations> steps;
  std::vector<Step> epsilon;
  // For each step, the pairs to which it applies; for a test, the kinds that pass it. If empty,
  // each step applies to all pairs. Only steps of wr, ww, rw and the filtered relations, and tests,
  // distinguish pairs.
  std::array<std::vector<Pairs>, kRelations> pairs;
  // The meaning of the bits, if they distinguish more than items and predicates; the same for all
  // checks.
  std::shared_ptr<const Kinds> kinds;
  bool so_repeatable = false;  // the immediate pairs of so are sufficient
  bool so_is_assumed = false;  // so is not part of the check but an assumption, see presolve/presolve.hpp
  bool rt_is_assumed = false;  // rt is not part of the check but an assumption
  Sites sites = Sites::transactions;

  // An automaton with return paths need not pass state 0. Its product has no cycle unless another
  // check forbids that cycle.
  ForbiddenReturn back;
  // Whether cycles of this automaton are violations. They are not if it has only return paths. In
  // that case, another check forbids every such cycle.
  bool judges = true;

  // A check of components (`irreflexive irw ; (wr | ww | irw | prw)^*`): cycles of its relations
  // are allowed, but must not contain a pair of `closing`. For each relation except ww, of which
  // all pairs count, these are the reads whose pairs count. Such an automaton has no steps. Without
  // predicate reads, it may be turned into an automaton with steps. A cycle without a closing pair
  // then violates the check `covered_by` instead.
  using Reads = std::array<Pairs, kRelations>;
  Reads component{}, closing{};
  // True if a word begins with its closing pair, false if it ends with it.
  bool closing_first = true;
  std::int32_t covered_by = -1;
  std::int32_t number = -1;  // number among the requested checks, if some checks were skipped

  bool of_components() const {
    return std::ranges::any_of(component, [](Pairs reads) { return reads != 0; });
  }
  bool distinguishes_closing() const {
    return std::ranges::any_of(closing, [](Pairs reads) { return reads != 0; });
  }
  // Returns true if the check tells the item reads of a key's writers from other item reads.
  bool tells_writers() const {
    const auto tells = [](Pairs some) { return isolang::tells_writers(some); };
    return std::ranges::any_of(component, tells) ||
           std::ranges::any_of(pairs, [&](const auto& some) { return std::ranges::any_of(some, tells); });
  }
  // Returns true if some steps, or the return paths, apply to only some pairs.
  bool splits() const {
    return back.rw_pairs != kAllPairs ||
           std::ranges::any_of(pairs, [](const auto& some) { return !some.empty(); });
  }
  Pairs of_step(Relation relation, std::size_t step) const {
    const auto& some = pairs[idx(relation)];
    return some.empty() ? kAllPairs : some[step];
  }

  bool places_are_transactions() const { return sites == Sites::transactions; }
  bool of_one_key() const { return sites == Sites::accesses; }
  bool by_statement() const { return sites >= Sites::statements; }
  bool by_operation() const { return sites == Sites::operations; }
  bool tests() const {
    return std::ranges::any_of(std::array{Relation::writes, Relation::reads, Relation::label, Relation::level},
                               [&](Relation test) { return !of(test).empty(); });
  }
  bool of_one_pair() const { return back.so || back.wr || back.earlier_wr; }
  bool direct() const { return of_one_pair() || of_components(); }
  bool of_product() const { return !back.by_rw.empty() || !back.by_wr.empty(); }
  bool forbids_return_paths() const { return direct() || of_product(); }

  const std::vector<Step>& of(Relation r) const { return steps[idx(r)]; }
  bool has(Relation r, const Step& step) const { return std::ranges::find(of(r), step) != of(r).end(); }

  // Returns true if a move inside a transaction has the effect of this step, and no move has the
  // opposite effect.
  bool is_move(const Step& step) const {
    const auto moves = [&](std::int32_t from, std::int32_t to) {
      std::vector<bool> reached(idx(states), false);
      reached[from] = true;
      move(reached);
      return static_cast<bool>(reached[to]);
    };
    return moves(step.first, step.second) && !moves(step.second, step.first);
  }

  // Returns true if any number of steps may lead from statement to statement: see joined() in
  // event_graph.cpp.
  bool statements_are_joined() const {
    return by_statement() && std::ranges::any_of(of(Relation::po), [](const Step& s) {
             return s.first == s.second;
           });
  }

  // Returns true if the immediate pairs of the relation are sufficient.
  bool repeats(Relation relation) const { return implied_by(relation, {relation, relation}); }

  // Returns true if each step q -> r of the relation is also a sequence of steps, one of each
  // relation in `way`, with moves inside the transactions in between.
  bool implied_by(Relation relation, std::initializer_list<Relation> way) const {
    for (std::size_t s = 0; s < of(relation).size(); ++s) {
      const Step& step = of(relation)[s];
      const Pairs all = of_step(relation, s);
      std::vector<bool> reached(idx(states), false);
      reached[step.first] = true;
      move(reached);
      for (const Relation next : way) {
        std::vector<bool> after(idx(states), false);
        for (std::size_t i = 0; i < of(next).size(); ++i)
          // mutant: way-of-other-keys
          if (reached[of(next)[i].first] && (all & ~of_step(next, i)) == 0) after[of(next)[i].second] = true;
        reached = std::move(after);
        move(reached);
      }
      if (!reached[step.second]) return false;
    }
    return true;
  }

  // Returns true if one ww step, followed by moves inside a transaction, leads from state 0 to
  // state 0. Every cycle of ww pairs is then a violation, and the ranks of the nodes of state 0
  // give the version order of a key.
  bool orders_versions() const { return from_zero_to_zero(Relation::ww); }

  bool from_zero_to_zero(Relation relation) const {
    std::vector<bool> to_zero(idx(states), false);
    to_zero[0] = true;
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto* const moves : {&epsilon, &to_commit()})
        for (const auto& [q, r] : *moves)
          if (to_zero[r] && !to_zero[q]) to_zero[q] = grown = true;
    }
    for (std::size_t i = 0; i < of(relation).size(); ++i)
      // mutant: order-of-some-keys
      if (of_step(relation, i) == kAllPairs && of(relation)[i].first == 0 && to_zero[of(relation)[i].second])
        return true;
    return false;
  }

  // Returns true if each pair of the relation that ends in this state can continue by ww to the
  // same state.
  bool goes_on_by_ww(std::int32_t state) const {
    for (std::size_t i = 0; i < of(Relation::ww).size(); ++i) {
      const Step& step = of(Relation::ww)[i];
      std::vector<bool> reached(idx(states), false);
      reached[step.second] = true;
      move(reached);
      if (step.first == state && reached[state] && of_step(Relation::ww, i) == kAllPairs) return true;
    }
    return false;
  }

 private:
  // The continuation of steps from a statement to COMMIT. If every step to a statement can continue
  // in this way, that is a move inside the transaction.
  const std::vector<Step>& to_commit() const {
    static const std::vector<Step> kNone;
    return by_operation() ? of(Relation::own_commit) : kNone;
  }
  void move(std::vector<bool>& reached) const {  // any number of times, inside a transaction
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto* const moves : {&epsilon, &to_commit()})
        for (const auto& [q, r] : *moves)
          if (reached[q] && !reached[r]) reached[r] = grown = true;
    }
  }
};

}  // namespace isolang
