// Predicate reads, judged once more: which rows match is evaluated here from the texts of predicate
// and rows, by other code than the reader's.
#pragma once
#include "certify/certify.hpp"

namespace isolang::certify {

struct Snapshots;

// Whether each predicate read has the operations that its predicate and its rows ask for: reads of
// returned rows that match, and for each other key that ever held a matching row, a set-read of
// exactly these rows. Where set-reads are implicit, it may lack some: with snapshots, each row that a
// predicate read sees and that matches was returned, or is the subject of an operation or an own write.
// Throws Rejected, NotCertified.
void check_statements(const History& history, Budget& budget, const Snapshots* snapshots = nullptr);
// Whether the rows of a predicate read are judged here.
bool is_judged(const History& history, std::size_t statement);

}  // namespace isolang::certify
