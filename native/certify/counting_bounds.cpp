// `join_versions` joins versions into groups by union-find. `comes` and `replaces` record the events at which a group's
// counts change, and `require_at` records how many more versions of a group have come than gone before an event.
#include "certify/counting_bounds.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace isolang::certify {

CountingBounds::CountingBounds(std::size_t versions) : group_(versions) {
  std::iota(group_.begin(), group_.end(), 0);
}

void CountingBounds::join_versions(std::size_t version, std::size_t other) {
  const auto top = [&](std::size_t v) {
    while (group_[v] != v) v = group_[v] = group_[group_[v]];
    return v;
  };
  const std::size_t a = top(version), b = top(other);
  group_[std::max(a, b)] = std::min(a, b);
}

void CountingBounds::group() {
  std::map<std::size_t, std::size_t> number;  // group numbers, by the least version of each group, which comes first
  for (std::size_t v = 0; v < group_.size(); ++v)
    group_[v] =
        group_[v] == v ? number.try_emplace(v, number.size()).first->second : group_[group_[v]];
  groups_.resize(number.size());
}

void CountingBounds::replaces(std::size_t version, std::size_t other, std::size_t event) {
  if (group_[version] == group_[other]) return;
  comes(version, event);
  groups_[group_[other]].changes.push_back({event, -1});
}

void CountingBounds::require_at(std::size_t event, std::size_t here, const std::vector<std::size_t>& all,
                           bool only) {
  std::set<std::size_t> groups;
  for (const std::size_t v : all) groups.insert(group_[v]);
  for (const std::size_t g : groups)
    cuts_.push_back({event, g, (g == group_[here] ? 1 : 0) - groups_[g].at_first, only});
}

}  // namespace isolang::certify
