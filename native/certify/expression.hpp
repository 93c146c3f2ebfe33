// The checker's own parser for the expression of a check: it builds a position automaton (Glushkov 1961), and from that
// a machine.
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

// A letter is a relation, possibly restricted by a name in quotes, such as wr on some keys.
inline int letter_of(int relation, int name) { return relation + kRelations * (name + 1); }
inline int relation_of_letter(int letter) { return letter < 0 ? letter : letter % kRelations; }
inline int name_of_letter(int letter) { return letter / kRelations - 1; }  // -1 if the letter has no name

inline bool is_test(int letter) {
  const int relation = relation_of_letter(letter);
  return relation >= static_cast<int>(Relation::writes) && relation <= static_cast<int>(Relation::level);
}

// Returns whether the relation is rw, irw, prw or mere_irw; reads_from() returns whether it is wr, iwr or pwr. Both take a
// relation without a name.
bool overwrites(int relation);
bool reads_from(int relation);
// Returns whether a read of this kind has pairs in the relation. of_writer: whether its transaction writes the key.
bool is_of(Relation relation, bool of_predicate, bool of_writer);

// Position 0 is the start and reads nothing. Every other position reads the relation of its label.
struct Positions {
  std::vector<int> label;                // the letter of each position; kNoRelation for the start
  std::vector<std::vector<int>> follow;  // the positions that may follow each position, ascending
  std::vector<char> accepting;  // whether a word may end here; never set for the start (see `nullable`)
  bool nullable = false;
  std::shared_ptr<const Selections> selections;  // what the names select in the history

  bool names() const;  // whether some letter has a name
  bool tests() const;
  bool mentions(Relation r) const;
  // tells_reads_apart() returns whether item reads and predicate reads are different letters. letter() returns the
  // letter of a pair of the relation whose read is of this kind.
  bool distinguishes_reads() const;
  int letter(int relation, bool of_predicate, bool of_writer) const;
  // Returns whether a walk spells a word of L(e), or of L(e)+ if `again`. `word` contains the walk's steps, without
  // tests. passes(i, test) tells whether the transaction where step i begins passes the test; after the last step, it
  // asks about the transaction where the walk ends. For a letter with a name, passes(i, letter) tells whether step i,
  // whose relation is that of the letter, also matches the letter's name.
  using Passes = std::function<bool(std::size_t, int)>;
  bool reads(const std::vector<int>& word, bool again, const Passes& passes) const;
  bool reads(int relation) const;  // whether this one step is in L(e)
  // Returns whether L(e)·L(e) is within L(e). Also returns false if the search reaches its limit.
  bool repeatable() const;
};

// Returns an automaton for the same words, limited to walks from a writer other than T0 to a reader. It omits init,
// because nothing leads to the start of an init pair, and tests that such walks always pass, such as [R] after wr.
Positions of_return_paths(Positions positions);

// Throws NotCertified if the text is not an expression.
Positions read_expression(std::string_view text, std::shared_ptr<const Selections> selections = nullptr);

// The machine from which a product graph is built. State 0 is the start; see machine().
struct Machine {
  int states = 1;
  std::array<std::vector<std::pair<int, int>>, kRelations> steps;
  // the name of each step, or -1; empty if no step of the relation has a name
  std::array<std::vector<int>, kRelations> only;
  std::shared_ptr<const Selections> selections;
  std::vector<int>
      accepting;  // the accepting states without the start; if looped, an empty step leads from each to the start
  bool looped = true;

  const std::vector<std::pair<int, int>>& of(Relation r) const { return steps[idx(r)]; }
  int name(Relation r, std::size_t step) const {
    return only[idx(r)].empty() ? -1 : only[idx(r)][step];
  }
  bool silently(int p, int q) const;  // whether q is reachable from p without reading anything
};

// Builds the machine. Positions with the same future are merged, but not with the start: in `so^* ; rw` the start and
// the position of `so` have the same future, but then a cycle of `so` alone would run through the start although it
// completes no word. If looped, a position where a word must end is the start itself. If `merged`, the start of a
// machine that is not looped may be merged, too. Walks through it then lead from one start to another.
Machine machine(const Positions& positions, bool looped, bool merged = false);

}  // namespace isolang::certify
