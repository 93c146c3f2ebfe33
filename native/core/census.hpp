// What `isocheck stats` counts in a history.
#pragma once
#include <cstdint>

#include "core/history.hpp"

namespace isolang {

// The minimum, median and maximum of a number for each transaction.
struct Spread {
  std::int64_t min = 0;
  double median = 0;
  std::int64_t max = 0;
};

// T0 does not count as a transaction, nor do its operations. A transaction works if it is committed
// and has operations. isolang/history/stats.py says what each number means.
struct Census {
  std::int64_t sessions = 0, operations = 0;
  std::int64_t reads = 0, list_reads = 0, set_reads = 0, writes = 0, appends = 0;
  std::int64_t failed_operations = 0, unknown_reads = 0, initial_reads = 0;
  std::int64_t explicit_sources = 0, missing_sources = 0;
  std::int64_t repeated_values = 0, repeated_writes = 0;
  std::int64_t working = 0, read_modify_write = 0, read_only = 0, write_only = 0;
  Spread operations_per_transaction, keys_per_transaction;
};

Census census(const History& history);

}  // namespace isolang
