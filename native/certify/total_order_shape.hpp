// Checks whose models are total orders of events.
//
// Why. Let the check be `acyclic e`.
//   One event a transaction: wr, ww and rw are words of e. Then a cycle of these (and of so or rt,
//   if they are words of e, too) is a closed walk of L(e)+, so in a model there is none, and the
//   transactions have a total order. Two, reading and writing: wr, wr;rw and ww are words of e.
//   Edges: from reading to writing in each transaction; from the writing of a to the writing of b
//   for a word x(a, b) of one letter, to the reading of b if x;rw is a word as well; from the
//   reading of a to the writing of b for rw(a, b). A cycle of these visits a writing, and from each
//   one the way to the next is x or x;rw; so again it spells a word of L(e)+.
// On the total order the source of a read is the last writer of the key before it: wr puts it
// before, rw every later writer behind.
#pragma once
#include "certify/checks.hpp"

namespace isolang::certify {

// The shape that a check gives the relations. `two`: reading and writing are separate events. `locks`: between the two
// events, no other transaction writes a key that the transaction writes. `so` and `rt`: the relation leads to the
// reading of a transaction.
struct TotalOrderShape {
  bool fits = false, two = false, locks = false, so = false, rt = false;
};
TotalOrderShape total_order_shape(const ReadCheck& check);

}  // namespace isolang::certify
