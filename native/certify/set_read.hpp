// What a set-read says of the version that its transaction saw: the checker's own reading of it.
#pragma once
#include <cstdint>
#include <span>

#include "core/history.hpp"

namespace isolang::certify {

class SetRead {
 public:
  SetRead(const History& history, std::int64_t op)
      : h_(history), op_(op), statement_(history.in_statement(op)) {}
  // Whether the version may hold the value.
  bool allows(std::int32_t value) const;
  // Whether the version may be T0's: what the history declares that it wrote, or nil. An item read
  // may see a declared value as nil, and so may a read of one of several. What no predicate read
  // returns is a row that was never there.
  bool allows_initial() const;

 private:
  std::span<const std::int32_t> values() const;

  const History& h_;
  std::int64_t op_;
  bool statement_;  // of a predicate read
};

}  // namespace isolang::certify
