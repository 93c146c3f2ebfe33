// Builds the graph of the COMMITs and views required by a model, sorts it topologically in an order
// close to that of the file, and reads the version orders and the sources of free reads off the
// sorted order. If a version or a source does not fit the sorted order, it is fixed, and the graph
// is sorted again.
#include "engine/graph/commit_order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/history.hpp"
#include "core/index.hpp"
#include "engine/graph/adjacency.hpp"
#include "engine/graph/topological_order.hpp"

namespace isolang {
namespace {

class CommitGraph {
 public:
  CommitGraph(const Problem& p, const PredicateReads& statements, std::span<const std::int32_t> source, std::span<const std::int64_t> order_start,
        std::span<const std::int32_t> order_txn, KeptRelations kept, Budget& budget)
      : p_(p), statements_(statements), source_(source), order_start_(order_start), order_txn_(order_txn), kept_(kept), budget_(budget) {}

  std::optional<CommitOrder> order() {
    find_included();
    find_fixed();
    nodes_ = own();
    if (!at_once())
      for (std::int32_t t = 0; t < p_.n; ++t) add(view(t), commit(t));
    if (kept_.so) sessions();
    if (kept_.rt) real_time(false);
    if (kept_.group_rt && !p_.group.empty()) real_time(true);
    moments();
    const std::size_t given = edges_.size();
    const std::vector<std::int32_t> priority = priorities();
    CommitOrder result;
    // SOUND BECAUSE the edges added for a version or a source that becomes fixed agree with the model.
    for (int round = 0;; ++round) {
      if (round == kRounds || kept_.as_modelled) {
        fixed_.assign(fixed_.size(), 1);
        free_.assign(free_.size(), 0);
      }
      edges_.resize(given);
      versions();
      const Adjacency successors = group_by(
          nodes_, edges_.size(), [&](std::size_t i) { return edges_[i].first; },
          [&](std::size_t i) { return edges_[i].second; });
      const std::vector<std::int32_t> found = topological_order(successors, priority, budget_);
      if (found.size() < idx(nodes_)) return std::nullopt;
      rank_.resize(idx(nodes_));
      for (std::size_t i = 0; i < found.size(); ++i) rank_[idx(found[i])] = static_cast<std::int32_t>(i);
      result.order_txn.assign(order_txn_.begin(), order_txn_.end());
      result.source.assign(source_.begin(), source_.end());
      if (!settle(result)) continue;
      std::vector<std::int64_t> seen(idx(p_.n), -1);
      for (const std::int32_t v : found) {
        if (v >= own()) continue;
        const std::int32_t t = at_once() ? v : v / 2;
        if (included_[idx(t)] == 0) continue;
        if (v == view(t)) seen[idx(t)] = static_cast<std::int64_t>(result.commits.size());
        if (v == commit(t)) result.commits.push_back(t);
      }
      result.seen.reserve(statements_.txn.size());
      for (const std::int32_t t : statements_.txn) result.seen.push_back(seen[idx(t)]);
      for (std::size_t i = 0; i < p_.merged_op.size(); ++i)
        result.source[idx(p_.merged_op[i])] = result.source[idx(p_.read_op[p_.merged_into[i]])];
      if (kept_.by_statement) views(result);
      return result;
    }
  }

 private:
  static constexpr int kRounds = 20;

  // Returns true if a view is not a separate node.
  bool at_once() const { return kept_.serial || kept_.by_statement; }
  std::int32_t own() const { return (at_once() ? 1 : 2) * p_.n; }  // nodes of transactions
  std::int32_t commit(std::int32_t t) const { return at_once() ? t : 2 * t + 1; }
  std::int32_t view(std::int32_t t) const { return at_once() ? t : 2 * t; }
  void add(std::int32_t a, std::int32_t b) { edges_.emplace_back(a, b); }

  void find_included() {
    included_.assign(idx(p_.n), 0);
    for (std::int32_t t = 0; t < p_.n; ++t)
      included_[idx(t)] = p_.inclusion[t] == static_cast<std::uint8_t>(Inclusion::in) ? 1 : 0;
    for (const std::int32_t t : order_txn_) included_[idx(t)] = 1;
    for (std::int32_t r = 0; r < p_.reads(); ++r)
      if (source_[idx(p_.read_op[r])] >= 0) included_[idx(p_.read_txn[r])] = 1;
  }

