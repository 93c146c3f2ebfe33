// The checker's own reading of a check's expression: a position automaton (Glushkov 1961), and the machine from it.
#pragma once
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "certify/certify.hpp"

namespace isolang::certify {

// Position 0 is the start and reads nothing; every other position reads its relation.
struct Positions {
  std::vector<int> label;                // kNoRelation for the start
  std::vector<std::vector<int>> follow;  // ascending
  std::vector<char> accepting;           // a word may end here; never set for the start: see `nullable`
  bool nullable = false;

  bool mentions(Relation r) const;
  // Whether the word is in L(e); with `again`, in L(e)+.
  bool reads(const std::vector<int>& word, bool again) const;
  // Whether L(e)·L(e) is within L(e). False also when the search for that is cut off.
  bool repeatable() const;
};

// Throws NotCertified for text that is no expression.
Positions read_expression(std::string_view text);

// What a product graph is built from. State 0 is the start; see machine().
struct Machine {
  int states = 1;
  std::array<std::vector<std::pair<int, int>>, kRelations> steps;
  std::vector<int> accepting;  // without the start; when looped, an empty step leads from each to the start
  bool looped = true;

  const std::vector<std::pair<int, int>>& of(Relation r) const { return steps[static_cast<std::size_t>(r)]; }
  bool silently(int p, int q) const;  // p reaches q without reading anything
};

// Positions with the same future are merged, the start with none of them: in `so^* ; rw` the start and the position of
// `so` have the same future, but a cycle of `so` alone would then run through the start and completes no word. When
// looped, a position where a word must end is the start itself.
Machine machine(const Positions& positions, bool looped);

}  // namespace isolang::certify
