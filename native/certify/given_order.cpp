// A closed walk can be read from any of its places. Read from the end u of a step t -> u of the order, it leads from u
// to t, and t precedes u, either by their times or in the order of their group or session. A search therefore starts at
// each transaction, the last one to begin first, and visits each node of the product only once. SOUND: a later search
// starts at a transaction that began earlier, and the transactions that ended before it began had also ended before the
// transactions of all earlier searches began.
#include "certify/given_order.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "certify/moments.hpp"
#include "certify/product.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

constexpr std::int64_t kVisitLimit = 4'000'000'000;  // edge visits, in all groups together

// Returns, for each position, whether it can follow the given one, directly or indirectly. The given position follows
// itself only if it can be repeated.
std::vector<char> behind(const Positions& p, int position) {
  std::vector<char> met(p.label.size(), 0);
  std::vector<int> work(p.follow[idx(position)]);
  while (!work.empty()) {
    const int at = work.back();
    work.pop_back();
    if (met[idx(at)]++ == 0) work.insert(work.end(), p.follow[idx(at)].begin(), p.follow[idx(at)].end());
    met[idx(at)] = 1;
  }
  return met;
}

void leave_out(Positions& p, int position) {
  for (auto& follow : p.follow) std::erase(follow, position);
  const std::vector<char> reached = behind(p, 0);
  for (std::size_t i = 1; i < p.accepting.size(); ++i)
    if (reached[i] == 0) {
      p.accepting[i] = 0;
      p.follow[i].clear();
    }
}

// Returns an automaton for the words as read from the given position: first the part after it, then the part before it.
// It has two copies of all other positions. The second copy begins where a word ends.
Positions read_from_behind(Positions p, int position) {
  const std::vector<int> first = p.follow[0], after = p.follow[idx(position)];
  std::vector<char> before(p.label.size(), 0);  // whether the given position may come next
  for (std::size_t i = 0; i < before.size(); ++i)
    before[i] = std::ranges::find(p.follow[i], position) != p.follow[i].end();
  const bool begins = before[0] != 0, ends = p.accepting[idx(position)] != 0;
  const int copy = static_cast<int>(p.label.size()) - 1;
  Positions turned;
  turned.selections = p.selections;
  turned.label = p.label;
  turned.label.insert(turned.label.end(), p.label.begin() + 1, p.label.end());
  const auto follow = [&](const std::vector<int>& next, bool second, bool ended) {
    std::vector<int>& to = turned.follow.emplace_back();
    for (const int f : next)
      if (f != position) to.push_back(second ? f + copy : f);
    if (ended && !second)
      for (const int f : first)
        if (f != position) to.push_back(f + copy);
    std::ranges::sort(to);
  };
  follow(after, false, ends);
  turned.accepting.push_back(0);
  turned.nullable = begins && ends;
  for (const bool second : {false, true})
    for (std::size_t i = 1; i < p.label.size(); ++i) {
      const bool ended = p.accepting[i] != 0;
      follow(p.follow[i], second, ended);
      turned.accepting.push_back(second ? before[i] : ended && begins);
    }
  return turned;
}

struct Member {
  std::int32_t group;
  std::int64_t time;
  std::int32_t txn;
};
struct Order {
  std::vector<Member> ends, begins;
};

// Returns the orders contained in the relation. If clocks may be wrong, each session also has an order by its own
// clock.
std::vector<Order> orders_of(const History& h, const Choice& c, Relation relation) {
  constexpr std::int32_t kNone = -1;
  const Moments moments(h);
  std::vector<Order> found(1);
  // mutant: checker-return-without-own-clocks
  if (relation != Relation::so && (!h.slack.empty() || !h.txn_own_end.empty())) found.resize(2);
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> groups;  // the number of each (group, session) pair
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    if (c.included[idx(t)] == 0) continue;
    const bool finished = h.txn_status[t] == static_cast<std::uint8_t>(Status::committed);
    // mutant: checker-return-groups-as-one
    const std::int32_t within = relation == Relation::group_rt ? h.txn_group[t] : kNone;
    if (within == kNil) continue;  // the transaction is in no group
    for (std::size_t own = 0; own < found.size(); ++own) {
      const std::int64_t begin = relation == Relation::so ? t : h.txn_begin[t];
      const std::int64_t end = relation == Relation::so ? t : own != 0 ? moments.own_end(t) : h.txn_end[t];
      const std::int32_t session = relation == Relation::so || own != 0 ? h.txn_session[t] : kNone;
      const auto next = static_cast<std::int32_t>(groups.size());
      const std::int32_t group = groups.try_emplace({within, session}, next).first->second;
      if (begin != kTimeUnknownBegin) found[own].begins.push_back({group, begin, t});
      // mutant: checker-return-indeterminate-precede
      if (finished && end != kTimeUnknownEnd) found[own].ends.push_back({group, end, t});
    }
  }
  return found;
}

