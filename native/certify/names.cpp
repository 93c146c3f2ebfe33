// Matches names against patterns and collects the selected keys and transactions. The engine has a separate
// implementation (engine/graph/kinds.cpp).
#include "certify/names.hpp"

#include <algorithm>
#include <string_view>

namespace isolang::certify {
namespace {

// Returns whether the pattern from `p` on matches the name from `n` on.
bool fits(std::string_view pattern, std::size_t p, std::string_view name, std::size_t n) {
  if (p == pattern.size()) return n == name.size();
  if (pattern[p] != '*')
    return n < name.size() && name[n] == pattern[p] && fits(pattern, p + 1, name, n + 1);
  const std::size_t next = pattern.find_first_not_of('*', p);
  if (next == std::string_view::npos) return true;
  // Match the text up to the next star at its first occurrence, because that leaves as much of the name as possible for
  // the rest of the pattern.
  const std::string_view part = pattern.substr(next, pattern.find('*', next) - next);
  if (next + part.size() == pattern.size())
    return name.size() >= n + part.size() && name.ends_with(part);
  const std::size_t at = name.find(part, n);
  return at != std::string_view::npos && fits(pattern, next + part.size(), name, at + part.size());
}

bool listed(const NameText& text, std::string_view name) {
  return std::any_of(text.patterns.begin(), text.patterns.end(),
                     [&](const std::string& pattern) { return fits(pattern, 0, name, 0); });
}

}  // namespace

Selections::Selections(const History& h, const std::vector<NameText>& names) {
  for (const NameText& text : names) {
    Selected one{text.of == "keys", text.of == "label", {}};
    if (one.of_keys) {
      for (const std::int32_t atom : h.key_atom)
        // mutant: checker-class-not-negated
        one.there.push_back(listed(text, h.key_atoms.name(atom)) != text.negated);
    } else {
      const Names& borne = one.of_labels ? h.labels : h.levels;
      for (std::int32_t s = 0; s < borne.sets(); ++s) {
        bool found = false;
        for (const std::int32_t name : borne.names_of(s)) found |= listed(text, borne.texts[idx(name)]);
        one.there.push_back(found != text.negated);
      }
    }
    selected_.push_back(std::move(one));
  }
}

bool Selections::transaction(std::size_t name, const History& h, std::int64_t t) const {
  const Selected& one = selected_[name];
  const Names& borne = one.of_labels ? h.labels : h.levels;
  if (one.of_keys || t < 0 || t >= h.transactions()) return false;
  return one.there[idx(t) < borne.set_of.size() ? idx(borne.set_of[idx(t)]) : 0] != 0;
}

}  // namespace isolang::certify
