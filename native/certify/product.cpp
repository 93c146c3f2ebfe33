// Nodes are pairs (transaction, state) and, for checks by statement, also (statement, state). T0 is left out: no edge
// of any relation leads to it, so no cycle passes through it.
//
// A relation contains all its pairs, not only the immediate ones. Where the machine can repeat a step in place, the
// immediate pairs reach the same nodes and are used instead. Elsewhere, "T to every later S of a sequence" is one edge
// into a tail chain, whose i-th node leads to the i-th member and to the next node of the chain. "All but the reader's
// own write" is two ranges of a segment tree.
#include "certify/product.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "certify/moments.hpp"
#include "core/index.hpp"
#include "core/prefetch.hpp"

namespace isolang::certify {
namespace {

using Node = std::int32_t;
using Step = std::pair<int, int>;
constexpr Relation kReadsFrom[] = {Relation::wr, Relation::iwr, Relation::pwr};
constexpr Relation kOverwriting[] = {Relation::rw, Relation::irw, Relation::prw, Relation::mere_irw};
constexpr double kSeparateVisitLimit = 4e8;  // edge visits, if every transaction starts a separate search

class Product {
 public:
  Product(const History& history, const Choice& choice, const Machine& machine, Budget& budget,
          const Snapshots* snapshots = nullptr)
      : h_(history), c_(choice), apart_(choice.apart), m_(machine), budget_(budget), snapshots_(snapshots) {
    share_steps_of_statements();
    sort_members();
    lay_out();
    build();
  }

  bool breaks() { return m_.looped ? start_on_cycle() : returns(); }
  ProductGraph graph() && { return {nodes_, std::move(edge_start_), std::move(edge_to_)}; }

 private:
  const History& h_;
  const Choice& c_;
  const Statements& apart_;
  Machine m_;
  std::vector<Step> inside_;  // at each statement, an edge from the first state to the second
  Budget& budget_;
  const Snapshots* const snapshots_;
  // For each step of wr or pwr, and for each step of rw or prw: its chain over the commit order.
  std::vector<std::pair<Step, Node>> into_snapshots_, out_of_snapshots_;
  std::vector<std::int32_t> by_session_;  // the included transactions, session by session
  std::vector<std::int32_t> by_begin_;    // the included transactions, sorted by begin
  std::vector<std::int64_t> begins_;      // the begins of by_begin_, ascending
  // Included transactions by the time when their COMMIT was sent: in `sent_` all of them, in `sent_of_key_` the writers
  // of each key.
  struct Sent {
    std::int64_t time;
    std::int32_t txn;
  };
  std::vector<Sent> sent_, sent_of_key_;
  std::vector<std::int64_t> commit_sent_;     // for each transaction; empty if unused
  // For each position in the version orders: when its writer's first write of the key was answered; empty if unused.
  std::vector<std::int64_t> write_answered_;
  std::vector<Sent> asked_;  // statements by sending time
  std::vector<std::int64_t> sent_start_;  // for each key, the index of its first writer in sent_of_key_
  // For each step between transactions that access the same key: the transactions where the step may end, and their
  // chain. The heads are sorted by key (for so, by session), and then by the time that the relation compares.
  struct Head {
    std::int32_t key, session;
    std::int64_t time;
    std::int32_t txn;
  };
  struct OfKey {
    Filtered part;
    Step step;
    int name;
    std::vector<Head> heads;
    Node chain = -1;
  };
  std::vector<OfKey> of_key_;
  // The pairs of a step that compares the times of transactions within one group, as one chain for each group. If
  // clocks may be wrong, the same structure contains the pairs within each session by the session's own clock. If
  // `before_own`, a transaction may precede its own COMMIT, but the two do not form a pair.
  struct Timeline {
    Step step;
    bool before_own;
    std::vector<Head> tails, heads;
    Node chain = -1;
  };
  std::vector<Timeline> timelines_;
  std::vector<Node> session_tail_, time_tail_, key_tail_, sent_tail_, lock_tail_,
      asked_tail_, next_tail_, write_tail_, key_tree_;  // for each state: the first auxiliary node, or -1
  std::int64_t nodes_ = 0;
  std::vector<std::int64_t> edge_start_;
  std::vector<Node> edge_to_;

  bool finished(std::int32_t t) const {
    return h_.txn_status[t] == static_cast<std::uint8_t>(Status::committed);
  }
  std::int32_t session(std::int32_t place) const {
    return h_.txn_session[apart_.transaction(place)];
  }
  Node node(std::int32_t t, int state) const { return static_cast<Node>(t) * m_.states + state; }

