// Comparing the order with what follows from it: which choices the search must decide next.
//
// Where pruning has settled the order of a key's writers and the source of a read, all their edges are known, and go up
// in every order. What else follows from the place of a key's writers, or of a reader and the writers of its key, can
// only change when one of them moves in the order, or the search takes a choice about the read.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "core/prefetch.hpp"
#include "engine/likely_times.hpp"
#include "engine/search.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::size_t kFewer = 3;  // times fewer choices wanted than in the round before
constexpr std::size_t kPart = 4000;  // writers, or reads: long enough for a thread to pay
constexpr std::size_t kMuch = 4;   // transactions for a choice that the first order contradicts
constexpr std::size_t kAhead = 8;  // reads, whose sources are fetched
constexpr std::size_t kMostSources = 8;  // of one read

}  // namespace

// The latest candidate whose wr edges go up.
std::int32_t Search::likely_source(std::int32_t r) const {
  std::int32_t best = -1;
  for (const std::size_t i : p_.candidates(r)) {
    if (!pruner_.alive[i]) continue;
    const std::int32_t w = p_.candidate[i];
    if (source_variable_[i] >= 0 && sat_.value(Lit::positive(source_variable_[i])) < 0) continue;
    if (!goes_up(r, w)) continue;
    if (best < 0 || !graph_.uses_orders || rank(graph_.order_node(w)) > rank(graph_.order_node(best))) best = w;
  }
  return best;
}

std::int32_t Search::current_source(std::int32_t r) const {
  if (pruner_.source[idx(r)] >= 0) return pruner_.source[idx(r)];
  if (!active_read_[idx(r)]) return likely_source(r);
  for (const std::size_t i : p_.candidates(r))
    if (source_variable_[i] >= 0 && sat_.value(Lit::positive(source_variable_[i])) > 0) return p_.candidate[i];
  return -1;  // only if its transaction is out
}

// What has moved since the last inspection.
void Search::note_moved() {
  for (const Node v : order_.moved) {
    const std::int32_t t = graph_.transaction_of(v);
    if (t >= 0) {
      if (std::exchange(stale_txn_[idx(t)], std::uint8_t{1}) != 0) continue;  // by another node
      for (const std::int32_t w : pruner_.writers_of(t)) stale_key_[idx(pruner_.key_of(w))] = 1;
    } else if (const std::int32_t w = graph_.writer_of(v); w >= 0) {
      stale_key_[idx(pruner_.key_of(w))] = 1;
    }
  }
  order_.forget_moved();
}

void Search::sort_writers(std::int32_t key) {
  const std::int32_t first = p_.key_start[idx(key)], last = p_.key_start[idx(key) + 1];
  const auto here = [&](std::int32_t writer) { return rank(graph_.order_node(writer)); };
  const auto begin = writers_.begin() + first, end = writers_.begin() + last;
  if (!std::ranges::is_sorted(begin, end, {}, here)) std::ranges::sort(begin, end, {}, here);
  for (std::int32_t i = first; i < last; ++i) place_[idx(writers_[idx(i)])] = i;
  if (read_key_[idx(key)] == 0) return;
  std::size_t step = 0;
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, target] : graph_.automata[c].of(Relation::rw)) {
      std::int32_t* const lowest = lowest_.data() + step++ * writers_.size();
      std::int32_t least = std::numeric_limits<std::int32_t>::max();
      for (std::int32_t i = last - 1; i >= first; --i) {
        least = std::min(least, rank(graph_.node(c, p_.writer_txn[idx(writers_[idx(i)])], target)));
        lowest[i] = least;
      }
    }
}

// Every ww edge of this key's order that goes down: its pair must be decided.
void Search::inspect_key(std::int32_t key, Wants& wants) {
  const std::int32_t first = p_.key_start[idx(key)], last = p_.key_start[idx(key) + 1];
  for (std::size_t c = 0; c < graph_.automata.size(); ++c)
    for (const auto& [q, r] : graph_.automata[c].of(Relation::ww)) {
      std::int32_t highest = -1;
      for (std::int32_t i = first; i < last; ++i) {
        const std::int32_t w = writers_[idx(i)], txn = p_.writer_txn[idx(w)];
        const std::int32_t here = rank(graph_.node(c, txn, r));
        if (highest >= here)
          for (std::int32_t j = first; j < i; ++j)
            if (rank(graph_.node(c, p_.writer_txn[idx(writers_[idx(j)])], q)) >= here)
              wants.orders.push_back({writers_[idx(j)], w, -1});
        highest = std::max(highest, rank(graph_.node(c, txn, q)));
      }
    }
}

bool Search::goes_up(std::int32_t r, std::int32_t a) const {
  bool up = true;
  graph_.wr_edges(r, a, [&](const Edge& e) { up = up && rank(e.from) < rank(e.to); });
  return up;
}

