// What a history states of versions, and where it contradicts itself (docs/versions.md).
#pragma once
#include <cstdint>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang::certify {

// Whether operations of committed transactions contradict each other, or the first by itself
// (`other` is -1), by the versions that they state.
bool contradict(const History& history, std::int64_t op, std::int64_t other);

// Whether a read and its transaction's last write before it state two versions.
bool states_another(const History& history, std::int64_t read, std::int64_t write);

// Whether the versions say that a's last write of the key precedes b's. Both are committed.
bool stated_before(const History& history, std::int32_t key, std::int32_t a, std::int32_t b);

// Throws Rejected if any two operations contradict each other.
void check_versions(const History& history, Budget& budget);

}  // namespace isolang::certify
