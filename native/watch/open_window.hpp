// Makes a window of a stream a history by itself: its initial state is what the last cut left.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/history.hpp"
#include "watch/last_values.hpp"

namespace isolang::watch {

// An element that no transaction appends. A list gets it if it begins otherwise than the last cut left it.
inline constexpr std::string_view kNothing = "isolang: no value";

struct Window {
  History history;
  // The committed transactions that read a list which begins otherwise than the last cut left it: with something older,
  // or something that never existed. In the history, they read an element that nobody appended.
  std::vector<std::int32_t> stale;
};

// Thrown for a stream that cannot be watched.
struct NotWatched {
  std::int32_t key;  // key of the history, or -1
  std::int32_t txn;
  std::string what;
};

// Returns the distinct predicates of the predicate reads whose rows are known.
std::vector<std::string> predicates_of(const History& raw);

// Returns the window as a history. `raw` has its transactions as the log has them. The value that the last cut left of
// a key becomes its initial value, and nil does not name that version. Elements that the last cut has are removed from
// lists. If there are predicate reads, the rows that the cut left and that these reads concern become keys of the
// window, after those of `raw`, and the rows that the reads missed become set-reads. Throws NotWatched.
Window open_window(const History& raw, LastValues& last);

}  // namespace isolang::watch
