// All that the engine knows of a level: for each relation, the steps of a small automaton. State 0
// is the only initial and the only final state, and every loop passes through it (the compiler of
// the language proves that), so a cycle of the product is exactly a violation.
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

// The names are in core/relations.def. X_of_key and the three behind it are the steps of X between
// transactions that access one key (Filtered). writes and reads are tests: steps inside a transaction
// that writes, or that has an external read. In the graph they are edges like epsilon. closing is an
// rw pair that closes a return path, see Automaton::back.
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
// Those that a history has: init … reads.
inline constexpr std::size_t kRelations = static_cast<std::size_t>(Relation::epsilon);
static_assert(std::size(kRelationNames) == kRelations + 3);
// One of the relations between transactions that access one key.
struct Filtered {
  Relation relation, letter;  // rt, and rt from a writer to a reader
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
// An rw pair, whatever it is in the graph.
constexpr bool overwrites(Relation r) { return r == Relation::rw || r == Relation::closing; }

// Where a walk is, besides its state: the places of the product's nodes.
enum class Sites : std::uint8_t {
  transactions,
  // A walk stays with one key: its nodes are the accesses of transactions to keys, every step leads
  // between accesses of one key, and the tests ask who writes, or reads, that key.
  accesses,
  // Each statement that reads is a place of its own: wr and committed_before lead to one, rw,
  // committed_after and own_commit from one, answered_before and po from one to another, and all
  // other steps from COMMIT to COMMIT.
  statements,
  // Statements, and where a transaction writes: ww leads to the first statement at or behind the
  // last write of the key, or behind all of them, and po leads on in the state where it is. All
  // walks leave by rw or own_commit.
  operations
};

// The walks back that a single pair must not close. Such pairs are not edges of the product, because
// a cycle of several of them is allowed.
struct ForbiddenReturn {
  using Step = std::pair<std::int32_t, std::int32_t>;
  // `irreflexive phi ; rw`: for each (q, r), an rw pair s -> b is forbidden if (b, r) reaches (s, q).
  std::vector<Step> by_rw;
  Pairs rw_pairs = kAllPairs;  // of which rw pairs
  // `irreflexive wr ; phi`: for each (q, r), a wr pair a -> t is forbidden if (t, r) reaches (a, q).
  std::vector<Step> by_wr;
  // By rw, where the walk is one pair, for which no product is needed: b precedes s in its session;
  // s read from b; s read from b by an operation before the one that the rw pair is about. Such an
  // automaton has no steps.
  bool so = false, wr = false, earlier_wr = false;
};

struct Automaton {
  using Step = ForbiddenReturn::Step;
  std::int32_t states = 1;
  std::array<std::vector<Step>, kRelations> steps;
  std::vector<Step> epsilon;
  // Of each step, the pairs that it is about, or of a test the kinds that pass it. Empty: each step is
  // about all. Only steps of wr, ww, rw, of the filtered relations, and tests tell pairs apart.
  std::array<std::vector<Pairs>, kRelations> pairs;
  // What the bits mean, where they are more than items and predicates; the same for all checks.
  std::shared_ptr<const Kinds> kinds;
  bool so_repeatable = false;  // immediate pairs of so suffice
  bool so_is_assumed = false;  // the check does not demand so, see presolve/presolve.hpp
  bool rt_is_assumed = false;  // nor rt
  Sites sites = Sites::transactions;

  // An automaton with return paths need not pass state 0; its product has no cycle unless another
  // check forbids it.
  ForbiddenReturn back;
  // Are its own cycles violations? Where it only has return paths they are not, and another check
  // forbids every one of them.
  bool judges = true;

  // A check of components (`irreflexive irw ; (wr | ww | irw | prw)^*`): cycles of its relations are
  // allowed, and must not have a pair of `closing` among them. Per relation, the reads whose pairs
  // count, all for ww; such an automaton has no steps. Without predicate reads it may become one
  // with steps: then of a cycle without a closing pair the check `covered_by` is the one violated.
  using Reads = std::array<Pairs, kRelations>;
  Reads component{}, closing{};
  bool closing_first = true;  // a word begins with its closing pair; else it ends with it
  std::int32_t covered_by = -1;
  std::int32_t number = -1;  // among the requested checks, where some were skipped

  bool of_components() const {
    return std::ranges::any_of(component, [](Pairs reads) { return reads != 0; });
  }
  bool distinguishes_closing() const {
    return std::ranges::any_of(closing, [](Pairs reads) { return reads != 0; });
  }
  // Are some steps, or the return paths, about some pairs only?
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

  // Does a move inside a transaction do what this step does, and none the opposite?
  bool is_move(const Step& step) const {
    const auto moves = [&](std::int32_t from, std::int32_t to) {
      std::vector<bool> reached(idx(states), false);
      reached[from] = true;
      move(reached);
      return static_cast<bool>(reached[to]);
    };
    return moves(step.first, step.second) && !moves(step.second, step.first);
  }

  // Whether any number of steps lead on from statement to statement: see joined() in event_graph.cpp.
  bool statements_are_joined() const {
    return by_statement() && std::ranges::any_of(of(Relation::po), [](const Step& s) {
             return s.first == s.second;
           });
  }

  // Do immediate pairs of so suffice?
  bool repeats(Relation relation) const { return implied_by(relation, {relation, relation}); }

  // Is each step q -> r of the relation also a way of steps of `way`, one after the other, with
  // moves inside the transactions in between?
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

  // Is one ww step, followed by moves inside a transaction, a way from state 0 to state 0? Then
  // every cycle of ww pairs is a violation, and the version order of a key can be read off the
  // ranks of the nodes of state 0.
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

  // Does each pair of the relation, where it ends in this state, go on by ww to the same state?
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
  // Where every step to a statement may go on to COMMIT, that is a move inside the transaction.
  const std::vector<Step>& to_commit() const {
    static const std::vector<Step> kNone;
    return by_operation() ? of(Relation::own_commit) : kNone;
  }
  void move(std::vector<bool>& reached) const {  // by any number of moves inside a transaction
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto* const moves : {&epsilon, &to_commit()})
        for (const auto& [q, r] : *moves)
          if (reached[q] && !reached[r]) reached[r] = grown = true;
    }
  }
};

}  // namespace isolang