// The place of the first writer from `i` on that a read of `a` must not have missed, but did: an rw edge goes down. The
// end of the key's writers if there is none.
std::int32_t Search::next_missed(std::int32_t r, std::int32_t a, std::int32_t i) const {
  const std::int32_t reader = p_.read_txn[idx(r)], last = p_.key_start[idx(p_.read_key[idx(r)]) + 1];
  const std::int32_t own = pruner_.own_writer[idx(r)] < 0 ? -1 : place_[idx(pruner_.own_writer[idx(r)])];
  const auto up = [&] {
    bool every = true;
    graph_.rw_edges(r, a, writers_[idx(i)], [&](const Edge& e) { every = every && rank(e.from) < rank(e.to); });
    return every;
  };
  const auto all_up_from_here = [&] {
    std::size_t step = 0;
    bool every = true;
    for (std::size_t c = 0; c < graph_.automata.size(); ++c)
      for (const auto& [q, target] : graph_.automata[c].of(Relation::rw))
        every = every && rank(graph_.node(c, reader, q)) < lowest_[step++ * writers_.size() + idx(i)];
    return every;
  };
  for (; i < last; ++i) {
    if (i > own && all_up_from_here()) return last;
    if (!up()) return i;
  }
  return last;
}

// Every edge of this read that goes down, given its source: the read, or else the pair of writers, must be decided.
void Search::inspect_read(std::int32_t r, Wants& wants) {
  const std::int32_t before = std::exchange(source_[idx(r)], -1), reader = p_.read_txn[idx(r)];
  if (!certain(reader)) {
    const std::int32_t in = in_variable_[idx(reader)];
    if (in < 0 || sat_.value(Lit::positive(in)) <= 0) return;
  }
  const bool decided = pruner_.source[idx(r)] >= 0 || active_read_[idx(r)];
  const std::int32_t last = p_.key_start[idx(p_.read_key[idx(r)]) + 1];
  const auto first_missed = [&](std::int32_t a) {
    return graph_.uses_orders ? next_missed(r, a, place_[idx(a)] + 1) : last;
  };
  if (!decided && before >= 0 && goes_up(r, before) && first_missed(before) == last) {
    source_[idx(r)] = before;  // still does
    return;
  }
  const std::int32_t a = source_[idx(r)] = current_source(r);
  if (a < 0) {
    wants.reads.push_back(r);
    return;
  }
  for (std::int32_t i = first_missed(a); i < last; i = next_missed(r, a, i + 1)) {
    if (!decided) {
      wants.reads.push_back(r);
      return;
    }
    wants.orders.push_back({a, writers_[idx(i)], r});
  }
}

// Some of those that it may have.
template <typename Visit>
void Search::each_source(std::int32_t r, Visit visit) const {
  if (pruner_.source[idx(r)] >= 0) return visit(pruner_.source[idx(r)]);
  std::size_t left = kMostSources;
  for (const std::size_t i : p_.candidates(r)) {
    if (left-- == 0) return;
    visit(p_.candidate[i]);
  }
}

// What will be looked at lies all over a large history, and one thing says where the next one is: so it is fetched in
// steps, of keys and reads to come, the next one first.
void Search::fetch_key(std::span<const std::int32_t> keys) const {
  if (keys.size() < 2 || graph_.nodes() < kFarApart) return;
  for (std::int32_t w = p_.key_start[idx(keys[1])]; w < p_.key_start[idx(keys[1]) + 1]; ++w)
    order_.prefetch_rank(graph_.order_node(w));
}

void Search::fetch_read(std::span<const std::int32_t> reads) const {
  if (graph_.nodes() < kFarApart || !graph_.uses_orders) return;
  if (reads.size() > 2 * kAhead)
    each_source(reads[2 * kAhead], [&](std::int32_t w) {
      prefetch(p_.writer_txn.data() + w);
      prefetch(place_.data() + w);
    });
  if (reads.size() > kAhead)
    each_source(reads[kAhead], [&](std::int32_t w) {
      order_.prefetch_rank(graph_.order_node(w));
      const std::size_t next = idx(place_[idx(w)]) + 1;
      prefetch(writers_.data() + next);
      if (next < lowest_.size()) prefetch(lowest_.data() + next);
    });
}

// In parts, by several threads: each item is looked at by itself, and what is wanted is put together in their order.
template <typename WeightOf, typename Fetch, typename Look>
void Search::look_at_each(std::span<const std::int32_t> items, WeightOf weight_of, Fetch fetch, Look look) {
  const auto cuts = cut_into_parts(items.size(), kPart, [&](std::size_t i) { return weight_of(items[i]); });
  std::vector<Wants> wants(cuts.size() - 1);
  in_parts(wants.size(), pruner_.threads(), budget_, [&](std::size_t, std::size_t part, Budget& budget) {
    for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) {
      budget.poll();
      fetch(items.subspan(i + 1));
      look(items[i], wants[part]);
    }
    return true;
  });
  for (const Wants& found : wants) {
    want_order_.insert(want_order_.end(), found.orders.begin(), found.orders.end());
    want_read_.insert(want_read_.end(), found.reads.begin(), found.reads.end());
  }
}

