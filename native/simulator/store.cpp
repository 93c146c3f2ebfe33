// `Replicas` delivers each committed transaction to the other replicas after a random lag. In a causal store, a
// transaction arrives only after all transactions that its own replica already knew.
#include "simulator/store.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace isolang::simulator {
void Replicas::learn(std::size_t replica, std::int32_t transaction) {
  auto& shown = shown_[replica];
  const Delivery& t = transactions_[transaction];
  for (std::int32_t v = t.first; v < t.last; ++v) {
    const auto key = idx(store_.key(v));
    if (key >= shown.size()) shown.resize(key + 1 + key / 2, kInitialVersion);
    shown[key] = std::max(shown[key], v);  // the last writer wins
  }
}

void Replicas::commit(std::size_t replica, std::int32_t first) {
  if (first == store_.size()) return;  // the transaction wrote nothing
  const auto transaction = static_cast<std::int32_t>(transactions_.size());
  transactions_.push_back({first, store_.size()});
  learn(replica, transaction);
  if (causal_) {
    const auto row = known_.begin() + static_cast<std::ptrdiff_t>(replica * n_);
    needs_.insert(needs_.end(), row, row + static_cast<std::ptrdiff_t>(n_));
    log_[replica].push_back(transaction);
    ++known_[replica * n_ + replica];
  } else {
    for (std::size_t other = 0; other < n_; ++other)
      if (other != replica) waiting_[other].push_back(transaction);
  }
}

bool Replicas::prepared(std::size_t replica, std::int32_t transaction) const {
  for (std::size_t other = 0; other < n_; ++other)
    if (known_[replica * n_ + other] < needs_[idx(transaction) * n_ + other]) return false;
  return true;
}

// Returns whether a transaction should arrive now. The older the transaction, the likelier it is; after the lag, it is
// certain.
bool Replicas::due(std::int32_t transaction, std::int64_t now, Random& random) const {
  const std::int64_t age = now - store_.instant(transactions_[transaction].first);
  return age >= static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(lag_)));
}

void Replicas::settle() {
  for (std::size_t replica = 0; replica < n_; ++replica) {
    for (std::size_t origin = 0; origin < n_; ++origin) {
      auto& known = known_[replica * n_ + origin];
      while (idx(known) < log_[origin].size()) learn(replica, log_[origin][known++]);
    }
    for (const std::int32_t transaction : waiting_[replica]) learn(replica, transaction);
    waiting_[replica].clear();
  }
}

void Replicas::step(std::int64_t now, Random& random) {
  const auto replica = idx(random.below(n_));
  if (causal_) {
    const auto origin = idx(random.below(n_));
    if (origin == replica) return;
    auto& known = known_[replica * n_ + origin];
    while (idx(known) < log_[origin].size()) {
      const std::int32_t transaction = log_[origin][known];
      if (!prepared(replica, transaction) || !due(transaction, now, random)) break;
      learn(replica, transaction);
      ++known;
    }
    return;
  }
  auto& waiting = waiting_[replica];
  for (std::size_t tries = 2 * n_; tries > 0 && !waiting.empty(); --tries) {
    auto& one = waiting[random.below(waiting.size())];
    if (!due(one, now, random)) continue;
    learn(replica, one);
    one = waiting.back();
    waiting.pop_back();
  }
}

}  // namespace isolang::simulator
