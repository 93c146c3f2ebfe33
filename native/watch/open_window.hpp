// A window of a stream as a history by itself: its initial state is what the last cut left.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/history.hpp"
#include "watch/last_values.hpp"

namespace isolang::watch {

// An element that nobody appends: a list that has another beginning than the last cut left has it.
inline constexpr std::string_view kNothing = "isolang: no value";

struct Window {
  History history;
  // Transactions that read a list of which the last cut left another beginning: something older, or
  // what never was. In the history they read an element that nobody appended.
  std::vector<std::int32_t> stale;
};

// What cannot be watched.
struct NotWatched {
  std::int32_t key;  // of the history, -1: none
  std::int32_t txn;
  std::string what;
};

// The predicates of those reads of a history whose rows are known, each once.
std::vector<std::string> predicates_of(const History& raw);

// `raw` has the transactions as the log has them. What the last cut left of a key is its initial value,
// and nil does not name it, too. Of lists those elements are left out that the last cut has. If there
// are predicate reads, the rows that it left and that these are about are keys of the window, behind
// those of `raw`, and what the reads missed is set-reads. Throws NotWatched.
Window open_window(const History& raw, LastValues& last);

}  // namespace isolang::watch
