// The judged checks of a spec, ready to use.
#pragma once
#include <string>
#include <vector>

#include "certify/expression.hpp"

namespace isolang::certify {

struct ReadCheck {
  std::string name;
  bool acyclic;  // else irreflexive
  bool earlier;  // irreflexive wr ; rw, where the read of wr precedes that of rw in their
                 // transaction
  bool of_one_key;  // irreflexive, of walks that stay with one key; W and R are of that key
  bool by_statement;  // acyclic, of walks that pass single statements
  Positions positions;
};

// Also makes sure that the history has what the checks need (times for rt). Throws Rejected,
// NotCertified.
std::vector<ReadCheck> read_checks(const History& history, const std::vector<CheckText>& texts);

// Whether the checks depend on rf: only then do intrinsic anomalies violate them.
bool judges_reads(const std::vector<ReadCheck>& checks);

}  // namespace isolang::certify
