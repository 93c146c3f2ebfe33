// `cut` returns the transactions that leave the window. It marks the transactions that must stay, then everything that
// follows them in the witness, in sessions or in real time, and cuts all others. `PartComparison` compares a part with
// the window from which it was cut.
#include "watch/cut.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace isolang::watch {
namespace {

constexpr std::int64_t kGuessedWriters = 8;  // how many of the last writers of a key are examined for a guessed order

void check(const History& window, const Witness& witness) {
  const std::int32_t n = window.transactions();
  const auto bad = [](bool wrong) {
    if (wrong) throw std::invalid_argument("a witness of another history");
  };
  bad(std::cmp_not_equal(witness.source.size(), window.operations()));
  bad(witness.order_start.size() != idx(window.n_keys()) + 1 || witness.order_start.front() != 0);
  bad(std::cmp_not_equal(witness.order_start.back(), witness.order_txn.size()));
  bad(!std::ranges::is_sorted(witness.order_start));
  for (const std::int32_t t : witness.source) bad(t < -1 || t > n);
  for (const std::int32_t t : witness.order_txn) bad(t < 0 || t >= n);
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::numeric_limits<std::int64_t>::max();
  return sum;
}

class CutSelection {
 public:
  CutSelection(const History& window, const Witness& witness, const Limits& limits)
      : h_(window), w_(witness), limits_(limits), n_(window.transactions()) {}

  std::vector<std::int32_t> run() {
    make_edges();
    const auto of = idx(n_);
    // If a closed transaction has read from a transaction of unknown outcome, that outcome is known.
    std::vector<char> shown(of, 0);
    for (std::int32_t t = 0; t < n_; ++t)
      if (limits_.open[idx(t)] == 0)
        for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
          if (const std::int32_t writer = w_.source[idx(op)]; writer >= 0 && writer < n_)
            shown[idx(writer)] = 1;
    stays_.assign(of, 0);
    std::vector<std::int32_t> begin;
    for (std::int32_t t = 0; t < n_; ++t)
      if (limits_.open[idx(t)] != 0 && (shown[idx(t)] == 0 || limits_.in_flight[idx(t)] != 0))
        begin.push_back(t);
    guessed(begin);
    follow(begin);
    if (limits_.real_time) follow_real_time();
    std::vector<std::int32_t> going;
    for (std::int32_t t = 0; t < n_; ++t) {
      const auto status = static_cast<Status>(h_.txn_status[t]);
      if (stays_[idx(t)] == 0 && (status == Status::committed || status == Status::indeterminate))
        going.push_back(t);
    }
    return going;
  }

 private:
  template <typename F>
  void each_edge(F edge) {
    // The position of each writer in the version order of the current key.
    std::vector<std::int64_t> at(idx(n_), -1);
    std::vector<std::int32_t> last(idx(h_.sessions), -1);
    for (std::int32_t t = 0; t < n_; ++t) {
      std::int32_t& before = last[idx(h_.txn_session[t])];
      if (before >= 0) edge(before, t);
      before = t;
    }
    for (std::int32_t key = 0; key < h_.n_keys(); ++key) {
      const std::int64_t first = w_.order_start[idx(key)], end = w_.order_start[idx(key) + 1];
      for (std::int64_t i = first; i < end; ++i) {
        at[idx(w_.order_txn[idx(i)])] = i;
        if (i > first) edge(w_.order_txn[idx(i - 1)], w_.order_txn[idx(i)]);
      }
      for (std::int64_t i = key_ops_start_[idx(key)]; i < key_ops_start_[idx(key) + 1]; ++i) {
        const auto [op, t] = key_ops_[idx(i)];
        const std::int32_t writer = w_.source[idx(op)];
        if (writer < 0) continue;
        std::int64_t next = first;
        if (writer < n_) {
          edge(writer, t);
          if (at[idx(writer)] < first) throw std::invalid_argument("a source that is not in its order");
          next = at[idx(writer)] + 1;
        }
        if (next < end && w_.order_txn[idx(next)] == t) ++next;
        if (next < end) edge(t, w_.order_txn[idx(next)]);
      }
    }
  }

