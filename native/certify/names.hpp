// The keys and transactions of a history that are selected by the names in quotes in a specification. Keys are selected
// by name, and transactions by label or by requested level.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/history.hpp"

namespace isolang::certify {

struct NameText {
  std::string of;                     // "keys", "label" or "level"
  std::vector<std::string> patterns;  // `*` matches any text
  bool negated = false;
};

class Selections {
 public:
  Selections(const History& history, const std::vector<NameText>& names);

  std::size_t count() const { return selected_.size(); }
  bool of_keys(std::size_t name) const { return selected_[name].of_keys; }
  bool key(std::size_t name, std::int64_t key) const {
    return of_keys(name) && selected_[name].there[idx(key)] != 0;
  }
  // Must not be called for T0, which no cycle passes.
  bool transaction(std::size_t name, const History& history, std::int64_t t) const;

 private:
  struct Selected {
    bool of_keys, of_labels;
    std::vector<char> there;  // for each key, or each set of names, whether the name selects it
  };
  std::vector<Selected> selected_;
};

}  // namespace isolang::certify
