// The condition that a set-read imposes on the version that its transaction saw. The checker evaluates it with its own
// code, independently of native/problem.
#pragma once
#include <cstdint>
#include <span>

#include "core/history.hpp"

namespace isolang::certify {

class SetRead {
 public:
  SetRead(const History& history, std::int64_t op)
      : h_(history), op_(op), statement_(history.in_statement(op)) {}
  // Returns whether the version may hold the value.
  bool allows(std::int32_t value) const;
  // Returns whether the version may be the initial version. That version holds the value declared by the history, or
  // nil if none is declared. An item read may see a declared value as nil, and so may a read of one of several values.
  // For a predicate read, an initial nil is a row that never existed, and no predicate read returns such a row.
  bool allows_initial() const;

 private:
  std::span<const std::int32_t> values() const;

  const History& h_;
  std::int64_t op_;
  bool statement_;  // whether the set-read is part of a predicate read
};

}  // namespace isolang::certify