class Returns {
 public:
  Returns(const History& history, const Choice& choice, const Positions& turned, Budget& budget)
      : h_(history),
        m_(machine(turned, false)),
        empty_(turned.nullable),
        budget_(budget),
        graph_(product(history, choice, m_, budget)),
        of_places_(static_cast<std::int64_t>(choice.places()) * m_.states) {}

  bool by(Order order) {
    std::vector<std::int32_t> passed(idx(graph_.nodes), -1), group(idx(h_.transactions()), -1);
    std::vector<std::int64_t> end(group.size(), kTimeUnknownEnd);
    std::vector<std::uint8_t> accepts(idx(m_.states), 0);
    for (const int q : m_.accepting) accepts[idx(q)] = 1;
    accepts[0] = empty_ ? 1 : 0;
    const auto by_group = [](const Member& a, const Member& b) {
      return std::pair(a.group, a.time) < std::pair(b.group, b.time);
    };
    std::ranges::sort(order.ends, by_group);
    std::ranges::sort(order.begins, by_group);
    for (const Member& one : order.ends) group[idx(one.txn)] = one.group, end[idx(one.txn)] = one.time;
    std::int64_t visits = 0;
    std::vector<std::int32_t> work;
    for (auto u = order.begins.rbegin(); u != order.begins.rend(); ++u) {
      budget_.poll();
      // Skip the transaction if no transaction of its group ended before it began.
      const auto first = std::ranges::lower_bound(order.ends, u->group, {}, &Member::group);
      if (first == order.ends.end() || first->group != u->group || first->time >= u->time) continue;
      work.assign(1, u->txn * m_.states);
      passed[idx(work.back())] = u->group;
      while (!work.empty()) {
        budget_.poll();
        const std::int32_t v = work.back();
        work.pop_back();
        const std::int32_t t = v / m_.states;
        if (v < of_places_ && accepts[idx(v % m_.states)] != 0 && group[idx(t)] == u->group &&
            end[idx(t)] < u->time)
          return true;
        visits += graph_.edge_start[v + 1] - graph_.edge_start[v];
        if (visits > kVisitLimit)
          throw NotCertified{
              "not certified: irreflexive over an expression whose words do not compose, in a history "
              "of many sessions"};
        for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e)
          if (const std::int32_t w = graph_.edge_to[e]; passed[idx(w)] != u->group) {
            passed[idx(w)] = u->group;
            work.push_back(w);
          }
      }
    }
    return false;
  }

 private:
  const History& h_;
  const Machine m_;
  const bool empty_;
  Budget& budget_;
  const ProductGraph graph_;
  const std::int64_t of_places_;
};

}  // namespace

bool any_word(const Positions& words) { return std::ranges::find(words.accepting, 1) != words.accepting.end(); }

bool returns_by_order(const History& history, const Choice& choice, Positions& words,
                      std::span<const Relation> orders, Budget& budget) {
  for (const Relation order : orders)
    for (int i = 1; idx(i) < words.label.size(); ++i) {
      if (words.label[idx(i)] != static_cast<int>(order) || behind(words, 0)[idx(i)] == 0 ||
          behind(words, i)[idx(i)] != 0)
        continue;
      Returns returns(history, choice, read_from_behind(words, i), budget);
      for (Order& one : orders_of(history, choice, order))
        if (returns.by(std::move(one))) return true;
      leave_out(words, i);
    }
  return false;
}

}  // namespace isolang::certify
