// A part of a history: only some operations, with the labels and places they had.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/history.hpp"

namespace isolang {

struct Part {
  History history;
  std::vector<std::int32_t> sessions;  // of the whole, per session of the part
};

// `operations` and `transactions`: ascending, each once. Transactions that keep no operation vanish,
// unless they are among `transactions`; the others keep status, label, time and place. Initial
// values stay those of the whole. A read whose source vanishes has a missing source. Costs as much
// as the part is large, whatever the whole is.
Part part_of(const History& whole, std::span<const std::int64_t> operations,
             std::span<const std::int32_t> transactions);

// Session and key become one session: what it orders is then on one key. Returns the session that each
// new one was. Throws std::domain_error for a transaction on several keys.
std::vector<std::int32_t> split_sessions_by_key(History& history);

}  // namespace isolang
