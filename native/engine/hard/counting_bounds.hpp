// Bounds on the order of events, from counting the versions of a value.
//
// Versions that some read may choose between form a group, usually the versions of one value of a
// key. A version *comes* when it is written. It *goes* when a transaction that read it overwrites
// it, if no write can come between the read and the write. SOUND BECAUSE no version goes twice, and
// none goes before it has come. So in no group do more versions go than have come. Right before an
// event that reads a version of a group, or that overwrites a version which its transaction read,
// at least one more version of the group has come than has gone. If each writer of the key
// overwrites the version that it read, exactly one version of the key exists at any time. Then
// exactly one more version of this group has come than has gone, and in every other group of the
// key as many versions have gone as have come.
//
// The events that certainly precede an event, and those that may precede it, bound these numbers.
// If the required difference equals one of the bounds, all events that could still change the
// numbers are ordered. This is the balance constraint of reservoirs in scheduling (Laborie,
// "Algorithms for propagating resource constraints in AI planning and scheduling", AIJ 143, 2003).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/index.hpp"
#include "core/problem.hpp"
#include "engine/graph/adjacency.hpp"
#include "engine/hard/relaxation.hpp"

namespace isolang {

class CountingBounds {
 public:
  // The events of a total order, by number; -1 stands for an operation that is not in the total
  // order. For each writer: the event of its write (`writing`), and the read of the version that it
  // overwrites, or -1 (`replaces`). For each read: its event (`reading`), and its sources.
  struct Line {
    const Problem& problem;
    std::span<const std::int32_t> writing, reading, replaces;
    std::span<const std::vector<std::int32_t>> sources;
    std::size_t events;
  };
  explicit CountingBounds(const Line& total_order);

  // Orders events: before(a, b) tells whether a is known to precede b, and note(a, b) records that
  // a precedes b. Returns false if no total order exists.
  template <typename Before, typename Note>
  bool order(const Before& before, const Note& note) const {
    for (std::size_t event = 0; event + 1 < demand_start_.size(); ++event) {
      const auto here = static_cast<std::int32_t>(event);
      for (const Demand& d : demands(here)) {
        const Known k =
            known(d.group, here, before, [&](std::int32_t e) { return before(here, e); });
        const std::int32_t most = k.certain[kComes] + k.open[kComes] - k.certain[kGoes];
        const std::int32_t least = k.certain[kComes] - k.certain[kGoes] - k.open[kGoes];
        // mutant: engine-one-version-more
        if (most < d.net || (d.exact && least > d.net)) return false;
        if (k.open[kComes] + k.open[kGoes] == 0) continue;
        const bool comes_first = most == d.net;
        if (!comes_first && !(d.exact && least == d.net)) continue;
        for (const std::int32_t change : changes_.of(d.group)) {
          const std::int32_t e = event_of(change);
          if (e == here || before(e, here) || before(here, e)) continue;
          // mutant: comes-and-goes
          if (sort_of(change) == (comes_first ? kComes : kGoes))
            note(e, here);
          else
            note(here, e);
        }
      }
    }
    return true;
  }

  std::size_t counters() const { return 2 * changes_.start.size() - 2; }
  // Adds the event's demands to a relaxation: the counters that it raises, and the counts that must
  // be reached before it, in the direction of the relaxation. `precedes` has the same direction.
  template <typename Precedes>
  void add_to(Relaxation& side, std::int32_t here, bool from_end, const Precedes& precedes) const {
    for (const std::int32_t counter : raised_.of(here)) side.count(counter);
    for (const Demand& d : demands(here)) {
      const Known k = known(d.group, here, precedes, [](std::int32_t) { return false; });
      // Let c be the number of versions that come, and g the number of versions that go, on this
      // side of the event. Then c - g >= net if the side is the beginning, and
      // (all - c) - (all - g) >= net if it is the end. If the demand is exact, "=" holds.
      std::array<std::int32_t, 2> least{};
      const std::int32_t both = k.all(kComes) - k.all(kGoes);
      // mutant: engine-one-too-many
      least[kComes] = from_end ? k.certain[kGoes] + both - d.net : k.certain[kGoes] + d.net;
      least[kGoes] = from_end ? k.certain[kComes] - both + d.net : k.certain[kComes] - d.net;
      const std::size_t one_sided = from_end ? kGoes : kComes;
      for (const std::size_t sort : {kComes, kGoes})
        if ((d.exact || sort == one_sided) && least[sort] > k.certain[sort])
          side.at_least(with_sort(d.group, sort), least[sort]);
    }
  }

 private:
  static constexpr std::size_t kComes = 0, kGoes = 1;
  // The condition that before the event, this many more versions of the group (not counting those
  // of T0) have come than have gone; exactly this many if `exact`, and otherwise at least.
  struct Demand {
    std::int32_t group, net;
    bool exact;
  };
  struct Known {
    std::array<std::int32_t, 2> certain{}, open{};
    std::int32_t all(std::size_t sort) const { return certain[sort] + open[sort]; }
  };
  // Counts the changes to a group that certainly precede the event, and those that may precede it.
  // The event's own changes are not counted.
  template <typename First, typename Later>
  Known known(std::int32_t group, std::int32_t here, const First& first, const Later& later) const {
    Known k;
    for (const std::int32_t change : changes_.of(group)) {
      const std::int32_t e = event_of(change);
      if (e == here || later(e)) continue;
      ++(first(e, here) ? k.certain : k.open)[sort_of(change)];
    }
    return k;
  }
  std::span<const Demand> demands(std::int32_t event) const {
    const auto i = idx(event);
    return std::span(demands_).subspan(demand_start_[i], demand_start_[i + 1] - demand_start_[i]);
  }
  // Changes are numbered by event, and counters by group.
  static std::int32_t with_sort(std::int32_t number, std::size_t sort) {
    return 2 * number + static_cast<std::int32_t>(sort);
  }
  static std::int32_t event_of(std::int32_t change) { return change / 2; }
  static std::size_t sort_of(std::int32_t change) { return idx(change % 2); }

  Adjacency changes_;                      // per group
  Adjacency raised_;                       // per event, counters
  std::vector<std::size_t> demand_start_;  // per event, into demands_
  std::vector<Demand> demands_;
};

}  // namespace isolang
