// `accesses` builds a history and a choice in which each access of a transaction to a key is a transaction of its own.
// `Times` moves the times of each key behind those of all earlier keys.
#include "certify/one_key.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "certify/moments.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

// The ranks of all times in a history. They allow each key's times to be moved behind those of the keys before it.
class Times {
 public:
  explicit Times(const History& h) {
    for (std::size_t t = 0; t < h.txn_begin.size(); ++t) {
      times_.push_back(h.txn_begin[t]);
      times_.push_back(h.txn_end[t]);
      if (!h.slack.empty()) times_.push_back(Moments(h).own_end(static_cast<std::int32_t>(t)));
    }
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  }
  std::int64_t moved(std::int64_t time, std::size_t key) const {
    const auto place = std::lower_bound(times_.begin(), times_.end(), time) - times_.begin();
    // mutant: checker-time-between-keys
    return place + static_cast<std::int64_t>(key * (times_.size() + 1));
  }

 private:
  std::vector<std::int64_t> times_;
};

}  // namespace

Accesses accesses(const History& h, const Choice& c) {
  Accesses result;
  History& history = result.history;
  Choice& choice = result.choice;
  history.has_time = h.has_time;
  history.labels = h.labels;
  history.levels = h.levels;
  history.labels.set_of.clear();
  history.levels.set_of.clear();
  const Times times(h);
  const std::size_t keys = c.key_start.empty() ? 0 : c.key_start.size() - 1;
  std::vector<std::vector<std::size_t>> reads(keys);
  for (std::size_t i = 0; i < c.reads.size(); ++i) reads[c.reads[i].key].push_back(i);
  choice.reads = c.reads;
  choice.key_start = c.key_start;
  choice.order.resize(c.order.size());
  std::vector<std::int32_t> members, number(h.txn_session.size(), -1);
  std::unordered_map<std::int32_t, std::int32_t> session_of;
  for (std::size_t key = 0; key < keys; ++key) {
    const auto first = c.order.begin() + c.key_start[key],
               last = c.order.begin() + c.key_start[key + 1];
    members.assign(first, last);
    for (const std::size_t i : reads[key]) members.push_back(c.reads[i].reader);
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    // mutant: checker-session-between-keys
    session_of.clear();
    for (const std::int32_t t : members) {
      number[t] = history.transactions();
      const auto [session, fresh] = session_of.try_emplace(h.txn_session[t], history.sessions);
      history.sessions += fresh ? 1 : 0;
      history.txn_session.push_back(session->second);
      history.txn_status.push_back(h.txn_status[t]);
      if (h.has_groups()) history.txn_group.push_back(h.txn_group[t]);
      for (const auto& [to, from] : {std::pair(&history.labels, &h.labels), std::pair(&history.levels, &h.levels)})
        if (idx(t) < from->set_of.size()) to->assign_set(number[t], from->set_of[idx(t)]);
      history.txn_begin.push_back(times.moved(h.txn_begin[t], key));
      history.txn_end.push_back(times.moved(h.txn_end[t], key));
      if (!h.slack.empty())
        history.txn_own_end.push_back(times.moved(Moments(h).own_end(t), key));
      choice.included.push_back(c.included[t]);
    }
    for (std::int64_t i = c.key_start[key]; i < c.key_start[key + 1]; ++i)
      choice.order[i] = number[c.order[i]];
    for (const std::size_t i : reads[key]) choice.reads[i].reader = number[c.reads[i].reader];
  }
  return result;
}

}  // namespace isolang::certify
