// Turns a window of a stream into a separate history, whose initial state consists of the values
// left by the last cut.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/history.hpp"
#include "watch/last_values.hpp"

namespace isolang::watch {

// An element that no transaction appends. It replaces the elements of a list that does not begin with the elements left
// by the last cut.
inline constexpr std::string_view kNothing = "isolang: no value";

struct Window {
  History history;
  // The committed transactions that read a list which does not begin with the elements left by the last cut. Such a
  // list begins with older elements, or with elements that never existed. In the history, these transactions read an
  // element that no transaction appended.
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

// Returns the window as a history. `raw` contains the transactions as they are in the log. If the last cut left a value
// for a key, it becomes the initial value of the key, and nil does not name this version. Elements that were cut are
// removed from lists. If there are predicate reads, the rows left by the cut that concern these reads become keys of
// the window, after the keys of `raw`, and the rows that the reads missed become set-reads. Throws NotWatched.
Window open_window(const History& raw, LastValues& last);

}  // namespace isolang::watch
