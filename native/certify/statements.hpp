// Judges predicate reads a second time: this code works out from the texts of predicates and rows which rows match,
// independently of the reader.
#pragma once
#include "certify/certify.hpp"

namespace isolang::certify {

struct Snapshots;

// Checks that each predicate read has the operations that its predicate and its rows require: a read of each returned
// row that matches, and for each other key that ever held a matching row, a set-read of exactly these rows. If
// set-reads are implicit, some may be missing. Then, by the snapshots, each row that a predicate read sees and that
// matches must have been returned, or be the subject of an operation or of an own write. Throws Rejected or
// NotCertified.
void check_statements(const History& history, Budget& budget, const Snapshots* snapshots = nullptr);
// Returns whether the rows of a predicate read are judged here.
bool is_judged(const History& history, std::size_t statement);

}  // namespace isolang::certify