  void sessions() {
    // Per session, the transactions that directly precede its next transaction.
    std::vector<std::vector<std::int32_t>> last(idx(p_.sessions));
    for (std::int32_t t = 0; t < p_.n; ++t) {
      if (included_[idx(t)] == 0) continue;
      auto& before = last[idx(p_.session[t])];
      for (const std::int32_t b : before) add(commit(b), view(t));
      // An indeterminate transaction precedes nothing.
      if (p_.unfinished[t] == 0) before.assign(1, t);
    }
  }

  struct Moment {
    std::int64_t time;
    std::int32_t node;
    // The node's own moment may occur up to this time. It forms no pair with the node.
    std::int64_t until = kTimeUnknownBegin;
  };
  // Adds edges from each node to all nodes with later times.
  void precede(std::vector<Moment> before, std::vector<Moment> after) {
    std::ranges::stable_sort(after, {}, &Moment::time);
    const std::int32_t chain = nodes_;
    nodes_ += static_cast<std::int32_t>(after.size());
    for (std::int32_t i = 0; idx(i) < after.size(); ++i) {
      add(chain + i, after[idx(i)].node);
      if (idx(i) + 1 < after.size()) add(chain + i, chain + i + 1);
      when_.push_back(after[idx(i)].time);
    }
    for (const Moment& one : before) {
      budget_.poll();
      auto at = std::ranges::upper_bound(after, one.time, {}, &Moment::time);
      for (; at != after.end() && at->time <= one.until; ++at)
        if (at->node != one.node) add(one.node, at->node);
      if (at != after.end()) add(one.node, chain + static_cast<std::int32_t>(at - after.begin()));
    }
  }

  void real_time(bool of_groups) {
    std::map<std::int32_t, std::pair<std::vector<Moment>, std::vector<Moment>>> groups;
    for (std::int32_t t = 0; t < p_.n; ++t) {
      if (included_[idx(t)] == 0 || (of_groups && p_.group[t] == kNil)) continue;
      auto& [ends, begins] = groups[of_groups ? p_.group[t] : kNil];
      if (p_.unfinished[t] == 0) ends.push_back({p_.end[t], commit(t)});
      begins.push_back({p_.begin[t], view(t)});
    }
    for (auto& [group, both] : groups) precede(std::move(both.first), std::move(both.second));
  }

  // Adds the relations from an answer to another transaction's COMMIT that was sent later.
  void moments() {
    if (p_.commit_begin.empty()) return;
    std::vector<Moment> answered, first, sent;
    for (std::int32_t t = 0; t < p_.n; ++t) {
      if (included_[idx(t)] == 0) continue;
      if (kept_.done) answered.push_back({p_.commit_end[t], commit(t)});
      if (kept_.late && !at_once()) first.push_back({p_.first_answer[t], view(t)});
      sent.push_back({p_.commit_begin[t], commit(t)});
    }
    if (!answered.empty()) precede(std::move(answered), sent);
    if (!first.empty()) precede(std::move(first), std::move(sent));
    for (std::int32_t key = 0; kept_.locked && key < p_.keys; ++key) {
      answered.clear(), sent.clear();
      for (std::int32_t w = p_.key_start[key]; w < p_.key_start[key + 1]; ++w) {
        const std::int32_t t = p_.writer_txn[w];
        if (t == p_.n || included_[idx(t)] == 0) continue;
        answered.push_back({p_.write_answer[w], commit(t), p_.commit_begin[t]});
        sent.push_back({p_.commit_begin[t], commit(t)});
      }
      precede(answered, sent);
    }
  }

