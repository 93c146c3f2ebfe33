// The checker's own reading of a check's expression: a position automaton (Glushkov 1961), and the
// machine from it.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "certify/certify.hpp"
#include "core/index.hpp"

namespace isolang::certify {

// A letter is a relation, or one that a name in quotes restricts: wr of some keys.
inline int letter_of(int relation, int name) { return relation + kRelations * (name + 1); }
inline int relation_of_letter(int letter) { return letter < 0 ? letter : letter % kRelations; }
inline int name_of_letter(int letter) { return letter / kRelations - 1; }  // -1: none

inline bool is_test(int letter) {
  const int relation = relation_of_letter(letter);
  return relation >= static_cast<int>(Relation::writes) && relation <= static_cast<int>(Relation::level);
}

// rw, irw or prw; wr, iwr or pwr; of all keys.
bool overwrites(int relation);
bool reads_from(int relation);
// Whether a read of this kind has pairs in the relation.
bool is_of(Relation relation, bool of_predicate);

// Position 0 is the start and reads nothing; every other position reads its relation.
struct Positions {
  std::vector<int> label;                // a letter; kNoRelation for the start
  std::vector<std::vector<int>> follow;  // ascending
  std::vector<char> accepting;  // a word may end here; never set for the start: see `nullable`
  bool nullable = false;
  std::shared_ptr<const Selections> selections;  // what the names select

  bool names() const;  // whether some letter has a name
  bool tests() const;
  bool mentions(Relation r) const;
  // Whether item reads and predicate reads are different letters, and what a pair of a relation by a
  // read of this kind is then.
  bool tells_reads_apart() const;
  int letter(int relation, bool of_predicate) const;
  // Whether a walk spells a word of L(e), or with `again` of L(e)+. The word has the walk's steps
  // without tests; passes(i, test) says whether the transaction where step i begins passes, or
  // where the last one ends, and passes(i, letter) whether step i, which is of the relation of a
  // letter with a name, is of that letter.
  using Passes = std::function<bool(std::size_t, int)>;
  bool reads(const std::vector<int>& word, bool again, const Passes& passes) const;
  bool reads(int relation) const;  // whether this one step is in L(e)
  // Whether L(e)·L(e) is within L(e). False also when the search for that is cut off.
  bool repeatable() const;
};

// The same words, if they lead from a writer, which is not T0, to a reader: without init, which
// nothing leads to the begin of, and without the tests that are passed in any case, as is [R]
// behind wr.
Positions of_return_paths(Positions positions);

// Throws NotCertified for text that is not an expression.
Positions read_expression(std::string_view text, std::shared_ptr<const Selections> selections = nullptr);

// What a product graph is built from. State 0 is the start; see machine().
struct Machine {
  int states = 1;
  std::array<std::vector<std::pair<int, int>>, kRelations> steps;
  std::array<std::vector<int>, kRelations> only;  // of each step its name, or -1; empty: none has one
  std::shared_ptr<const Selections> selections;
  std::vector<int>
      accepting;  // without the start; when looped, an empty step leads from each to the start
  bool looped = true;

  const std::vector<std::pair<int, int>>& of(Relation r) const { return steps[idx(r)]; }
  int name(Relation r, std::size_t step) const {
    return only[idx(r)].empty() ? -1 : only[idx(r)][step];
  }
  bool silently(int p, int q) const;  // p reaches q without reading anything
};

// Positions with the same future are merged, the start with none of them: in `so^* ; rw` the start
// and the position of `so` have the same future, but a cycle of `so` alone would then run through
// the start and completes no word. When looped, a position where a word must end is the start
// itself. With `merged`, of a machine that is not looped, the start may be merged, too: then walks
// that pass it come from one start to another.
Machine machine(const Positions& positions, bool looped, bool merged = false);

}  // namespace isolang::certify