  void make_edges() {
    key_ops_start_.assign(idx(h_.n_keys()) + 1, 0);
    for (const std::int32_t key : h_.op_key) ++key_ops_start_[idx(key) + 1];
    std::partial_sum(key_ops_start_.begin(), key_ops_start_.end(), key_ops_start_.begin());
    key_ops_.resize(idx(h_.operations()));
    std::vector<std::int64_t> fill(key_ops_start_.begin(), key_ops_start_.end() - 1);
    for (std::int32_t t = 0; t < n_; ++t)
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
        key_ops_[idx(fill[idx(h_.op_key[op])]++)] = {op, t};
    next_start_.assign(idx(n_) + 1, 0);
    each_edge([&](std::int32_t from, std::int32_t) { ++next_start_[idx(from) + 1]; });
    std::partial_sum(next_start_.begin(), next_start_.end(), next_start_.begin());
    next_.resize(idx(next_start_.back()));
    std::vector<std::int64_t> put(next_start_.begin(), next_start_.end() - 1);
    each_edge([&](std::int32_t from, std::int32_t to) { next_[idx(put[idx(from)]++)] = to; });
  }

  // Marks these transactions as staying in the window, and all transactions that they lead to.
  void follow(const std::vector<std::int32_t>& some) {
    std::vector<std::int32_t> work;
    const auto stay = [&](std::int32_t t) {
      if (stays_[idx(t)] != 0) return;
      stays_[idx(t)] = 1;
      least_end_ = std::min(least_end_, h_.txn_end[t]);
      work.push_back(t);
    };
    for (const std::int32_t t : some) stay(t);
    while (!work.empty()) {
      const std::int32_t t = work.back();
      work.pop_back();
      for (std::int64_t i = next_start_[idx(t)]; i < next_start_[idx(t) + 1]; ++i) stay(next_[idx(i)]);
      if (const auto at = tied_.find(t); at != tied_.end())
        for (const std::int32_t before : at->second) stay(before);
    }
  }

  bool reads(std::int32_t reader, std::int32_t writer) const {
    for (std::int64_t op = h_.op_start[reader]; op < h_.op_start[reader + 1]; ++op)
      if (w_.source[idx(op)] == writer) return true;
    return false;
  }

  bool appends(std::int32_t t, std::int32_t key) const {
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
      if (h_.op_key[op] == key && h_.kind(op) == OpKind::append) return true;
    return false;
  }

  // Returns the latest begin among a writer and the transactions that read what it wrote to a key.
  std::int64_t seen_at(std::int32_t writer, std::int32_t key) const {
    std::int64_t later = h_.txn_begin[writer];
    for (std::int64_t k = key_ops_start_[idx(key)]; k < key_ops_start_[idx(key) + 1]; ++k)
      if (w_.source[idx(key_ops_[idx(k)].op)] == writer) later = std::max(later, h_.txn_begin[key_ops_[idx(k)].txn]);
    return later;
  }

  // Calls visit(t, u) for each pair of the last writers of a key whose order no read has shown. In the witness, t
  // precedes u, but a later read may show the opposite order. For a register, only the last writer matters. A list
  // shows the order of all appends.
  template <typename Visit>
  void each_guess(const Visit& visit) const {
    for (std::int32_t key = 0; key < h_.n_keys(); ++key) {
      const std::int64_t end = w_.order_start[idx(key) + 1];
      const std::int64_t first = std::max(w_.order_start[idx(key)], end - kGuessedWriters);
      if (end - first < 2) continue;
      const bool list = appends(w_.order_txn[idx(end - 1)], key);
      for (std::int64_t i = end - 1; i > first; --i) {
        const std::int32_t u = w_.order_txn[idx(i)];
        const std::int64_t later = seen_at(u, key);
        for (std::int64_t j = i; j-- > first;) {
          const std::int32_t t = w_.order_txn[idx(j)];
          if (reads(u, t)) continue;  // of this key or another one
          if (limits_.timed && h_.txn_end[t] != kTimeUnknownEnd && h_.txn_end[t] < later) continue;
          visit(t, u);
        }
        if (!list || later != h_.txn_begin[u]) break;
      }
    }
  }

