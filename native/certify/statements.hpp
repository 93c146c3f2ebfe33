// Judges predicate reads a second time: this code works out from the texts of predicates and rows which rows match,
// independently of the reader.
#pragma once
#include "certify/certify.hpp"

namespace isolang::certify {

struct Snapshots;

// Checks that each predicate read has the operations required by its predicate and its rows: a read of each returned
// row that matches, and for each other key that ever held a matching row, a set-read of exactly these rows. If
// set-reads are implicit, some may be missing. In that case, each matching row that a predicate read sees in its
// snapshot must have been returned, or its key must be covered by an operation of the predicate read or by an own
// write. Throws Rejected or NotCertified.
void check_statements(const History& history, Budget& budget, const Snapshots* snapshots = nullptr);
// Returns whether the rows of a predicate read are judged here.
bool is_judged(const History& history, std::size_t statement);

}  // namespace isolang::certify