  // Marks as fixed the versions whose order is shown by lists. They are ordered as in the model.
  void find_fixed() {
    reads_ = group_by(
        p_.keys, idx(p_.reads()), [&](std::size_t r) { return source_[idx(p_.read_op[r])] < 0 ? -1 : p_.read_key[r]; },
        [](std::size_t r) { return static_cast<std::int32_t>(r); });
    fixed_.assign(order_txn_.size(), 0);
    place_.assign(idx(p_.n) + 1, -1);
    std::vector<std::uint8_t> lists(idx(p_.keys), 0);
    for (const std::int32_t w : p_.vo_before)
      lists[idx(std::ranges::upper_bound(p_.key_start, w) - p_.key_start.begin() - 1)] = 1;
    for (std::int32_t key = 0; key < p_.keys; ++key)
      if (lists[idx(key)] != 0)
        for (std::int64_t i = order_start_[idx(key)]; i < order_start_[idx(key) + 1]; ++i) fixed_[idx(i)] = 1;
    // An indeterminate transaction may be included only because a read takes it as its source.
    free_.assign(idx(p_.reads()), 0);
    for (std::int32_t r = 0; !kept_.by_statement && r < p_.reads(); ++r) {
      const std::int32_t source = source_[idx(p_.read_op[r])];
      free_[idx(r)] = source >= 0 && p_.candidates(r).size() > 1 && lists[idx(p_.read_key[r])] == 0 && overwrites(r) &&
                      p_.inclusion[source] == static_cast<std::uint8_t>(Inclusion::in);
    }
  }

  bool is_candidate(std::int32_t r, std::int32_t txn) const {
    return std::ranges::any_of(p_.candidates(r), [&](std::size_t i) { return p_.writer_txn[p_.candidate[i]] == txn; });
  }

  bool overwrites(std::int32_t r) const {
    return !kept_.by_statement && !(kept_.item_rw && !p_.read_predicate.empty() && p_.read_predicate[idx(r)] != 0);
  }

  // Calls visit(read, position of its source in the orders). The position of T0 is before all
  // others.
  template <typename Visit>
  void each_read(std::int32_t key, const Visit& visit) {
    const std::int64_t first = order_start_[idx(key)], last = order_start_[idx(key) + 1];
    place_[idx(p_.n)] = first - 1;
    for (std::int64_t i = first; i < last; ++i) place_[idx(order_txn_[idx(i)])] = i;
    for (const std::int32_t r : reads_.of(key)) visit(r, place_[idx(source_[idx(p_.read_op[r])])]);
  }

  void versions() {
    for (std::int32_t key = 0; key < p_.keys; ++key) {
      budget_.poll();
      const std::int64_t first = order_start_[idx(key)], last = order_start_[idx(key) + 1];
      next_.assign(idx(last - first) + 1, -1);  // per position, the next fixed version after it
      for (std::int64_t i = last, next = -1; i-- > first;) {
        next_[idx(i - first) + 1] = next;
        if (fixed_[idx(i)] == 0) continue;
        const std::int32_t t = order_txn_[idx(i)];
        if (next >= 0) {
          const std::int32_t after = order_txn_[idx(next)];
          add(commit(t), kept_.versions_only ? commit(after) : view(after));
        }
        next = i;
        next_[0] = i;
      }
      each_read(key, [&](std::int32_t r, std::int64_t at) {
        if (free_[idx(r)] != 0) return;
        const std::int32_t reader = p_.read_txn[r];
        if (at >= first) add(commit(order_txn_[idx(at)]), view(reader));
        if (!overwrites(r)) return;
        const std::int64_t next = next_[idx(at - first + 1)];
        // The reader's own version leads on to the later versions.
        if (next >= 0 && order_txn_[idx(next)] != reader) add(view(reader), commit(order_txn_[idx(next)]));
      });
    }
  }