  // If every step that leaves a statement in one state also leaves it in another state, then the second state gets an
  // edge to the first, and keeps only its other steps. This is not done if steps lead to writes.
  void share_steps_of_statements() {
    if (apart_.count() == 0 || !m_.of(Relation::to_write).empty()) return;
    constexpr Relation kLeaving[] = {Relation::rw, Relation::irw, Relation::prw, Relation::mere_irw, Relation::own_commit,
                                     Relation::committed_after, Relation::answered_before, Relation::po};
    std::vector<std::set<std::pair<Relation, int>>> out(idx(m_.states));
    for (const Relation r : kLeaving)
      for (const auto& [q, to] : m_.of(r)) out[idx(q)].emplace(r, to);
    const auto ends = [&](int q) { return std::ranges::find(m_.accepting, q) != m_.accepting.end(); };
    for (int p = 1; p < m_.states; ++p) {
      int best = -1;
      for (int q = 1; q < m_.states; ++q)
        // mutant: checker-shares-too-much
        if (const auto &all = out[idx(p)], &some = out[idx(q)];
            p != q && !some.empty() && (ends(p) || !ends(q)) && std::ranges::includes(all, some) &&
            (some.size() < all.size() || ends(p) != ends(q) || q < p) &&
            (best < 0 || some.size() > out[idx(best)].size()))
          best = q;
      if (best < 0) continue;
      inside_.emplace_back(p, best);
      for (const Relation r : kLeaving) {
        auto& steps = m_.steps[idx(r)];
        auto& only = m_.only[idx(r)];
        for (std::size_t i = steps.size(); i-- > 0;) {
          if (steps[i].first != p || !out[idx(best)].contains({r, steps[i].second})) continue;
          steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
          if (!only.empty()) only.erase(only.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
  }

  // Returns whether some step leads to a transaction in that state.
  bool is_entered(int q) const {
    constexpr Relation kToStatements[] = {Relation::wr, Relation::iwr, Relation::pwr, Relation::committed_before,
                                          Relation::answered_before, Relation::po, Relation::to_write};
    for (int r = 0; r < kRelations; ++r)
      if (std::ranges::find(kToStatements, static_cast<Relation>(r)) == std::end(kToStatements) &&
          std::ranges::find(m_.steps[idx(r)], q, &Step::second) != m_.steps[idx(r)].end())
        return true;
    return false;
  }

  bool compares_commits() const {
    for (const Relation r : {Relation::done, Relation::late, Relation::locked, Relation::committed_after})
      if (!m_.of(r).empty()) return true;
    return !of_key_.empty();
  }

  // Returns whether the name selects the key. `name` is the number of a name of keys, or negative
  // for no name.
  bool has(int name, std::int64_t key) const {
    // mutant: checker-step-of-all-keys
    return name < 0 || m_.selections->key(idx(name), key);
  }

  std::vector<std::int32_t> passing(Relation test, int name) const {
    std::vector<char> passes(c_.included.size(), 0);
    if (test == Relation::label || test == Relation::level) {
      for (const std::int32_t t : by_session_)
        // mutant: checker-everybody-bears-it
        passes[t] = m_.selections->transaction(idx(name), h_, t);
    } else if (test == Relation::writes) {
      for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key)
        for (std::int64_t i = c_.key_start[key]; has(name, static_cast<std::int64_t>(key)) && i < c_.key_start[key + 1]; ++i)
          passes[c_.order[i]] = 1;
    } else {
      for (const ExternalRead& r : c_.reads)
        if (has(name, r.key)) passes[r.reader] = 1;
    }
    std::vector<std::int32_t> result;
    for (const std::int32_t t : by_session_)
      if (passes[t]) result.push_back(t);
    return result;
  }

  void sort_members() {
    const std::int32_t n = h_.transactions();
    std::vector<std::int64_t> start(idx(h_.sessions) + 1, 0);
    std::int64_t members = 0;
    for (std::int32_t t = 0; t < n; ++t)
      if (c_.included[t]) ++start[idx(h_.txn_session[t]) + 1], ++members;
    std::partial_sum(start.begin(), start.end(), start.begin());
    by_session_.resize(idx(members));
    for (std::int32_t t = 0; t < n; ++t)
      if (c_.included[t]) by_session_[start[h_.txn_session[t]]++] = t;
    find_steps_of_key();
    if (compares_commits()) {
      const Moments moments(h_);
      for (std::int32_t t = 0; t < n; ++t) commit_sent_.push_back(moments.commit_sent(t));
    }
    sort_by_commit();
    sort_by_key();
    lay_timelines();
    if (m_.of(Relation::rt).empty()) return;
    by_begin_ = by_session_;
    std::sort(by_begin_.begin(), by_begin_.end(), [&](std::int32_t a, std::int32_t b) {
      return std::pair(h_.txn_begin[a], a) < std::pair(h_.txn_begin[b], b);
    });
    for (const std::int32_t t : by_begin_) begins_.push_back(h_.txn_begin[t]);
  }

  bool has_own_clocks() const { return !h_.slack.empty() || !h_.txn_own_end.empty(); }
  void lay_timelines() {
    for (const Step& s : m_.of(Relation::group_rt)) {
      Timeline& line = timelines_.emplace_back(Timeline{s, false, {}, {}});
      for (const std::int32_t t : by_session_)
        // mutant: checker-groups-as-one
        if (const std::int32_t group = h_.txn_group[t]; group != kNil) {
          if (finished(t)) line.tails.push_back({group, 0, h_.txn_end[t], t});
          line.heads.push_back({group, 0, h_.txn_begin[t], t});
        }
    }
    // mutant: checker-no-own-clocks
    if (has_own_clocks()) lay_own_clocks();
    for (Timeline& line : timelines_)
      std::sort(line.heads.begin(), line.heads.end(), [](const Head& a, const Head& b) {
        return std::tie(a.key, a.session, a.time, a.txn) <
               std::tie(b.key, b.session, b.time, b.txn);
      });
  }

  void lay_own_clocks() {
    const Moments moments(h_);
    const auto open = [&](const Step& s, bool before_own = false) -> Timeline& {
      return timelines_.emplace_back(Timeline{s, before_own, {}, {}});
    };
    const auto tail = [&](Timeline& own, std::int32_t key, std::int64_t time, std::int32_t place) {
      if (time != kTimeUnknownEnd) own.tails.push_back({key, session(place), time, place});
    };
    const auto head = [&](Timeline& own, std::int32_t key, std::int64_t time, std::int32_t place) {
      if (time != kTimeUnknownBegin) own.heads.push_back({key, session(place), time, place});
    };
    const auto answered = [&](Relation relation, std::int32_t t) {
      return relation == Relation::rt     ? finished(t) ? moments.own_end(t) : kTimeUnknownEnd
             : relation == Relation::done ? moments.own(moments.commit_answered(t), t)
                                          : moments.own(moments.first_answered(t), t);
    };
    const auto sent = [&](Relation relation, std::int32_t t) {
      return relation == Relation::rt ? h_.txn_begin[t] : commit_sent_[t];
    };
    for (const Relation r : {Relation::rt, Relation::done, Relation::late})
      for (const Step& s : m_.of(r)) {
        Timeline& own = open(s, r == Relation::late);
        for (const std::int32_t t : by_session_) {
          tail(own, -1, answered(r, t), t);
          head(own, -1, sent(r, t), t);
        }
      }
    for (const Step& s : m_.of(Relation::group_rt)) {
      Timeline& own = open(s);
      for (const std::int32_t t : by_session_)
        if (h_.txn_group[t] != kNil) {
          tail(own, h_.txn_group[t], answered(Relation::rt, t), t);
          head(own, h_.txn_group[t], h_.txn_begin[t], t);
        }
    }
    for (const Step& s : m_.of(Relation::locked)) {
      Timeline& own = open(s, true);
      for (const auto& [key, t] : accessing(false)) {
        tail(own, key, moments.own(moments.write_answered(t, key), t), t);
        head(own, key, commit_sent_[t], t);
      }
    }
    for (const OfKey& one : of_key_) {
      const Relation r = one.part.relation;
      if (r == Relation::so) continue;
      Timeline& own = open(one.step, r == Relation::late);
      for (const auto& [key, t] : accessing(one.part.from_reader))
        if (has(one.name, key)) tail(own, key, answered(r, t), t);
      for (const auto& [key, t] : accessing(one.part.to_reader))
        if (has(one.name, key)) head(own, key, sent(r, t), t);
    }
    for (const Relation r :
         {Relation::committed_before, Relation::answered_before, Relation::committed_after})
      for (const Step& s : m_.of(r)) {
        Timeline& own = open(s);
        for (const std::int32_t t : by_session_) {
          if (r == Relation::committed_before) tail(own, -1, answered(Relation::done, t), t);
          if (r == Relation::committed_after) head(own, -1, commit_sent_[t], t);
        }
        for (std::size_t i = 0; i < apart_.count(); ++i) {
          const std::int32_t place = apart_.place(i);
          if (r != Relation::committed_before)
            tail(own, -1, moments.own(apart_.answered[i], apart_.owner[i]), place);
          if (r != Relation::committed_after) head(own, -1, apart_.sent[i], place);
        }
      }
  }
  template <typename F>
  void by_timelines(F&& edge) {
    const auto group = [](const Head& head) { return std::pair(head.key, head.session); };
    for (const Timeline& own : timelines_) {
      const std::vector<Head>& heads = own.heads;
      for (const Head& from : own.tails) {
        budget_.poll();
        auto at = std::upper_bound(
            heads.begin(), heads.end(), from, [&](const Head& a, const Head& b) {
              return std::pair(group(a), a.time) < std::pair(group(b), b.time);
            });
        const auto same = [&] { return at != heads.end() && group(*at) == group(from); };
        if (own.before_own)
          for (const std::int64_t sent = commit_sent_[from.txn];
               same() && at->time <= sent; ++at)
            if (at->txn != from.txn)
              edge(node(from.txn, own.step.first), node(at->txn, own.step.second));
        if (same())
          edge(node(from.txn, own.step.first), own.chain + static_cast<Node>(at - heads.begin()));
      }
      for (std::size_t i = 0; i < heads.size(); ++i) {
        const Node link = own.chain + static_cast<Node>(i);
        edge(link, node(heads[i].txn, own.step.second));
        if (i + 1 < heads.size() && group(heads[i]) == group(heads[i + 1])) edge(link, link + 1);
      }
    }
  }

  struct Access {
    std::int32_t key, txn;
  };
  std::vector<Access> accessing(bool readers) const {
    std::vector<Access> found;
    if (readers) {
      for (const ExternalRead& r : c_.reads) found.push_back({r.key, r.reader});
    } else {
      for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key)
        for (std::int64_t i = c_.key_start[key]; i < c_.key_start[key + 1]; ++i)
          found.push_back({static_cast<std::int32_t>(key), c_.order[i]});
    }
    return found;
  }

  void find_steps_of_key() {
    for (int relation = 0; relation < kRelations; ++relation)
      if (const auto part = filtered(relation))
        each_step(static_cast<Relation>(relation),
                  [&](const Step& s, int name) { of_key_.push_back({*part, s, name, {}}); });
  }

  void sort_by_key() {
    for (OfKey& one : of_key_) {
      for (const auto& [key, t] : accessing(one.part.to_reader)) {
        if (!has(one.name, key)) continue;
        Head head{key, 0, t, t};
        if (one.part.relation == Relation::so)
          head.session = h_.txn_session[t];
        else
          head.time = one.part.relation == Relation::rt ? h_.txn_begin[t] : commit_sent_[t];
        if (one.part.relation == Relation::so || head.time != kTimeUnknownBegin)
          one.heads.push_back(head);
      }
      std::sort(one.heads.begin(), one.heads.end(), [](const Head& a, const Head& b) {
        return std::tie(a.key, a.session, a.time, a.txn) <
               std::tie(b.key, b.session, b.time, b.txn);
      });
    }
  }

  void sort_by_commit() {
    const bool locks = !m_.of(Relation::locked).empty();
    sort_statements();
    if (m_.of(Relation::done).empty() && m_.of(Relation::late).empty() && !locks &&
        m_.of(Relation::committed_after).empty())
      return;
    const auto by_time = [](const Sent& a, const Sent& b) {
      return std::pair(a.time, a.txn) < std::pair(b.time, b.txn);
    };
    const auto add = [&](std::vector<Sent>& to, std::int32_t t) {
      if (const std::int64_t time = commit_sent_[t]; time != kTimeUnknownBegin)
        to.push_back({time, t});
    };
    for (const std::int32_t t : by_session_) add(sent_, t);
    std::sort(sent_.begin(), sent_.end(), by_time);
    if (!locks) return;
    const Moments moments(h_);
    write_answered_.resize(c_.order.size());
    for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key) {
      const auto first = static_cast<std::ptrdiff_t>(sent_of_key_.size());
      sent_start_.push_back(first);
      for (std::int64_t i = c_.key_start[key]; i < c_.key_start[key + 1]; ++i) {
        add(sent_of_key_, c_.order[i]);
        write_answered_[idx(i)] = moments.write_answered(c_.order[i], static_cast<std::int32_t>(key));
      }
      std::sort(sent_of_key_.begin() + first, sent_of_key_.end(), by_time);
    }
    sent_start_.push_back(static_cast<std::int64_t>(sent_of_key_.size()));
  }

  void sort_statements() {
    if (m_.of(Relation::committed_before).empty() && m_.of(Relation::answered_before).empty())
      return;
    for (std::size_t i = 0; i < apart_.count(); ++i)
      if (apart_.sent[i] != kTimeUnknownBegin)
        asked_.push_back({apart_.sent[i], apart_.place(i)});
    std::sort(asked_.begin(), asked_.end(), [](const Sent& a, const Sent& b) {
      return std::pair(a.time, a.txn) < std::pair(b.time, b.txn);
    });
  }

  // Returns whether silent steps lead from the end of the step back to its start, so that steps (i, i+1) also cover
  // each step (i, j) with j > i+1.
  bool repeats(const Step& s) const { return m_.silently(s.second, s.first); }
  // Returns whether steps of the version order lead from the result of one anti-dependency to all nodes that later
  // anti-dependencies of the same read reach.
  bool continues_by_ww(const Step& s, int name) const {
    for (std::size_t i = 0; i < m_.of(Relation::ww).size(); ++i) {
      const Step& w = m_.of(Relation::ww)[i];
      const int of = m_.name(Relation::ww, i);
      // mutant: checker-continues-by-other-keys
      if ((of < 0 || of == name) && m_.silently(s.second, w.first) && m_.silently(w.second, s.second) &&
          repeats(w))
        return true;
    }
    return false;
  }

  void lay_out() {
    nodes_ = static_cast<std::int64_t>(c_.places()) * m_.states;
    const auto reserve = [&](Node& first, std::size_t count) {
      if (first >= 0) return;
      if (nodes_ + static_cast<std::int64_t>(count) > std::numeric_limits<Node>::max())
        throw NotCertified{"not certified: the history is too large for this checker"};
      first = static_cast<Node>(nodes_);
      nodes_ += static_cast<std::int64_t>(count);
    };
    for (auto* firsts : {&session_tail_, &time_tail_, &key_tail_, &sent_tail_,
                         &lock_tail_, &asked_tail_, &next_tail_, &write_tail_, &key_tree_})
      firsts->assign(idx(m_.states), -1);
    if (nodes_ > std::numeric_limits<Node>::max())
      throw NotCertified{"not certified: the history is too large for this checker"};
    for (const Step& s : m_.of(Relation::so))
      if (!repeats(s)) reserve(session_tail_[s.second], by_session_.size());
    for (const Step& s : m_.of(Relation::rt)) reserve(time_tail_[s.second], by_begin_.size());
    for (const Relation r : {Relation::done, Relation::late, Relation::committed_after})
      for (const Step& s : m_.of(r)) reserve(sent_tail_[s.second], sent_.size());
    for (const Relation r : {Relation::committed_before, Relation::answered_before})
      for (const Step& s : m_.of(r)) reserve(asked_tail_[s.second], asked_.size());
    for (const Step& s : m_.of(Relation::po))
      reserve(next_tail_[s.second], apart_.count());
    for (const Step& s : m_.of(Relation::to_write)) reserve(write_tail_[s.second], c_.order.size());
    for (const Step& s : m_.of(Relation::locked))
      // mutant: checker-done-says-all
      if (!done_implies(s)) reserve(lock_tail_[s.second], sent_of_key_.size());
    for (OfKey& one : of_key_) reserve(one.chain, one.heads.size());
    for (Timeline& line : timelines_) reserve(line.chain, line.heads.size());
    for (const Step& s : m_.of(Relation::ww))
      if (!repeats(s)) reserve(key_tail_[s.second], c_.order.size());
    for (const Relation r : kOverwriting)
      each_step(r, [&](const Step& s, int name) {
        if (!continues_by_ww(s, name)) reserve(key_tree_[s.second], 2 * c_.order.size());
      });
    if (snapshots_ == nullptr) return;
    const auto chains = [&](std::initializer_list<Relation> relations, auto& steps) {
      for (const Relation r : relations)
        for (const Step& s : m_.of(r)) {
          steps.emplace_back(s, -1);
          reserve(steps.back().second, snapshots_->commits.size() + 1);
        }
    };
    // mutant: checker-no-implicit-wr
    chains({Relation::wr, Relation::pwr}, into_snapshots_);
    // mutant: checker-no-implicit-rw
    chains({Relation::rw, Relation::prw}, out_of_snapshots_);
  }

  // In the chain of wr, the i-th node represents "sees the first i transactions that commit"; in the chain of rw, it
  // represents "does not see the transactions from the i-th on". If the first transaction that a reader does not see is
  // the reader itself, its edge starts after the reader.
  template <typename F>
  void snapshots(F&& edge) {
    if (snapshots_ == nullptr) return;
    const Snapshots& s = *snapshots_;
    const auto count = static_cast<Node>(s.commits.size());
    for (const auto& [step, chain] : into_snapshots_)
      for (Node i = 0; i < count; ++i) {
        budget_.poll();
        const std::int32_t t = s.commits[i];
        edge(node(t, step.first), chain + i + 1);
        edge(chain + i, chain + i + 1);
        if (s.most[t] >= 0) edge(chain + static_cast<Node>(s.most[t]), node(t, step.second));
      }
    for (const auto& [step, chain] : out_of_snapshots_)
      for (Node i = 0; i < count; ++i) {
        budget_.poll();
        const std::int32_t t = s.commits[i];
        edge(chain + i, node(t, step.second));
        edge(chain + i, chain + i + 1);
        if (s.least[t] >= 0)
          edge(node(t, step.first), chain + static_cast<Node>(s.least[t] + (s.least[t] == s.place[t] ? 1 : 0)));
      }
  }

  void build() {
    edge_start_.assign(idx(nodes_) + 1, 0);
    each_edge([&](Node a, Node) { ++edge_start_[a + 1]; });
    std::partial_sum(edge_start_.begin(), edge_start_.end(), edge_start_.begin());
    edge_to_.resize(idx(edge_start_.back()));
    std::vector<std::int64_t> at(edge_start_.begin(), edge_start_.end() - 1);
    each_edge([&](Node a, Node b) { edge_to_[at[a]++] = b; });
  }

  template <typename F>
  void each_edge(F&& edge) {
    if (m_.looped)
      for (const std::int32_t t : by_session_)
        for (const int q : m_.accepting) edge(node(t, q), node(t, 0));
    for (const Relation test : {Relation::writes, Relation::reads, Relation::label, Relation::level})
      each_step(test, [&](const Step& s, int name) {
        for (const std::int32_t t : passing(test, name)) edge(node(t, s.first), node(t, s.second));
      });
    for (const Step& s : m_.of(Relation::so)) session_order(s, edge);
    for (const Step& s : m_.of(Relation::rt)) real_time(s, edge);
    for (const Relation r : {Relation::done, Relation::late, Relation::locked})
      for (const Step& s : m_.of(r)) before_commit(r, s, edge);
    for (const OfKey& one : of_key_) between_accesses(one, edge);
    by_timelines(edge);
    statements(edge);
    each_step(Relation::ww, [&](const Step& s, int name) { version_order(s, name, edge); });
    for (const Relation relation : kReadsFrom)
      each_step(relation, [&](const Step& s, int name) {
        each_read(relation, [&](const ExternalRead& r) {
          if (r.source >= 0 && has(name, r.key))
            edge(node(c_.order[c_.key_start[r.key] + r.source], s.first), node(r.reader, s.second));
        });
      });
    for (const Relation relation : kOverwriting)
      each_step(relation, [&](const Step& s, int name) { anti_dependencies(relation, s, name, edge); });
    snapshots(edge);
    tails(
        session_tail_, by_session_,
        [&](std::size_t i) {
          return h_.txn_session[by_session_[i]] == h_.txn_session[by_session_[i + 1]];
        },
        edge);
    tails(time_tail_, by_begin_, [](std::size_t) { return true; }, edge);
    sent_tails(sent_tail_, sent_, [](std::size_t) { return true; }, edge);
    sent_tails(asked_tail_, asked_, [](std::size_t) { return true; }, edge);
    std::size_t key = 0;
    sent_tails(
        lock_tail_, sent_of_key_,
        [&](std::size_t i) {
          if (i == 0) key = 0;
          while (idx(sent_start_[key + 1]) <= i) ++key;
          return i + 1 < idx(sent_start_[key + 1]);
        },
        edge);
    key_structures(edge);
  }

  template <typename F>
  void each_step(Relation relation, F&& visit) {
    for (std::size_t i = 0; i < m_.of(relation).size(); ++i) visit(m_.of(relation)[i], m_.name(relation, i));
  }

  // Visits the reads. In a large history, their sources are scattered in memory, so the sources' positions in the
  // version orders are prefetched.
  template <typename F>
  void each_read(Relation relation, F&& visit) {
    constexpr std::size_t kAhead = 16;
    const std::vector<ExternalRead>& reads = c_.reads;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (i + 2 * kAhead < reads.size()) prefetch(&c_.key_start[reads[i + 2 * kAhead].key]);
      if (i + kAhead < reads.size()) {
        const ExternalRead& next = reads[i + kAhead];
        prefetch(c_.order.data() + c_.key_start[next.key] + next.source + 1);
      }
      budget_.poll();
      // mutant: checker-any-read
      if (is_of(relation, reads[i].of_predicate, reads[i].own >= 0)) visit(reads[i]);
    }
  }

