// Where a window is cut: along the order of its own witness. docs/routes.md, Cuts of a stream,
// argues why that is sound.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/history.hpp"

namespace isolang::watch {

struct Witness {
  std::span<const std::int32_t> source;
  std::span<const std::int64_t> order_start;
  std::span<const std::int32_t> order_txn;
};

struct Limits {
  std::span<const std::uint8_t> open;      // not all that can overlap it has been seen
  std::span<const std::uint8_t> in_flight;
  std::span<const std::uint8_t> young;     // so new that a later read may still show its order
  bool timed = false;      // whether the times are those of a clock or of the log
  bool real_time = false;  // whether real time is an edge
  std::int64_t clock_error = 0;
};

// The transactions that no other one leads to, ascending. Aborted ones are the caller's to drop.
// Throws std::invalid_argument for a witness that is none of this history.
std::vector<std::int32_t> cut(const History& window, const Witness& witness, const Limits& limits);

// What a witness says of some transactions, as `part` has them: a history of these alone, in the same
// order.
struct OwnWitness {
  std::vector<std::int32_t> source;
  std::vector<std::int64_t> order_start;
  std::vector<std::int32_t> order_txn;
};
OwnWitness restricted(const History& window, const Witness& witness,
                      std::span<const std::int32_t> going, const History& part);

}  // namespace isolang::watch
