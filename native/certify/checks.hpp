// The judged checks of a specification, parsed for the checker.
#pragma once
#include <string>
#include <vector>

#include "certify/expression.hpp"

namespace isolang::certify {

struct ReadCheck {
  std::string name;
  CheckKind kind;
  Positions positions;

  bool acyclic() const { return kind == CheckKind::acyclic || kind == CheckKind::by_statement; }
  bool earlier() const { return kind == CheckKind::earlier; }
  bool of_one_key() const { return kind == CheckKind::of_one_key; }
  bool by_statement() const {
    return kind == CheckKind::by_statement || kind == CheckKind::back_by_statement;
  }
};

// Parses the checks, and makes sure that the history has what they need (times for rt). Throws Rejected or
// NotCertified.
std::vector<ReadCheck> read_checks(const History& history, const std::vector<CheckText>& texts);

// Returns whether the checks depend on rf. Intrinsic anomalies violate only such checks.
bool judges_reads(const std::vector<ReadCheck>& checks);

}  // namespace isolang::certify