  // Orders versions by their ranks, and chooses the sources of free reads. Returns false if some
  // versions or sources have to be fixed first, and fixes them.
  bool settle(CommitOrder& found) {
    std::vector<std::int32_t>& order = found.order_txn;
    bool settled = true;
    const auto when = [&](std::int64_t i) { return rank_[idx(commit(order_txn_[idx(i)]))]; };
    std::vector<std::int64_t> sorted, at_sorted;
    for (std::int32_t key = 0; key < p_.keys; ++key) {
      budget_.poll();
      const std::int64_t first = order_start_[idx(key)], last = order_start_[idx(key) + 1];
      sorted.resize(idx(last - first));
      std::iota(sorted.begin(), sorted.end(), first);
      std::ranges::sort(sorted, {}, when);
      at_sorted.assign(sorted.size(), 0);
      for (std::size_t i = 0; i < sorted.size(); ++i) at_sorted[idx(sorted[i] - first)] = static_cast<std::int64_t>(i);
      const auto fix = [&](std::int64_t i) {
        if (fixed_[idx(i)] == 0) settled = false;
        fixed_[idx(i)] = 1;
      };
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        const std::int32_t t = order_txn_[idx(sorted[i])];
        order[idx(first) + i] = t;
        if (i == 0 || kept_.versions_only || at_once()) continue;
        if (when(sorted[i - 1]) < rank_[idx(view(t))]) continue;
        fix(sorted[i - 1]);
        fix(sorted[i]);
      }
      each_read(key, [&](std::int32_t r, std::int64_t at) {
        if (!overwrites(r)) return;
        const std::int32_t reader = p_.read_txn[r];
        const std::int32_t seen = rank_[idx(view(reader))];
        if (free_[idx(r)] != 0) {
          const auto next = std::ranges::lower_bound(sorted, seen, {}, when);
          const std::int32_t last = next == sorted.begin() ? p_.n : order_txn_[idx(next[-1])];
          if (is_candidate(r, last)) {
            found.source[idx(p_.read_op[r])] = last;
            return;
          }
          free_[idx(r)] = 0;
          settled = false;
        }
        for (std::size_t i = at < first ? 0 : idx(at_sorted[idx(at - first)]) + 1;
             i < sorted.size() && when(sorted[i]) <= seen; ++i)
          if (order_txn_[idx(sorted[i])] != reader) {
            fix(sorted[i]);
            if (at >= first) fix(at);
          }
      });
    }
    return settled;
  }

  // Computes how many commits each predicate read sees. It must see the sources of its own reads
  // and those of earlier operations, and must not see a version that it or a later operation misses.
  // Within these limits, it sees as many commits as possible.
  void views(CommitOrder& order) {
    constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> when(idx(p_.n), -1), least(idx(p_.reads()), 0), most(idx(p_.reads()), kNone);
    for (std::size_t i = 0; i < order.commits.size(); ++i) when[idx(order.commits[i])] = static_cast<std::int64_t>(i);
    for (std::int32_t key = 0; key < p_.keys; ++key) {
      const std::int64_t first = order_start_[idx(key)], last = order_start_[idx(key) + 1];
      place_[idx(p_.n)] = first - 1;
      for (std::int64_t i = first; i < last; ++i) place_[idx(order.order_txn[idx(i)])] = i;
      for (const std::int32_t r : reads_.of(key)) {
        const std::int64_t at = place_[idx(source_[idx(p_.read_op[r])])];
        if (at >= first) least[idx(r)] = when[idx(order.order_txn[idx(at)])] + 1;
        std::int64_t next = at + 1;
        if (next < last && order.order_txn[idx(next)] == p_.read_txn[r]) ++next;
        if (next < last) most[idx(r)] = when[idx(order.order_txn[idx(next)])];
      }
    }
    std::vector<std::int32_t> reads(idx(p_.reads()));
    std::iota(reads.begin(), reads.end(), 0);
    std::ranges::stable_sort(reads, {}, [&](std::int32_t r) { return p_.read_op[r]; });
    // The operations of each transaction are visited backwards first, and then forwards.
    auto& seen = order.seen;
    std::vector<std::int64_t> at_most(seen.size(), kNone);
    std::size_t r = reads.size();
    std::int64_t bound = kNone;
    std::int32_t of = -1;
    for (std::size_t s = seen.size(); s-- > 0;) {
      const std::int32_t t = statements_.txn[s];
      if (t != of) bound = kNone;
      of = t;
      for (; r > 0 && p_.read_op[reads[r - 1]] >= statements_.start[s]; --r)
        if (p_.read_txn[reads[r - 1]] == t) bound = std::min(bound, most[idx(reads[r - 1])]);
      at_most[s] = bound;
    }
    r = 0, bound = 0, of = -1;
    for (std::size_t s = 0; s < seen.size(); ++s) {
      const std::int32_t t = statements_.txn[s];
      if (t != of) bound = 0;
      of = t;
      for (; r < reads.size() && p_.read_op[reads[r]] < statements_.end[s]; ++r)
        if (p_.read_txn[reads[r]] == t) bound = std::max(bound, least[idx(reads[r])]);
      if (seen[s] >= 0) seen[s] = std::max(bound, std::min(at_most[s], seen[s]));
    }
  }