  // Adds the guessed pairs of young transactions, which stay for one more round. Ties the two transactions of every
  // other pair together, so that both are in one part, in which their order can be exchanged. Without times, or for an
  // indeterminate writer, a tie would last for too long.
  void guessed(std::vector<std::int32_t>& found) {
    each_guess([&](std::int32_t t, std::int32_t u) {
      if (limits_.young[idx(t)] != 0 && limits_.young[idx(u)] != 0) {
        found.push_back(t);
        found.push_back(u);
      } else if (limits_.timed && h_.txn_end[t] != kTimeUnknownEnd) {
        tied_[u].push_back(t);
      }
    });
  }

  // For each transaction that stays in the window, marks all transactions that began after its end as staying, too.
  void follow_real_time() {
    std::vector<std::int32_t> by_begin(idx(n_));
    std::iota(by_begin.begin(), by_begin.end(), 0);
    std::ranges::stable_sort(by_begin, std::ranges::greater{},
                             [&](std::int32_t t) { return h_.txn_begin[t]; });
    std::size_t at = 0;  // all transactions before it stay
    while (least_end_ != kTimeUnknownEnd) {
      std::vector<std::int32_t> more;
      // If clocks differ, a transaction may have begun later than its recorded time.
      for (; at < by_begin.size(); ++at) {
        const std::int32_t t = by_begin[at];
        if (plus(h_.txn_begin[t], 2 * limits_.clock_error) <= least_end_) break;
        if (stays_[idx(t)] == 0) more.push_back(t);
      }
      if (more.empty()) return;
      follow(more);
    }
  }

  struct KeyOp {
    std::int64_t op;
    std::int32_t txn;
  };
  const History& h_;
  const Witness& w_;
  const Limits& limits_;
  std::int32_t n_;
  std::vector<std::int64_t> key_ops_start_, next_start_;
  std::vector<KeyOp> key_ops_;
  std::vector<std::int32_t> next_;
  std::vector<char> stays_;
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> tied_;  // if the key stays, these stay, too
  std::int64_t least_end_ = kTimeUnknownEnd;
};

}  // namespace

std::vector<std::int32_t> cut(const History& window, const Witness& witness, const Limits& limits) {
  check(window, witness);
  if (limits.open.size() != idx(window.transactions()) || limits.in_flight.size() != limits.open.size() ||
      limits.young.size() != limits.open.size())
    throw std::invalid_argument("one flag for each transaction");
  return CutSelection(window, witness, limits).run();
}

namespace {

// Compares a part with its window. The operations are the same, except that a predicate read of the part may have fewer
// missed rows, in a different order, because the part has fewer versions and numbers its keys differently.
class PartComparison {
 public:
  PartComparison(const History& window, const History& part)
      : w_(window), p_(part), key_of_(idx(part.n_keys()), -1) {
    if (part.statement_start.empty()) return;
    std::unordered_map<std::string, std::int32_t> known;
    for (std::int32_t k = 0; k < window.n_keys(); ++k) known.emplace(name(window, k), k);
    for (std::int32_t k = 0; k < part.n_keys(); ++k)
      if (const auto at = known.find(name(part, k)); at != known.end()) key_of_[idx(k)] = at->second;
  }

