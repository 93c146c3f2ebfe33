#include "core/observed.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace isolang {
namespace {

constexpr std::int32_t kNoSession = -1, kSeveralSessions = -2;  // no session has these numbers

void require_numbers_of(const History& history, const StatedReads& stated) {
  const std::int32_t t0 = history.transactions();
  const auto keys = history.key_atom.size();
  bool fits = stated.source.size() == history.op_kind.size() && stated.order_start.size() == keys + 1;
  fits = fits && std::ranges::all_of(stated.source, [t0](std::int32_t t) { return t <= t0; });
  fits = fits && std::ranges::all_of(stated.order_txn, [t0](std::int32_t t) { return t >= 0 && t < t0; });
  fits = fits && std::ranges::is_sorted(stated.order_start) && stated.order_start.front() >= 0 &&
         stated.order_start.back() <= static_cast<std::int64_t>(stated.order_txn.size());
  if (!fits) throw std::invalid_argument("the sources and orders do not fit the history");
}

}  // namespace

bool observes_other_sessions(const History& history, const StatedReads& stated) {
  require_numbers_of(history, stated);
  const std::int32_t t0 = history.transactions();
  const auto session_of = [&](std::int32_t t) { return history.txn_session[static_cast<std::size_t>(t)]; };
  // The session of each key's writers. A read of the initial state missed all writes to its key.
  std::vector<std::int32_t> writing(history.key_atom.size(), kNoSession);
  for (std::size_t key = 0; key < writing.size(); ++key) {
    for (auto i = stated.order_start[key]; i < stated.order_start[key + 1]; ++i) {
      const std::int32_t session = session_of(stated.order_txn[static_cast<std::size_t>(i)]);
      writing[key] = writing[key] == kNoSession || writing[key] == session ? session : kSeveralSessions;
    }
  }
  for (std::int32_t t = 0; t < t0; ++t) {
    const std::int32_t session = session_of(t);
    const auto at = static_cast<std::size_t>(t);
    for (auto op = static_cast<std::size_t>(history.op_start[at]); op < static_cast<std::size_t>(history.op_start[at + 1]); ++op) {
      const std::int32_t source = stated.source[op];
      if (source >= 0 && source < t0 && session_of(source) != session) return true;
      if (source != t0) continue;
      const std::int32_t other = writing[static_cast<std::size_t>(history.op_key[op])];
      if (other != kNoSession && other != session) return true;
    }
  }
  return false;
}

}  // namespace isolang
