// Conflict-driven clause learning over a theory: two watched literals, first unique implication
// points, activities with decay, Luby restarts, and deletion of learned clauses by glue. Every
// clause keeps its antecedents, because a refutation is trimmed to the clauses it needs.
//
// A backjump over many levels mostly undoes decisions that have nothing to do with the conflict,
// and the theory must process them all again. Beyond some number of levels, only the last level is
// therefore undone (Nadel and Ryvchin, "Chronological backtracking", SAT 2018; Möhle and Biere,
// "Backing backtracking", SAT 2019). The learned literal is then on the trail later than its level
// implies. This has three consequences. A literal has the highest level of the literals that imply
// it. A conflict may belong to a lower level. Backtracking keeps literals of lower levels that are
// later on the trail, and propagates them again. Restarts keep the levels whose decisions would be
// made again (van der Tak, Ramos, Heule, "Reusing the assignment trail", JSAT 7, 2011).
//
// After such steps a conflict may belong to a level thousands below the last. Then only that level is taken out of the
// trail, together with later levels of nearby groups (which are better decided again, in their order) and with the
// literals that these levels imply. The decisions of all other levels stay (Ginsberg, "Dynamic backtracking", JAIR 1,
// 1993). SOUND BECAUSE levels are only numbers: a literal that stays still has its reason before it, and the highest
// level of the literals that imply it. Everything on the trail since the first level taken out is propagated again,
// because otherwise a clause that now has one or two open literals could be overlooked.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "core/budget.hpp"
#include "core/index.hpp"

namespace isolang {

// A literal: 2·variable, +1 if negated.
struct Lit {
  std::int32_t code = -1;
  static Lit positive(std::int32_t variable) { return {2 * variable}; }
  static Lit negative(std::int32_t variable) { return {2 * variable + 1}; }
  Lit operator~() const { return {code ^ 1}; }
  std::int32_t variable() const { return code >> 1; }
  bool negated() const { return (code & 1) != 0; }
  bool operator==(const Lit&) const = default;
};

using ClauseId = std::int32_t;
inline constexpr ClauseId kNoClause = -1;

class Theory {
 public:
  enum class Answer {
    consistent,
    extended,
    gives_up
  };  // extended: the theory has added variables or clauses, and the search continues
  virtual ~Theory() = default;
  // Called when `literal` becomes true. Returns false on a conflict; `conflict` is then a clause
  // whose literals are all false.
  virtual bool assign(Lit literal, std::vector<Lit>& conflict) = 0;
  virtual std::size_t mark() const = 0;     // a point in time for `undo`
  virtual void undo(std::size_t mark) = 0;  // returns to that point
  virtual void unassign(Lit literal) = 0;   // called for each literal undone after `assign`
  // Called when some literals assigned since that point in time have become open although later
  // ones stay assigned. Forgets whatever depends on the open ones. Marks stay valid.
  virtual void forget_open(std::size_t mark) = 0;
  virtual void lemma(ClauseId id) = 0;  // the last conflict was stored as this clause
  // Returns the literal to decide for an open variable: the variable, its negation, or another open
  // literal that should come first.
  virtual Lit choice(std::int32_t variable) = 0;
  virtual Answer complete() = 0;                   // called when every variable has a value
  virtual std::size_t bytes() const { return 0; }  // memory used by the lemmas
  virtual bool out_of_effort() const {
    return false;
  }  // the effort exceeds its limit: solve gives up
};

class Cdcl {
 public:
  Cdcl(Theory& theory, Budget& budget, std::uint64_t seed)
      : theory_(theory), budget_(budget), random_(seed * 2 + 1) {}

  // Creates a variable. Variables of lower groups are decided first. If a problem is a long row of
  // small clusters, with few clauses between distant ones, groups along the row prevent a conflict
  // from undoing the decisions about all other clusters.
  std::int32_t new_variable(std::int32_t group = 0);
  // The clause must have a literal that is not false, or the level must be 0.
  ClauseId add_clause(std::vector<Lit> literals);
  void restart() { backtrack(0); }
  enum class Result { satisfiable, unsatisfiable, gave_up };
  // Runs until the total number of conflicts or decisions reaches `max_conflicts` or `max_decisions`. After `gave_up`,
  // it can be called again. For an unsatisfiable result, see core(). If the result holds only under the assumptions,
  // `failed_assumptions` contains those that contradict each other, and the clauses alone may be satisfiable.
  Result solve(std::int64_t max_conflicts, const std::vector<Lit>& assumptions = {}) {
    return solve(max_conflicts, std::numeric_limits<std::int64_t>::max(), assumptions);
  }
  Result solve(std::int64_t max_conflicts, std::int64_t max_decisions,
               const std::vector<Lit>& assumptions = {});
  std::vector<Lit> failed_assumptions;
  // All clauses, including learned ones, are kept for the proof. If they take more than
  // `max_bytes`, solve gives up for good.
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
  bool full() const { return bytes() > max_bytes; }

