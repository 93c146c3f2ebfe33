// Decides which transactions of a window can be cut, along the order of the window's own witness. docs/routes.md, Cuts
// of a stream, proves that this is sound.
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
  std::span<const std::uint8_t> open;      // whether the log has not yet shown all transactions that may overlap it
  std::span<const std::uint8_t> in_flight;
  std::span<const std::uint8_t> young;     // so new that a later read may show a different order of its writes
  bool timed = false;      // whether the stream has real time
  bool real_time = false;  // whether the level has real-time edges
  std::int64_t clock_error = 0;
};

// Returns the transactions that no remaining transaction precedes in the witness, ascending. The caller drops aborted
// transactions. Throws std::invalid_argument if the witness does not belong to this history.
std::vector<std::int32_t> cut(const History& window, const Witness& witness, const Limits& limits);

// The part of a witness about some transactions of the window. `part` is a history of only these transactions, in the
// same order. Its initial state consists of the values left by earlier transactions.
struct OwnWitness {
  std::vector<std::int32_t> source;
  std::vector<std::int64_t> order_start;
  std::vector<std::int32_t> order_txn;
};
OwnWitness restricted(const History& window, const Witness& witness,
                      std::span<const std::int32_t> going, const History& part);

}  // namespace isolang::watch
