// A part of a history: some of its operations, with their original labels and positions in the input.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/history.hpp"

namespace isolang {

struct Part {
  History history;
  std::vector<std::int32_t> sessions;  // per session of the part, its number in the whole history
};

// Returns the part with these operations and transactions; both lists ascend without duplicates. A
// transaction that keeps no operation is removed, unless it is in `transactions`. The remaining
// transactions keep their status, labels, times and positions, and keys keep their initial values.
// A read whose source is removed gets a missing source. The cost depends on the size of the part,
// not on that of the whole history.
Part part_of(const History& whole, std::span<const std::int64_t> operations,
             std::span<const std::int32_t> transactions);

// Replaces each session by one session for each key, so that session order relates only
// transactions on the same key. Returns the original session of each new session. Throws
// std::domain_error for a transaction on several keys.
std::vector<std::int32_t> split_sessions_by_key(History& history);

}  // namespace isolang