  template <typename Together, typename F>
  void tails(const std::vector<Node>& firsts, const std::vector<std::int32_t>& members,
             Together together, F&& edge) {
    for (int q = 0; q < m_.states; ++q) {
      const Node first = firsts[q];
      if (first < 0) continue;
      for (std::size_t i = 0; i < members.size(); ++i) {
        edge(first + static_cast<Node>(i), node(members[i], q));
        if (i + 1 < members.size() && together(i))
          edge(first + static_cast<Node>(i), first + static_cast<Node>(i) + 1);
      }
    }
  }

  template <typename F>
  void session_order(const Step& s, F&& edge) {
    // An indeterminate transaction precedes nothing, so the edges from its predecessor in the session lead past it.
    const bool immediate = repeats(s);
    for (std::size_t i = 0; i < by_session_.size(); ++i) {
      budget_.poll();
      const std::int32_t t = by_session_[i];
      if (!finished(t)) continue;
      const auto same = [&](std::size_t j) {
        return j < by_session_.size() && h_.txn_session[by_session_[j]] == h_.txn_session[t];
      };
      if (!immediate) {
        if (same(i + 1)) edge(node(t, s.first), session_tail_[s.second] + static_cast<Node>(i) + 1);
        continue;
      }
      for (std::size_t j = i + 1; same(j); ++j) {
        edge(node(t, s.first), node(by_session_[j], s.second));
        if (finished(by_session_[j])) break;
      }
    }
  }

