// Predicate reads, judged once more: which rows match is evaluated here from the texts of predicate
// and rows, by other code than the reader's.
#pragma once
#include "certify/certify.hpp"

namespace isolang::certify {

// Whether each predicate read has the operations that its predicate and its rows ask for: reads of
// returned rows that match, and for each other key that ever held a matching row, a set-read of
// exactly these rows. Throws NotCertified.
void check_statements(const History& history, Budget& budget);

}  // namespace isolang::certify