  // Returns 1 if the literal is true, -1 if false, 0 if open.
  int value(Lit l) const {
    const int v = value_[l.variable()];
    return l.negated() ? -v : v;
  }
  // Returns the clauses of the refutation, ascending, including learned ones (see `learned`).
  std::vector<ClauseId> core() const;
  bool learned(ClauseId id) const { return clauses_[id].learned; }
  std::vector<Lit> literals(ClauseId id) const;

  std::int32_t variables() const { return static_cast<std::int32_t>(value_.size()); }
  std::int64_t conflicts = 0, decisions = 0, restarts = 0;
  std::int64_t decisions_kept = 0;  // number of levels kept above levels that were taken out

 private:
  struct Clause {
    std::size_t start;
    std::int32_t size;
    std::int32_t glue;
    bool learned, deleted;
    std::size_t antecedents;  // learned: where its antecedents begin
  };
  struct Watch {
    ClauseId clause;
    Lit blocker;
  };

  std::size_t bytes() const {
    return pool_.capacity() * sizeof(Lit) +
           clauses_.capacity() * (sizeof(Clause) + 2 * sizeof(Watch)) +
           antecedents_.capacity() * sizeof(std::int32_t) + theory_.bytes();
  }
  ClauseId store(const std::vector<Lit>& literals, bool learned, std::int32_t glue);
  void watch(ClauseId id);
  void enqueue(Lit l, ClauseId reason, std::int32_t at_level);
  void enqueue(Lit l, ClauseId reason) { enqueue(l, reason, level()); }
  std::int32_t highest_level(ClauseId id,
                             std::size_t from) const;  // among its literals from position `from` on
  std::int32_t reusable_level();
  ClauseId propagate();
  ClauseId propagate_clauses();
  std::int32_t analyze(ClauseId conflict, std::int32_t conflict_level);
  void go_back(std::int32_t conflict_level, std::int32_t back, bool chronological);
  void backtrack(std::int32_t level);
  void take_out(std::int32_t level);
  void open(Lit l);
  bool decide();
  bool assume(const std::vector<Lit>& assumptions);
  void explain_failure(Lit assumption);
  void reduce();
  void bump(std::int32_t variable);
  std::size_t next_antecedents(ClauseId id) const;
  std::int32_t level() const { return static_cast<std::int32_t>(level_start_.size()); }
  Lit* lits(ClauseId id) { return pool_.data() + clauses_[id].start; }

  // A binary heap of the open variables, ordered by group and activity.
  bool precedes(std::int32_t a, std::int32_t b) const {
    const auto i = idx(a), j = idx(b);
    return group_[i] != group_[j] ? group_[i] < group_[j] : activity_[i] > activity_[j];
  }
  void heap_insert(std::int32_t variable);
  std::int32_t heap_pop();
  void heap_up(std::size_t i);
  void heap_down(std::size_t i);

  Theory& theory_;
  Budget& budget_;
  std::uint64_t random_;
  std::vector<Lit> pool_;
  std::vector<Clause> clauses_;
  std::vector<std::int32_t>
      antecedents_;  // clause id, or ~variable for a variable fixed at level 0
  std::vector<std::vector<Watch>> watches_;
  std::vector<std::int8_t> value_;
  std::vector<std::int32_t> level_of_;
  std::vector<ClauseId> reason_;
  std::vector<Lit> trail_;
  std::vector<std::size_t> level_start_, theory_mark_;
  bool in_order_ = true;  // no literal is on the trail later than its level implies
  std::size_t clause_head_ = 0, theory_head_ = 0;
  std::vector<double> activity_;
  std::vector<std::int32_t> group_;
  double increment_ = 1.0;
  std::vector<std::int32_t> heap_, heap_place_;
  std::vector<std::uint8_t> seen_;
  std::vector<Lit> theory_conflict_, learnt_, kept_;
  std::vector<std::int32_t> renumbered_;  // per level
  std::int64_t next_reduce_ = 4000;
  ClauseId final_conflict_ = kNoClause;
};

}  // namespace isolang
