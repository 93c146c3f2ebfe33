// Histories put together: transactions of one appended to another.
#pragma once
#include <cstdint>
#include <span>

#include "core/history.hpp"

namespace isolang {

// Appends transactions of `from`, in the order given, to `to`. `sessions`: for each session of
// `from` its number in `to`. Status, number, place, times, group, names, operation times and predicate reads
// come along, and initial values of the keys. Numbers of keys, values and lists are those of `to`.
//
// With `in_flight` they come as they were before their outcome was known: indeterminate, without an
// end, and of their reads only that there were some.
//
// Throws std::invalid_argument for what cannot come along: reads that name the operation they read
// from, and times that were widened. `from` and `to` are two histories.
void append(History& to, const History& from, std::span<const std::int32_t> transactions,
            std::span<const std::int32_t> sessions, bool in_flight);

}  // namespace isolang
