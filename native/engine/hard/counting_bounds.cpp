// The constructor groups the versions of each key, and stores for each event the groups that it
// changes and the numbers that it requires. The necessary precedences evaluate these bounds in each
// round.
#include "engine/hard/counting_bounds.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

// If a key has at least this many groups, each value is written so rarely that the bounds exclude
// little.
constexpr std::int32_t kManyGroups = 64;

// Returns the number of each writer's group. Two writers that some read may choose between are in
// the same group.
std::vector<std::int32_t> groups_of(const CountingBounds::Line& total_order) {
  std::vector<std::int32_t> up(total_order.writing.size());
  std::iota(up.begin(), up.end(), 0);
  const auto root = [&](std::int32_t w) {
    while (up[w] != w) w = up[w] = up[up[w]];
    return w;
  };
  for (const auto& sources : total_order.sources)
    for (const std::int32_t w : sources) up[root(w)] = root(sources[0]);
  std::vector<std::int32_t> number(up.size(), -1), group;
  std::int32_t count = 0;
  for (std::int32_t w = 0; w < static_cast<std::int32_t>(up.size()); ++w) {
    std::int32_t& n = number[root(w)];
    if (n < 0) n = count++;
    group.push_back(n);
  }
  return group;
}

}  // namespace

CountingBounds::CountingBounds(const Line& total_order) {
  const Problem& p = total_order.problem;
  const std::vector<std::int32_t> group = groups_of(total_order);
  std::int32_t groups = 0;
  for (const std::int32_t g : group) groups = std::max(groups, g + 1);
  const auto group_read = [&](std::int32_t read) {
    return read < 0 || total_order.sources[read].empty() ? -1 : group[total_order.sources[read][0]];
  };
  std::vector<std::uint8_t> all_replace(idx(p.keys), 1), some_go(idx(groups), 0);
  std::vector<std::int32_t> at_first(idx(groups), 0), groups_of_key(idx(p.keys), 0),
      counted(idx(groups), 0);
  std::vector<std::pair<std::int32_t, std::int32_t>> changes;  // group, change
  for (std::int32_t key = 0; key < p.keys; ++key)
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w) {
      const std::int32_t event = total_order.writing[w], comes = group[w],
                         goes = group_read(total_order.replaces[w]);
      groups_of_key[key] += std::exchange(counted[comes], 1) == 0;
      // mutant: engine-no-initial-version
      at_first[comes] += p.writer_txn[w] == p.n;
      if (event < 0) continue;
      // mutant: engine-blind-writes
      if (goes < 0) all_replace[key] = 0;
      if (goes == comes) continue;  // a version replaces another one of its group
      changes.emplace_back(comes, with_sort(event, kComes));
      if (goes < 0) continue;
      changes.emplace_back(goes, with_sort(event, kGoes));
      some_go[goes] = 1;
    }
  const auto first = [&](std::size_t i) { return changes[i].first; };
  changes_ =
      group_by(groups, changes.size(), first, [&](std::size_t i) { return changes[i].second; });
  raised_ = group_by(
      static_cast<std::int32_t>(total_order.events), changes.size(),
      [&](std::size_t i) { return event_of(changes[i].second); },
      [&](std::size_t i) { return with_sort(changes[i].first, sort_of(changes[i].second)); });

  std::vector<std::pair<std::int32_t, std::int32_t>>
      cuts;  // an event, and the read whose version exists before it
  const auto add_cut = [&](std::int32_t event, std::int32_t read) {
    if (event >= 0 && group_read(read) >= 0) cuts.emplace_back(event, read);
  };
  for (std::int32_t r = 0; r < p.reads(); ++r) add_cut(total_order.reading[r], r);
  for (std::size_t w = 0; w < total_order.writing.size(); ++w)
    if (const std::int32_t r = total_order.replaces[w];
        r >= 0 && total_order.writing[w] != total_order.reading[r])
      add_cut(total_order.writing[w], r);
  const Adjacency at = group_by(
      static_cast<std::int32_t>(total_order.events), cuts.size(),
      [&](std::size_t i) { return cuts[i].first; }, [&](std::size_t i) { return cuts[i].second; });
  std::vector<std::int32_t> seen(idx(groups), -1);  // the last event with a demand on the group
  for (std::int32_t event = 0; event < static_cast<std::int32_t>(total_order.events); ++event) {
    demand_start_.push_back(demands_.size());
    for (const std::int32_t r : at.of(event)) {
      const std::int32_t key = p.read_key[r], here = group_read(r);
      const bool exact = all_replace[key] != 0, all = groups_of_key[key] <= kManyGroups;
      for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w) {
        const std::int32_t g = group[w];
        if (g != here && !all) continue;
        if (!exact && some_go[g] == 0)
          continue;  // the existence of a version only means that the read has a source
        if (std::exchange(seen[g], event) != event)
          demands_.push_back({g, (g == here) - at_first[g], exact});
      }
    }
  }
  demand_start_.push_back(demands_.size());
}

}  // namespace isolang