  // Calls visit(operation of the window) for each operation of a transaction of the part.
  template <typename Visit>
  void each_operation(std::int32_t in_window, std::int32_t in_part, const Visit& visit) {
    std::int64_t op = w_.op_start[in_window], here = p_.op_start[in_part];
    for (; statement_ < p_.statement_start.size() && p_.statement_txn[statement_] == in_part; ++statement_) {
      const std::size_t s = matching_read(in_window);
      for (; here < p_.statement_start[statement_]; ++here, ++op) same(op, here, visit);
      std::unordered_map<std::int32_t, std::int64_t> missed;
      for (std::int64_t i = w_.statement_start[s]; i < w_.statement_end[s]; ++i)
        if (is_missed(w_, s, i)) missed[w_.op_key[i]] = i;
      for (; here < p_.statement_end[statement_]; ++here) {
        if (!is_missed(p_, statement_, here)) {
          same(op++, here, visit);
          continue;
        }
        const auto at = missed.find(key_of_[idx(p_.op_key[here])]);
        if (at == missed.end()) throw std::invalid_argument("a part of another window");
        visit(at->second);
      }
      op = w_.statement_end[s];
    }
    for (; here < p_.op_start[in_part + 1]; ++here, ++op) same(op, here, visit);
    if (op != w_.op_start[in_window + 1]) throw std::invalid_argument("a part of another window");
  }

  // Returns for each key of the part the corresponding key of the window, or -1.
  const std::vector<std::int32_t>& keys() const { return key_of_; }

 private:
  static std::string name(const History& h, std::int32_t key) {
    const std::int32_t atom = h.key_atom[idx(key)];
    const AtomKind kind = h.key_atoms.kind(atom);
    const std::string what = std::to_string(static_cast<int>(kind)) + " ";
    return what + (kind >= AtomKind::string ? std::string(h.key_atoms.text(atom))
                                            : std::to_string(h.key_atoms.number(atom)));
  }
  static bool is_missed(const History& h, std::size_t s, std::int64_t op) {
    return h.kind(op) == OpKind::read_none_of && h.statement_known[s] == 1 &&
           h.statement_predicate[s] != kJudged;
  }
  // Returns the predicate read of the window that corresponds to the next one of the part.
  std::size_t matching_read(std::int32_t in_window) {
    if (in_window != twins_of_) {
      twins_of_ = in_window;
      next_ = static_cast<std::size_t>(std::ranges::lower_bound(w_.statement_txn, in_window) -
                                       w_.statement_txn.begin());
    }
    if (next_ >= w_.statement_txn.size() || w_.statement_txn[next_] != in_window)
      throw std::invalid_argument("a part of another window");
    return next_++;
  }
  template <typename Visit>
  void same(std::int64_t op, std::int64_t here, const Visit& visit) {
    if (op >= w_.operations()) throw std::invalid_argument("a part of another window");
    key_of_[idx(p_.op_key[here])] = w_.op_key[op];
    visit(op);
  }

  const History& w_;
  const History& p_;
  std::vector<std::int32_t> key_of_;
  std::size_t statement_ = 0, next_ = 0;
  std::int32_t twins_of_ = -1;
};

}  // namespace

OwnWitness restricted(const History& window, const Witness& witness,
                      std::span<const std::int32_t> going, const History& part) {
  check(window, witness);
  OwnWitness own;
  // For the part, all other transactions are T0, because the values that they wrote were left by an
  // earlier part.
  std::vector<std::int32_t> number(idx(window.transactions()) + 1, part.transactions());
  for (std::size_t i = 0; i < going.size(); ++i) number[idx(going[i])] = static_cast<std::int32_t>(i);
  own.source.reserve(idx(part.operations()));
  PartComparison comparison(window, part);
  for (std::size_t i = 0; i < going.size(); ++i) {
    const std::int32_t t = going[i];
    comparison.each_operation(t, static_cast<std::int32_t>(i), [&](std::int64_t op) {
      const std::int32_t source = witness.source[idx(op)];
      own.source.push_back(source < 0 ? -1 : number[idx(source)]);
    });
  }
  own.order_start.push_back(0);
  for (const std::int32_t key : comparison.keys()) {
    if (key >= 0)
      for (std::int64_t i = witness.order_start[idx(key)]; i < witness.order_start[idx(key) + 1]; ++i)
        if (const std::int32_t t = number[idx(witness.order_txn[idx(i)])]; t < part.transactions())
          own.order_txn.push_back(t);
    own.order_start.push_back(static_cast<std::int64_t>(own.order_txn.size()));
  }
  return own;
}

}  // namespace isolang::watch