  // Returns true if each session is complete before the next one begins. The order of lines then
  // does not show how sessions overlap.
  bool sessions_are_separate() const {
    std::vector<std::uint8_t> seen(idx(p_.sessions), 0);
    for (std::int32_t t = 0; t < p_.n; ++t) {
      if (t > 0 && p_.session[t] != p_.session[t - 1] && seen[idx(p_.session[t])] != 0) return false;
      seen[idx(p_.session[t])] = 1;
    }
    return p_.sessions > 1;
  }

  // Returns for each transaction the share of its session that precedes it.
  std::vector<std::int64_t> shares() const {
    std::vector<std::int64_t> size(idx(p_.sessions), 0), before(idx(p_.sessions), 0), share(idx(p_.n));
    for (std::int32_t t = 0; t < p_.n; ++t) ++size[idx(p_.session[t])];
    for (std::int32_t t = 0; t < p_.n; ++t) {
      const std::size_t session = idx(p_.session[t]);
      share[idx(t)] = (before[session]++ << 32) / size[session];
    }
    return share;
  }

  std::vector<std::int32_t> priorities() const {
    std::vector<std::int32_t> by_time(idx(nodes_));
    std::iota(by_time.begin(), by_time.end(), 0);
    if (!p_.has_time && sessions_are_separate()) {
      const std::vector<std::int64_t> when = shares();
      // The nodes of moments have no share: they follow.
      std::stable_sort(by_time.begin(), by_time.begin() + own(), [&](std::int32_t v, std::int32_t w) {
        return at_once() ? when[idx(v)] < when[idx(w)] : when[idx(v / 2)] < when[idx(w / 2)];
      });
    } else if (p_.has_time) {
      const auto begin = [&](std::int32_t t) { return p_.begin[t]; };
      const auto end = [&](std::int32_t t) { return p_.end[t] == kTimeUnknownEnd ? p_.begin[t] : p_.end[t]; };
      std::vector<std::int64_t> when(idx(nodes_));
      for (std::int32_t v = 0; v < nodes_; ++v)
        when[idx(v)] = v >= own()      ? when_[idx(v - own())]
                       : !at_once() ? (v % 2 == 0 ? begin(v / 2) : end(v / 2))
                                       : std::midpoint(begin(v), end(v));
      std::ranges::stable_sort(by_time, {}, [&](std::int32_t v) { return when[idx(v)]; });
    }
    std::vector<std::int32_t> priority(idx(nodes_));
    for (std::int32_t i = 0; i < nodes_; ++i) priority[idx(by_time[idx(i)])] = i;
    return priority;
  }

  const Problem& p_;
  const PredicateReads statements_;
  std::span<const std::int32_t> source_;
  std::span<const std::int64_t> order_start_;
  std::span<const std::int32_t> order_txn_;
  const KeptRelations kept_;
  Budget& budget_;
  std::int32_t nodes_ = 0;
  std::vector<std::uint8_t> included_;
  Adjacency reads_;                  // by key
  std::vector<std::uint8_t> fixed_;  // per position in the orders
  std::vector<std::uint8_t> free_;   // per read: 1 if its source is chosen by the order
  std::vector<std::int64_t> place_, next_;
  std::vector<std::int32_t> rank_;
  std::vector<std::int64_t> when_;  // per node after the transaction nodes
  std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
};

}  // namespace

std::optional<CommitOrder> commit_order(const Problem& problem, const PredicateReads& statements,
                                            std::span<const std::int32_t> source,
                                            std::span<const std::int64_t> order_start,
                                            std::span<const std::int32_t> order_txn, KeptRelations kept,
                                            Budget& budget) {
  return CommitGraph(problem, statements, source, order_start, order_txn, kept, budget).order();
}

}  // namespace isolang
