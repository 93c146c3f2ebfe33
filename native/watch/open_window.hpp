// A window of a stream as a history by itself: its initial state is what the last cut left.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/history.hpp"
#include "watch/last_values.hpp"

namespace isolang::watch {

// What stands for nil. The initial value of a key is what the last cut left, so that a stale read of
// nil must not pass as a read of the initial state; an absent value is one like others.
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

// `raw` has the transactions as the log has them. Of lists those elements are left out that the last
// cut has. Throws NotWatched.
Window open_window(const History& raw, const LastValues& last);

}  // namespace isolang::watch