  template <typename F>
  void real_time(const Step& s, F&& edge) {
    for (const std::int32_t t : by_session_) {
      budget_.poll();
      if (!finished(t)) continue;
      const auto later =
          std::upper_bound(begins_.begin(), begins_.end(), h_.txn_end[t]) - begins_.begin();
      if (idx(later) < begins_.size())
        edge(node(t, s.first), time_tail_[s.second] + static_cast<Node>(later));
    }
  }

  // Adds edges from the transaction to the transactions in a range of `sent` that sent COMMIT after `answered`.
  // Transactions up to its own position get separate edges (the transaction itself gets none, because it forms no
  // pair); behind that position, one edge leads into the chain. Without a chain, `done` leads to the transactions that
  // sent COMMIT after the transaction's own COMMIT was answered.
  template <typename F>
  void to_later(const Step& s, std::int32_t t, std::int64_t answered, const std::vector<Sent>& sent,
                std::size_t first, std::size_t last, Node chain, F&& edge) {
    if (answered == kTimeUnknownEnd) return;
    const auto later = [](std::int64_t time, const Sent& one) { return time < one.time; };
    auto at = std::upper_bound(sent.begin() + static_cast<std::ptrdiff_t>(first),
                               sent.begin() + static_cast<std::ptrdiff_t>(last), answered, later);
    const std::int64_t own = chain < 0 ? Moments(h_).commit_answered(t) : commit_sent_[t];
    const auto end = sent.begin() + static_cast<std::ptrdiff_t>(last);
    for (; at != end && at->time <= own; ++at)
      if (at->txn != t) edge(node(t, s.first), node(at->txn, s.second));
    if (chain >= 0 && at != end) edge(node(t, s.first), chain + static_cast<Node>(at - sent.begin()));
  }
  bool done_implies(const Step& s) const {
    return std::ranges::find(m_.of(Relation::done), s) != m_.of(Relation::done).end();
  }

