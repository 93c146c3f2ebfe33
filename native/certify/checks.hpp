// The judged checks of a spec, ready to use.
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

// Also makes sure that the history has what the checks need (times for rt). Throws Rejected,
// NotCertified.
std::vector<ReadCheck> read_checks(const History& history, const std::vector<CheckText>& texts);

// Whether the checks depend on rf: only then do intrinsic anomalies violate them.
bool judges_reads(const std::vector<ReadCheck>& checks);

}  // namespace isolang::certify
