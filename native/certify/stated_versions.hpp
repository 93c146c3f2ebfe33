// The checker's own code for the versions stated by a history, and for the contradictions between them
// (docs/versions.md).
#pragma once
#include <cstdint>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang::certify {

// Returns whether the versions stated by two operations of committed transactions contradict each other. If `other` is
// -1, returns whether the first operation alone is a contradiction.
bool contradict(const History& history, std::int64_t op, std::int64_t other);

// Returns whether a read and the last write of its own transaction before it state different versions.
bool states_another(const History& history, std::int64_t read, std::int64_t write);

// Returns whether the stated versions order a's last write of the key before b's. Both transactions are committed.
bool stated_before(const History& history, std::int32_t key, std::int32_t a, std::int32_t b);

// Throws Rejected if any two operations contradict each other.
void check_versions(const History& history, Budget& budget);

}  // namespace isolang::certify