  // Returns the first entry that was sent after `time`. The search starts near the result of the previous search,
  // because entries close in the history are usually close in time.
  static std::size_t first_later(const std::vector<Sent>& sent, std::int64_t time, std::size_t near) {
    std::size_t low = near, high = near;  // the entries before low are not later; those from high on are later
    for (std::size_t step = 1; low > 0 && sent[low - 1].time > time; step *= 2)
      high = low - 1, low -= std::min(low, step);
    for (std::size_t step = 1; high < sent.size() && sent[high].time <= time; step *= 2)
      low = high + 1, high += std::min(sent.size() - high, step);
    const auto at = [&](std::size_t i) { return sent.begin() + static_cast<std::ptrdiff_t>(i); };
    return idx(std::ranges::upper_bound(at(low), at(high), time, {}, &Sent::time) - sent.begin());
  }

  // Adds the edges of statements: from COMMIT, and from a statement, to each statement that was sent later; from a
  // statement to each COMMIT that was sent after the statement was answered, and to its own COMMIT.
  template <typename F>
  void statements(F&& edge) {
    if (m_.of(Relation::own_commit).empty() && m_.of(Relation::po).empty()) return;
    const Moments moments(h_);
    for (const Step& s : m_.of(Relation::to_write)) to_writes(s, edge);
    std::size_t near = 0, near_commits = 0;
    const auto lead = [&](const Step& s, std::int32_t place, std::int64_t answered,
                          const std::vector<Sent>& sent, const std::vector<Node>& chain, std::size_t& from) {
      if (answered == kTimeUnknownEnd) return;
      from = first_later(sent, answered, from);
      if (from < sent.size()) edge(node(place, s.first), chain[s.second] + static_cast<Node>(from));
    };
    std::vector<int> entered;
    for (int q = 1; q < m_.states; ++q)
      if (is_entered(q)) entered.push_back(q);
    for (const Step& s : m_.of(Relation::committed_before))
      for (const std::int32_t t : by_session_)
        lead(s, t, moments.commit_answered(t), asked_, asked_tail_, near);
    for (std::size_t i = 0; i < apart_.count(); ++i) {
      budget_.poll();
      const std::int32_t place = apart_.place(i), owner = apart_.owner[i];
      for (const Step& s : m_.of(Relation::answered_before))
        lead(s, place, apart_.answered[i], asked_, asked_tail_, near);
      const bool followed = i + 1 < apart_.count() && apart_.owner[i + 1] == owner;
      // mutant: checker-one-of-several
      for (const Step& s : m_.of(Relation::po))
        if (apart_.several[i] != 0 && s.first != s.second) edge(node(place, s.first), node(place, s.second));
      for (const Step& s : m_.of(Relation::po))
        if (followed)
          edge(node(place, s.first), next_tail_[s.second] + static_cast<Node>(i) + 1);
      for (int q = 0; q < m_.states; ++q) {
        if (next_tail_[q] < 0) continue;
        const Node link = next_tail_[q] + static_cast<Node>(i);
        edge(link, node(place, q));
        // mutant: checker-later-statements
        if (followed) edge(link, link + 1);
      }
      for (const Step& s : m_.of(Relation::committed_after))
        lead(s, place, apart_.answered[i], sent_, sent_tail_, near_commits);
      // An edge that leads to a transaction as a reader continues to each of its statements.
      // mutant: checker-no-statement-of-reader
      for (const int q : entered) edge(node(owner, q), node(place, q));
      // mutant: checker-shares-nothing
      for (const auto& [q, r] : inside_) edge(node(place, q), node(place, r));
      for (const Step& s : m_.of(Relation::own_commit))
        edge(node(place, s.first), node(owner, s.second));
    }
  }

