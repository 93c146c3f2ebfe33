// The checks of a specification that the checker judges, with their parsed expressions.
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

// Parses the checks, and tests whether the history has the data they require, such as times for rt. Throws Rejected or
// NotCertified.
std::vector<ReadCheck> read_checks(const History& history, const std::vector<CheckText>& texts);

// Returns whether the checks depend on rf. Intrinsic anomalies violate only such checks.
bool judges_reads(const std::vector<ReadCheck>& checks);

}  // namespace isolang::certify
