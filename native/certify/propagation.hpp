// Unit propagation over a growing set of clauses (two watched literals; Moskewicz et al. 2001).
//
// Variable v is the literal 2v if it is true and 2v + 1 if it is false. Variable 0 is the constant *true*.
#pragma once
#include <cstdint>
#include <vector>

#include "core/budget.hpp"

namespace isolang::certify {

using Lit = std::int32_t;
inline constexpr Lit kTrue = 0, kFalse = 1;
inline constexpr std::int32_t kNoGroup = -1;

class Propagation {
 public:
  explicit Propagation(Budget& budget) : budget_(budget) {}

  // Returns the positive literal of a new variable. At most one variable of each group is true.
  Lit variable(std::int32_t group = kNoGroup);
  std::int32_t new_group() {
    groups_.emplace_back();
    return static_cast<std::int32_t>(groups_.size()) - 1;
  }
  void add(std::vector<Lit> clause);
  // Returns whether assuming the opposite of every literal of the clause leads to a conflict.
  bool implies(const std::vector<Lit>& clause);

 private:
  struct Watch {
    std::uint32_t clause;
    Lit other;  // another literal of the clause; if it is true, the clause need not be visited
  };
  bool holds(Lit l) const { return holds_[l] != 0; }
  void assign(Lit l) {
    holds_[l] = 1;
    trail_.push_back(l);
  }
  bool conflict();

  Budget& budget_;
  bool contradictory_ = false;
  std::vector<char> holds_{1, 0};
  std::vector<std::vector<Watch>> watches_{{}, {}};
  std::vector<std::int32_t> group_{kNoGroup};
  std::vector<std::vector<Lit>> groups_;
  std::vector<Lit> arena_;
  std::vector<std::size_t> clause_start_{0};
  std::vector<Lit> trail_;
  std::size_t done_ = 0;
};

}  // namespace isolang::certify