  // Adds edges to each later writer of a key, and from there by po to the statements after its write.
  template <typename F>
  void to_writes(const Step& s, F&& edge) {
    const Node chain = write_tail_[s.second];
    for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key)
      for (std::int64_t i = c_.key_start[key]; i < c_.key_start[key + 1]; ++i) {
        budget_.poll();
        const Node link = chain + static_cast<Node>(i);
        if (i + 1 < c_.key_start[key + 1]) {
          edge(node(c_.order[i], s.first), link + 1);
          edge(link, link + 1);
        }
        if (const std::int32_t behind = apart_.behind[i]; behind >= 0)
          for (const auto& [q, r] : m_.of(Relation::po))
            if (q == s.second) edge(link, next_tail_[r] + behind);
      }
  }

  template <typename F>
  void before_commit(Relation relation, const Step& s, F&& edge) {
    const Moments moments(h_);
    if (relation != Relation::locked) {
      for (const std::int32_t t : by_session_) {
        budget_.poll();
        const std::int64_t answered =
            relation == Relation::done ? moments.commit_answered(t) : moments.first_answered(t);
        to_later(s, t, answered, sent_, 0, sent_.size(), sent_tail_[s.second], edge);
      }
      return;
    }
    for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key)
      for (std::int64_t i = c_.key_start[key]; i < c_.key_start[key + 1]; ++i) {
        budget_.poll();
        const std::int32_t t = c_.order[i];
        to_later(s, t, write_answered_[idx(i)], sent_of_key_, idx(sent_start_[key]),
                 idx(sent_start_[key + 1]), done_implies(s) ? -1 : lock_tail_[s.second], edge);
      }
  }

