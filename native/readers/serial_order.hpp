// A serial order of transactions that is close to a given one, in which each predicate read sees exactly the rows it
// returned.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang {

struct SerialOrder {
  std::vector<std::int32_t> commits;
  // The transaction that each read sees in this order (`transactions()` for T0); -1 for all other operations.
  std::vector<std::int32_t> source;
};

// Puts transactions into an order in which each one reads what earlier ones wrote, and the transactions of a session
// keep their given order. Returns nothing if the search finds no such order close to the given one. This does not mean
// that no order exists, because the search follows a single guess. The caller must check the order before it becomes a
// witness. Throws std::invalid_argument for a predicate that cannot be judged.
std::optional<SerialOrder> serial_order_near(const History& history, std::span<const std::int32_t> near,
                                             Budget& budget);

}  // namespace isolang
