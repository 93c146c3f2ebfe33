// Rule 5 of necessary_precedences.cpp: it counts the versions of a group that have been written and overwritten before
// an event.
#pragma once
#include <cstddef>
#include <vector>

#include "core/index.hpp"

namespace isolang::certify {

class CountingBounds {
 public:
  explicit CountingBounds(std::size_t versions);

  // The functions below add facts about the versions, and must be called in the order in which they are declared.
  // Versions between which some read may choose belong to the same group.
  void join_versions(std::size_t version, std::size_t other);
  void group();
  void exists_at_first(std::size_t version) { ++groups_[group_[version]].at_first; }
  void comes(std::size_t version, std::size_t event) {
    groups_[group_[version]].changes.push_back({event, 1});
  }
  // The version replaces `other` at this event. If both are in the same group, the number of its versions stays the
  // same.
  void replaces(std::size_t version, std::size_t other, std::size_t event);
  // At the event, the key's current version is in the group of `here`. `all` lists the key's versions. With `only`, the
  // key has no other version at that time.
  void require_at(std::size_t event, std::size_t here, const std::vector<std::size_t>& all, bool only);

  // The event cannot happen unless at least this many versions of the group come (or go) before it or, in a sweep from
  // the end, after it.
  struct Threshold {
    std::size_t group, least;
    bool comes;
  };
  struct Change {
    std::size_t event;
    int by;  // 1 if a version comes, -1 if one goes
  };
  const std::vector<Change>& changes(std::size_t group) const { return groups_[group].changes; }
  std::size_t count() const { return groups_.size(); }

  // Returns, for each event, the thresholds that the events certain to precede it do not reach. first(a, b) returns
  // whether a comes first in the direction of the sweep.
  template <typename First>
  std::vector<std::vector<Threshold>> thresholds(std::size_t events, bool from_end,
                                                 First first) const {
    std::vector<std::vector<Threshold>> result(events);
    for (const Cut& cut : cuts_) {
      long known[2] = {0, 0}, all[2] = {0, 0};  // how many versions go, and how many come
      for (const Change& c : groups_[cut.group].changes) {
        if (c.event == cut.event) continue;
        ++all[c.by > 0];
        known[c.by > 0] += first(c.event, cut.event);
      }
      // Before the event, come - go >= net. So after the event, come - go <= all come - all go - net. With `only`, both
      // are equations.
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

  // Calls order(a, b) for events whose order the counts decide. Returns false if the counts contradict what is known.
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
                                                        // the kind of change that must come before the event (the other
                                                        // kind comes after it)
                                                        : 0;
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
  struct Cut {  // before the event, exactly or at least `net` more versions have come than gone (without those of T0)
    std::size_t event, group;
    long net;
    bool only;
  };

  std::vector<std::size_t> group_;  // the group of each version; until group() is called, another version of the group
  std::vector<Group> groups_;
  std::vector<Cut> cuts_;
};

}  // namespace isolang::certify