  template <typename F>
  void between_accesses(const OfKey& one, F&& edge) {
    const Moments moments(h_);
    const auto& heads = one.heads;
    for (const auto& [key, t] : accessing(one.part.from_reader)) {
      budget_.poll();
      const Relation relation = one.part.relation;
      if (!finished(t)) continue;
      const Head from{key, relation == Relation::so ? h_.txn_session[t] : 0,
                      relation == Relation::so     ? t
                      : relation == Relation::rt   ? h_.txn_end[t]
                      : relation == Relation::done ? moments.commit_answered(t)
                                                   : moments.first_answered(t),
                      t};
      if (relation != Relation::so && from.time == kTimeUnknownEnd) continue;
      const auto group = [](const Head& head) { return std::pair(head.key, head.session); };
      auto at = std::upper_bound(heads.begin(), heads.end(), from, [&](const Head& a, const Head& b) {
        return std::pair(group(a), a.time) < std::pair(group(b), b.time);
      });
      const auto same = [&] { return at != heads.end() && group(*at) == group(from); };
      // A transaction precedes the sending of its own COMMIT, but the two do not form a pair. Each transaction up to
      // that position therefore gets a separate edge.
      if (relation == Relation::late)
        for (const std::int64_t own = commit_sent_[t]; same() && at->time <= own; ++at)
          if (at->txn != t) edge(node(t, one.step.first), node(at->txn, one.step.second));
      if (same()) edge(node(t, one.step.first), one.chain + static_cast<Node>(at - heads.begin()));
    }
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const Node link = one.chain + static_cast<Node>(i);
      edge(link, node(heads[i].txn, one.step.second));
      if (i + 1 < heads.size() && heads[i].key == heads[i + 1].key &&
          heads[i].session == heads[i + 1].session)
        edge(link, link + 1);
    }
  }

  template <typename Together, typename F>
  void sent_tails(const std::vector<Node>& firsts, const std::vector<Sent>& sent, Together together,
                  F&& edge) {
    for (int q = 0; q < m_.states; ++q) {
      const Node first = firsts[q];
      if (first < 0) continue;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        edge(first + static_cast<Node>(i), node(sent[i].txn, q));
        if (together(i) && i + 1 < sent.size())
          edge(first + static_cast<Node>(i), first + static_cast<Node>(i) + 1);
      }
    }
  }

  template <typename F>
  void version_order(const Step& s, int name, F&& edge) {
    const bool immediate = repeats(s);
    for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key)
      for (std::int64_t i = c_.key_start[key];
           has(name, static_cast<std::int64_t>(key)) && i + 1 < c_.key_start[key + 1]; ++i) {
        budget_.poll();
        edge(node(c_.order[i], s.first), immediate
                                             ? node(c_.order[i + 1], s.second)
                                             : key_tail_[s.second] + static_cast<Node>(i) + 1);
      }
  }

  template <typename F>
  void anti_dependencies(Relation relation, const Step& s, int name, F&& edge) {
    const bool immediate = continues_by_ww(s, name);
    each_read(relation, [&](const ExternalRead& r) {
      if (!has(name, r.key)) return;
      const std::int64_t start = c_.key_start[r.key];
      const std::int64_t size = c_.key_start[idx(r.key) + 1] - start;
      const std::int64_t later = r.source + 1;
      if (immediate) {
        // rw excludes the identity: the next version after the source is by another writer, from which ww leads on, or
        // by the reader itself.
        const std::int64_t next = later == r.own ? later + 1 : later;
        if (next < size) edge(node(r.reader, s.first), node(c_.order[start + next], s.second));
        return;
      }
      const Node tree = key_tree_[s.second] + static_cast<Node>(2 * start);
      const auto range = [&](std::int64_t low, std::int64_t high) {
        for (low += size, high += size; low < high; low /= 2, high /= 2) {
          if (low & 1) edge(node(r.reader, s.first), tree + static_cast<Node>(low++));
          if (high & 1) edge(node(r.reader, s.first), tree + static_cast<Node>(--high));
        }
      };
      if (r.own >= later) {
        range(later, r.own);
        range(r.own + 1, size);
      } else {
        range(later, size);
      }
    });
  }

  // For each key: the tail chain of ww, and the segment tree of rw (node 1 is the root, the leaves are at `size` and
  // after).
  template <typename F>
  void key_structures(F&& edge) {
    for (int q = 0; q < m_.states; ++q) {
      const Node chain = key_tail_[q], tree = key_tree_[q];
      if (chain < 0 && tree < 0) continue;
      for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key) {
        const std::int64_t start = c_.key_start[key], size = c_.key_start[key + 1] - start;
        for (std::int64_t i = 0; i < size; ++i) {
          const Node target = node(c_.order[start + i], q);
          if (chain >= 0) {
            edge(chain + static_cast<Node>(start + i), target);
            if (i + 1 < size)
              edge(chain + static_cast<Node>(start + i), chain + static_cast<Node>(start + i) + 1);
          }
          if (tree >= 0) {
            const Node base = tree + static_cast<Node>(2 * start);
            edge(base + static_cast<Node>(size + i), target);
            if (i >= 1) {
              edge(base + static_cast<Node>(i), base + static_cast<Node>(2 * i));
              edge(base + static_cast<Node>(i), base + static_cast<Node>(2 * i + 1));
            }
          }
        }
      }
    }
  }

  // SOUND BECAUSE a word begins at a start, and every pass through a start ends one word and begins
  // the next: a closed walk through a start is a repetition of words, and a cycle that avoids all
  // starts completes none.
  bool start_on_cycle() {
    std::vector<std::int32_t> incoming(idx(nodes_), 0);
    for (const Node v : edge_to_) ++incoming[v];
    std::vector<Node> work;
    std::int64_t left = nodes_;
    for (Node v = 0; v < nodes_; ++v)
      if (incoming[v] == 0) work.push_back(v);
    while (!work.empty()) {  // Kahn 1962
      budget_.poll();
      const Node v = work.back();
      work.pop_back();
      --left;
      for (std::int64_t e = edge_start_[v]; e < edge_start_[v + 1]; ++e)
        if (--incoming[edge_to_[e]] == 0) work.push_back(edge_to_[e]);
    }
    return left > 0 && start_in_component(incoming);
  }

  // Returns whether some start is in a cyclic strongly connected component (Tarjan 1972) of the remaining nodes.
  bool start_in_component(const std::vector<std::int32_t>& left) {
    constexpr Node kUnseen = -1, kClosed = std::numeric_limits<Node>::max();
    std::vector<Node> number(idx(nodes_), kUnseen), low(idx(nodes_), 0), stack;
    std::vector<std::pair<Node, std::int64_t>> path;
    Node count = 0;
    const auto open = [&](Node v) {
      number[v] = low[v] = count++;
      stack.push_back(v);
      path.emplace_back(v, edge_start_[v]);
    };
    for (Node root = 0; root < nodes_; ++root) {
      if (left[root] <= 0 || number[root] != kUnseen) continue;
      open(root);
      while (!path.empty()) {
        budget_.poll();
        auto& [v, e] = path.back();
        if (e < edge_start_[v + 1]) {
          const Node w = edge_to_[e++];
          if (w == v && is_start(v)) return true;
          if (number[w] == kUnseen) {
            open(w);
          } else if (number[w] != kClosed) {
            low[v] = std::min(low[v], number[w]);
          }
          continue;
        }
        const Node done = v;
        path.pop_back();
        if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[done]);
        if (low[done] != number[done]) continue;
        bool start = false;
        const bool several = stack.back() != done;
        for (Node w = -1; w != done;) {
          w = stack.back();
          stack.pop_back();
          number[w] = kClosed;
          start |= is_start(w);
        }
        if (several && start) return true;
      }
    }
    return false;
  }

  bool is_start(Node v) const {
    return v < static_cast<std::int64_t>(c_.places()) * m_.states && v % m_.states == 0;
  }

  // For a check whose words may not be repeated: returns whether some transaction reaches itself by
  // one word.
  bool returns() {
    if (static_cast<double>(edge_to_.size()) * static_cast<double>(by_session_.size()) >
        kSeparateVisitLimit)
      throw NotCertified{
          "not certified: irreflexive over an expression whose words do not compose, on a large "
          "history"};
    std::vector<std::int32_t> seen(idx(nodes_), -1);
    std::vector<Node> work;
    for (const std::int32_t t : by_session_) {
      work.assign(1, node(t, 0));
      while (!work.empty()) {
        budget_.poll();
        const Node v = work.back();
        work.pop_back();
        for (std::int64_t e = edge_start_[v]; e < edge_start_[v + 1]; ++e) {
          const Node w = edge_to_[e];
          if (seen[w] == t) continue;
          seen[w] = t;
          work.push_back(w);
        }
      }
      for (const int q : m_.accepting)
        if (seen[node(t, q)] == t) return true;
    }
    return false;
  }
};

}  // namespace

ProductGraph product(const History& history, const Choice& choice, const Machine& machine,
                     Budget& budget) {
  return Product(history, choice, machine, budget).graph();
}

bool breaks(const History& history, const Choice& choice, const Machine& machine, Budget& budget,
            const Snapshots* snapshots) {
  return Product(history, choice, machine, budget, snapshots).breaks();
}

}  // namespace isolang::certify
