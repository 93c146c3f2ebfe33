// Whether the reads of a history observed other sessions.
#pragma once
#include <cstdint>
#include <span>

#include "core/history.hpp"

namespace isolang {

// The sources of reads, and the writers of each key in order, as a witness states them (isolang/certify/proofs.py).
struct StatedReads {
  std::span<const std::int32_t> source;
  std::span<const std::int64_t> order_start;
  std::span<const std::int32_t> order_txn;
};

// Returns whether some read returned another session's write, or is of the initial state of a key that another session
// wrote. Throws std::invalid_argument if the numbers do not fit the history.
bool observes_other_sessions(const History& history, const StatedReads& stated);

}  // namespace isolang