void Search::inspect() {
  want_order_.clear();
  want_read_.clear();
  note_moved();
  std::vector<std::int32_t> keys, reads;
  for (std::int32_t key = 0; graph_.uses_orders && key < p_.keys; ++key)
    if (stale_key_[idx(key)] != 0 && (rounds <= 1 || settled_key_[idx(key)] == 0 || read_key_[idx(key)] != 0))
      keys.push_back(key);
  const auto writers = [&](std::int32_t key) { return idx(p_.key_start[idx(key) + 1] - p_.key_start[idx(key)]); };
  look_at_each(
      keys, writers, [&](std::span<const std::int32_t> next) { fetch_key(next); },
      [&](std::int32_t key, Wants& wants) {
        sort_writers(key);
        if (settled_key_[idx(key)] == 0) inspect_key(key, wants);
      });
  for (const std::int32_t r : inspected_reads_) {
    const std::int32_t reader = p_.read_txn[idx(r)];
    if (stale_txn_[idx(reader)] != 0 || stale_key_[idx(p_.read_key[idx(r)])] != 0 || active_read_[idx(r)] != 0 ||
        !certain(reader))
      reads.push_back(r);
  }
  look_at_each(
      reads, [](std::int32_t) { return std::size_t{1}; },
      [&](std::span<const std::int32_t> next) { fetch_read(next); },
      [&](std::int32_t r, Wants& wants) { inspect_read(r, wants); });
  if (graph_.forbids_ways_back)
    for (const std::int32_t r : reads) {
      const std::int32_t reader = p_.read_txn[idx(r)];
      new_ways_[idx(reader)] |= open_txn_[idx(reader)];
    }
  std::ranges::fill(stale_txn_, std::uint8_t{0});
  std::ranges::fill(stale_key_, std::uint8_t{0});
  std::erase_if(want_order_, [&](const Want& w) { return find_order(w.a, w.b) >= 0; });
}

// About: an order may be wanted twice.
std::size_t Search::wanted_variables() const {
  std::size_t count = want_order_.size();
  for (const std::int32_t r : want_read_) count += pruner_.candidates_left(r);
  return count;
}

Theory::Answer Search::complete() {
  ++rounds;
  budget_.check();
  // Drawing together goes through all edges between what has moved: worth it while much is wanted again and again.
  const std::size_t wanted = want_order_.size() + want_read_.size();  // by the last inspection
  if (rounds == 2 || (rounds > 2 && wanted * kFewer > wanted_before_)) draw_together();
  wanted_before_ = wanted;
  inspect();
  // A first order that contradicts so much is worth another try. (Reads of maybe transactions may have been decided
  // before: the new order respects their edges, too.)
  if (rounds == 1 && may_start_anew_ && (want_order_.size() + want_read_.size()) * kMuch > idx(p_.n))
    if (const auto line = likely_line(pruner_, budget_); !line.empty()) {
      order_.set_ranks(rank_along(line, order_.successors(), budget_));
      std::ranges::fill(stale_txn_, std::uint8_t{1});
      std::ranges::fill(stale_key_, std::uint8_t{1});
      inspect();
    }
  if (want_order_.empty() && want_read_.empty()) {
    if (!graph_.forbids_ways_back || !forbid_ways_back()) return Answer::consistent;
    return meaning_.size() > limit_.variables ? Answer::gives_up : Answer::extended;
  }
  if (const std::size_t more = wanted_variables();
      meaning_.size() + more > limit_.variables || (rounds == 1 && more > limit_.first_variables))
    return Answer::gives_up;
  // What is new is decided behind what was: nothing needs to be taken back for it.
  for (const auto& [a, b, read] : want_order_) activate_order(a, b, read);
  for (const std::int32_t r : want_read_) activate_read(r);
  return Answer::extended;
}

bool Search::is_in(std::int32_t txn) const {
  if (certain(txn)) return true;
  const std::int32_t in = in_variable_[idx(txn)];
  return in >= 0 && sat_.value(Lit::positive(in)) > 0;
}

bool Search::forbid_ways_back() {
  std::vector<std::uint8_t> in(p_.inclusion.size());
  for (std::size_t t = 0; t < in.size(); ++t) in[t] = is_in(static_cast<std::int32_t>(t));
  const auto closed = ways_back_.closed({source_, writers_, place_, in}, new_ways_);
  if (closed.empty()) return false;
  sat_.restart();
  for (const auto& edges : closed) {
    for (const Edge& e : edges) {
      if (e.read >= 0 && pruner_.source[idx(e.read)] < 0) activate_read(e.read);
      if ((e.relation == Relation::ww || e.relation == Relation::rw) && p_.writer_txn[idx(e.a)] != p_.n)
        activate_order(e.a, e.b, e.read);
    }
    std::vector<Lit> clause;
    pending_.clear();
    for (const Edge& e : edges) {
      collect(e, clause);
      pending_.push_back({e, CycleEdge::Kind::added});
    }
    lemma(sat_.add_clause(std::move(clause)));
  }
  return true;
}

}  // namespace isolang
