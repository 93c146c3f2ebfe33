// Checks whose models are total orders of events.
//
// The reason: let the check be `acyclic e`. It has one of two shapes.
//   - One event for each transaction: wr, ww and rw are words of e. Then a cycle of these (and of so or rt, if they are
//     words of e, too) is a closed walk of L(e)+. So a model has no such cycle, and the transactions have a total
//     order.
//   - Two events, reading and writing: wr, wr;rw and ww are words of e. There is an edge from reading to writing in
//     each transaction. For a word x(a, b) of one letter, there is an edge from the writing of a to the writing of b,
//     and to the reading of b if x;rw is a word as well. For rw(a, b), there is an edge from the reading of a to the
//     writing of b. A cycle of these edges visits a writing, and from each writing the path to the next one is x or
//     x;rw. So again the cycle spells a word of L(e)+.
//
// In the total order, the source of a read is the last writer of the key before the read, because wr puts the source
// before the read and rw puts every later writer after it.
#pragma once
#include "certify/checks.hpp"

namespace isolang::certify {

// The shape of a check, if it has one of the two (`fits`). `two`: reading and writing are separate events. `locks`:
// between the two events, no other transaction writes a key that the transaction writes. `so` and `rt`: the relation
// leads to the reading of a transaction.
struct TotalOrderShape {
  bool fits = false, two = false, locks = false, so = false, rt = false;
};
TotalOrderShape total_order_shape(const ReadCheck& check);

}  // namespace isolang::certify
