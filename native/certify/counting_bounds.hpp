// Rule 5 of necessary precedences.hpp: the versions of a value come and go. See there for its
// statement.
#pragma once
#include <cstddef>
#include <vector>

#include "core/index.hpp"

namespace isolang::certify {

class CountingBounds {
 public:
  explicit CountingBounds(std::size_t versions);

  // What there is to know, in this order. Versions between which some read chooses are one group.
  void together(std::size_t version, std::size_t other);
  void group();
  void there_at_first(std::size_t version) { ++groups_[group_[version]].at_first; }
  void comes(std::size_t version, std::size_t event) {
    groups_[group_[version]].changes.push_back({event, 1});
  }
  // In place of another one; one of the same group leaves as many as before.
  void replaces(std::size_t version, std::size_t other, std::size_t event);
  // At the event `here`, one of `all` versions of a key, is there. No other one is, if `only`.
  void there(std::size_t event, std::size_t here, const std::vector<std::size_t>& all, bool only);

  // So many versions come, or go, before (from the end: after) the event, else it does not happen.
  struct Threshold {
    std::size_t group, least;
    bool comes;
  };
  struct Change {
    std::size_t event;
    int by;  // 1: a version comes; -1: one goes
  };
  const std::vector<Change>& changes(std::size_t group) const { return groups_[group].changes; }
  std::size_t count() const { return groups_.size(); }

  // Thresholds of each event, as far as what certainly precedes it does not meet them; first(a, b):
  // a comes first in the direction of the sweep.
  template <typename First>
  std::vector<std::vector<Threshold>> thresholds(std::size_t events, bool from_end,
                                                 First first) const {
    std::vector<std::vector<Threshold>> result(events);
    for (const Cut& cut : cuts_) {
      long known[2] = {0, 0}, all[2] = {0, 0};  // that go, that come
      for (const Change& c : groups_[cut.group].changes) {
        if (c.event == cut.event) continue;
        ++all[c.by > 0];
        known[c.by > 0] += first(c.event, cut.event);
      }
      // Before the event come - go >= net; and so all come - all go - net >= come - go after it.
      // `only`: "=".
      const long rest = all[1] - all[0] - cut.net;
      const auto add = [&](bool comes, long least) {
        if (least > known[comes]) result[cut.event].push_back({cut.group, idx(least), comes});
      };
      if (!from_end || cut.only) add(true, known[0] + (from_end ? rest : cut.net));
      // mutant: checker-one-more-goes
      if (from_end || cut.only) add(false, known[1] - (from_end ? rest : cut.net));
    }
    return result;
  }

  // Calls order(a, b) for events whose order the numbers decide; false if they contradict what is
  // known.
  template <typename First, typename Order>
  bool decide(First first, Order order) const {
    for (const Cut& cut : cuts_) {
      long least = 0, most = 0;
      std::vector<Change> open;
      for (const Change& c : groups_[cut.group].changes) {
        if (c.event == cut.event || first(cut.event, c.event)) continue;
        if (first(c.event, cut.event)) {
          least += c.by;
          most += c.by;
        } else {
          open.push_back(c);
          (c.by > 0 ? most : least) += c.by;
        }
      }
      // mutant: checker-one-version-more
      if (most < cut.net || (cut.only && least > cut.net)) return false;
      const int needed = most == cut.net                ? 1
                         : cut.only && least == cut.net ? -1
                                                        : 0;  // what must come first
      for (const Change& c : open)
        if (needed != 0 && c.by == needed)
          order(c.event, cut.event);
        else if (needed != 0)
          order(cut.event, c.event);
    }
    return true;
  }

 private:
  struct Group {
    std::vector<Change> changes;
    long at_first = 0;
  };
  struct Cut {  // before the event, that many more versions have come than gone, T0's left out
    std::size_t event, group;
    long net;
    bool only;
  };

  std::vector<std::size_t> group_;  // per version; until group(), another of the group
  std::vector<Group> groups_;
  std::vector<Cut> cuts_;
};

}  // namespace isolang::certify
