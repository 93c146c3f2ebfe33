// `kinds_of` tests every name of the history against every class, and numbers the different sets of
// classes.
#include "engine/graph/kinds.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>

namespace isolang {
namespace {

// Matches from left to right. On a mismatch, the last star takes one more character.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return std::ranges::all_of(pattern.substr(p), [](char c) { return c == '*'; });
}

// Numbers the different sets of classes in order of appearance.
class Numbering {
 public:
  Numbering(std::size_t most, const char* what) : most_(most), what_(what) {}
  std::uint8_t of(const std::vector<bool>& inside) {
    const auto [at, fresh] = number_.try_emplace(inside, number_.size());
    if (fresh && number_.size() > most_)
      throw std::domain_error("the names of the specification tell more than " + std::to_string(most_) +
                              " kinds of " + what_ + " apart; name fewer classes");
    return static_cast<std::uint8_t>(at->second);
  }
  const std::map<std::vector<bool>, std::size_t>& all() const { return number_; }

 private:
  std::map<std::vector<bool>, std::size_t> number_;
  std::size_t most_;
  const char* what_;
};

}  // namespace

Kinds kinds_of(const History& h, std::span<const NameClass> classes) {
  Kinds kinds;
  kinds.members.assign(classes.size(), 0);
  Numbering keys(32, "keys"), transactions(64, "transactions");
  const auto any_key_class = std::ranges::any_of(
      classes, [](const NameClass& c) { return c.of == NameClass::Of::keys; });
  kinds.of_key.assign(idx(h.n_keys()), 0);
  std::vector<bool> inside(classes.size(), false);
  for (std::int32_t key = 0; any_key_class && key < h.n_keys(); ++key) {
    const std::string name = h.key_atoms.name(h.key_atom[idx(key)]);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (classes[c].of != NameClass::Of::keys) continue;
      const bool listed = std::ranges::any_of(
          classes[c].patterns, [&](const std::string& pattern) { return matches(pattern, name); });
      // mutant: class-not-negated
      inside[c] = listed != classes[c].negated;
    }
    kinds.of_key[idx(key)] = keys.of(inside);
  }
  for (const auto& [found, number] : keys.all())
    for (std::size_t c = 0; c < classes.size(); ++c)
      if (found[c]) kinds.members[c] |= Pairs{3} << (2 * number);
  // Returns, for each set of names, true if the set contains a selected name.
  const auto selected = [](const Names& names, const NameClass& of) {
    std::vector<bool> sets(idx(names.sets()), false);
    for (std::int32_t s = 0; s < names.sets(); ++s)
      sets[idx(s)] = std::ranges::any_of(names.names_of(s), [&](std::int32_t name) {
        return std::ranges::any_of(of.patterns, [&](const std::string& pattern) {
          return matches(pattern, names.texts[idx(name)]);
        });
      });
    return sets;
  };
  std::vector<std::vector<bool>> sets(classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c)
    if (classes[c].of != NameClass::Of::keys)
      sets[c] = selected(classes[c].of == NameClass::Of::labels ? h.labels : h.levels, classes[c]);
  if (std::ranges::all_of(sets, &std::vector<bool>::empty)) return kinds;
  inside.assign(classes.size(), false);
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (sets[c].empty()) continue;
      const Names& names = classes[c].of == NameClass::Of::labels ? h.labels : h.levels;
      // mutant: names-of-nobody
      inside[c] = sets[c][idx(t) < names.set_of.size() ? idx(names.set_of[idx(t)]) : 0] != classes[c].negated;
    }
    kinds.of_transaction.push_back(transactions.of(inside));
  }
  for (const auto& [found, number] : transactions.all())
    for (std::size_t c = 0; c < classes.size(); ++c)
      if (found[c]) kinds.members[c] |= Pairs{1} << number;
  return kinds;
}

}  // namespace isolang
