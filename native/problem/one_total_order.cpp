// Runs each transaction as soon as possible. SOUND and COMPLETE BECAUSE a transaction that has run never prevents
// another one: if some total order contains all transactions, the first one in it that never runs here could have run.
#include "problem/one_total_order.hpp"
#include "core/index.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "problem/prepass.hpp"

namespace isolang {
namespace {

class Run {
 public:
  Run(const Problem& p, bool sessions, bool real_time) : p_(p) {
    part_.resize(idx(p.n));
    for (std::int32_t t = 0; t < p.n; ++t)
      part_[t] = p.inclusion[t] != static_cast<std::uint8_t>(Inclusion::out) &&
                 !std::ranges::binary_search(p.impossible, t);
    wanting_.assign(idx(p.n), 0);
    for (const std::int32_t t : p.read_txn) ++wanting_[t];
    find_readers();
    if (sessions) find_sessions();
    if (real_time && p.has_time) find_times();
    for (std::int32_t t = 0; t < p.n; ++t)
      // mutant: read-before-write
      if (part_[t] && wanting_[t] == 0) ready_.push_back(t);
  }

  bool all() {
    ran_.assign(idx(p_.n), 0);
    feed_readers(p_.n);
    pass_time();
    while (!ready_.empty()) {
      const std::int32_t t = ready_.back();
      ready_.pop_back();
      ran_[t] = 1;
      feed_readers(t);
      // Wakes the next transactions in the session, up to and including the next transaction that is not indeterminate.
      // No transaction waits for an indeterminate one.
      if (p_.unfinished[t] == 0)
        for (std::int32_t s = next_.empty() ? -1 : next_[t]; s >= 0; s = next_[s]) {
          give(s);
          if (p_.unfinished[s] == 0) break;
        }
      pass_time();
    }
    for (std::int32_t t = 0; t < p_.n; ++t)
      if (p_.inclusion[t] == static_cast<std::uint8_t>(Inclusion::in) && ran_[t] == 0) return false;
    return true;
  }

 private:
  void give(std::int32_t txn) {
    if (--wanting_[txn] == 0 && part_[txn]) ready_.push_back(txn);
  }

  void find_readers() {
    reader_start_.assign(idx(p_.n) + 2, 0);
    for (const std::int32_t w : p_.candidate) ++reader_start_[idx(p_.writer_txn[w]) + 1];
    for (std::size_t t = 1; t < reader_start_.size(); ++t) reader_start_[t] += reader_start_[t - 1];
    reader_.resize(p_.candidate.size());
    auto next = reader_start_;
    for (std::int32_t r = 0; r < p_.reads(); ++r)
      for (const std::size_t i : p_.candidates(r))
        reader_[next[p_.writer_txn[p_.candidate[i]]]++] = r;
    fed_.assign(idx(p_.reads()), 0);
  }

  void feed_readers(std::int32_t writer) {
    for (std::int64_t i = reader_start_[writer]; i < reader_start_[writer + 1]; ++i)
      if (const std::int32_t r = reader_[i]; std::exchange(fed_[r], std::uint8_t{1}) == 0)
        give(p_.read_txn[r]);
  }

  void find_sessions() {
    next_.assign(idx(p_.n), -1);
    std::vector<std::int32_t> last(idx(p_.sessions), -1), finished(idx(p_.sessions), -1);
    for (std::int32_t t = 0; t < p_.n; ++t) {
      if (!part_[t]) continue;
      const std::size_t session = idx(p_.session[t]);
      if (last[session] >= 0) next_[last[session]] = t;
      wanting_[t] += static_cast<std::int32_t>(finished[session] >= 0);
      last[session] = t;
      // mutant: indeterminate-hold-session
      if (p_.unfinished[t] == 0) finished[session] = t;
    }
  }

  void find_times() {
    for (std::int32_t t = 0; t < p_.n; ++t) {
      if (!part_[t]) continue;
      ++wanting_[t];
      by_begin_.push_back(t);
      if (p_.unfinished[t] == 0 && p_.end[t] != kTimeUnknownEnd) by_end_.push_back(t);
    }
    std::ranges::stable_sort(by_begin_, {}, [&](std::int32_t t) { return p_.begin[t]; });
    std::ranges::stable_sort(by_end_, {}, [&](std::int32_t t) { return p_.end[t]; });
  }

  // Wakes the transactions that begin before the earliest end of a transaction that has not run yet.
  void pass_time() {
    while (ended_ < by_end_.size() && ran_[by_end_[ended_]] != 0) ++ended_;
    for (; begun_ < by_begin_.size(); ++begun_) {
      const std::int32_t t = by_begin_[begun_];
      // mutant: same-end-precedes
      if (ended_ < by_end_.size() && p_.end[by_end_[ended_]] < p_.begin[t]) return;
      give(t);
    }
  }

  const Problem& p_;
  std::vector<std::uint8_t> part_, ran_;
  std::vector<std::int32_t> wanting_;  // for each transaction: how many reads and other conditions it waits for
  std::vector<std::int32_t> ready_;
  std::vector<std::int64_t>
      reader_start_;  // [n+2] starts in reader_: the reads that have a candidate by the transaction
  std::vector<std::int32_t> reader_;
  std::vector<std::uint8_t> fed_;   // for each read: whether a candidate has run
  std::vector<std::int32_t> next_;  // the next transaction in the session, or -1; empty without sessions
  std::vector<std::int32_t> by_begin_, by_end_;
  std::size_t begun_ = 0, ended_ = 0;
};

}  // namespace

bool fits_one_total_order(const Problem& problem, bool sessions, bool real_time) {
  if (real_time && !problem.slack.empty()) return false;  // the sessions have no separate clocks here
  return Run(problem, sessions, real_time).all();
}

}  // namespace isolang
