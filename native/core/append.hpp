// Appends transactions of one history to another, for example those of a growing log to the open window of a watch.
#pragma once
#include <cstdint>
#include <span>

#include "core/history.hpp"

namespace isolang {

// Appends transactions of `from`, in the given order, to `to`. `sessions` maps each session of
// `from` to a session of `to`. Each transaction keeps its status, number, position, times, group,
// names, operation times and predicate reads, and its keys keep their initial values. Keys, values
// and lists get the numbers of `to`.
//
// With `in_flight`, each transaction is appended as it was before its outcome was known: it is
// indeterminate, it has no end, and the results of its reads are unknown.
//
// Throws std::invalid_argument for transactions that cannot be appended: those with operations that
// state versions, with reads that name the operation they read from, or with times that have been
// widened. `from` and `to` must be different histories.
void append(History& to, const History& from, std::span<const std::int32_t> transactions,
            std::span<const std::int32_t> sessions, bool in_flight);

}  // namespace isolang
