#include "certify/checks.hpp"
#include "certify/choice.hpp"
#include "certify/product.hpp"

namespace isolang::certify {

void verify_witness(const History& history, const std::vector<CheckText>& texts, std::span<const std::int32_t> source,
                    std::span<const std::int64_t> order_start, std::span<const std::int32_t> order_txn, Budget& budget) {
  const std::vector<ReadCheck> checks = read_checks(history, texts);
  const Choice choice = read_choice(history, source, order_start, order_txn, judges_reads(checks), budget);
  for (const ReadCheck& check : checks) {
    const bool looped = check.acyclic || check.positions.repeatable();
    if (breaks(history, choice, machine(check.positions, looped), budget))
      throw Rejected{"check " + check.name + ": the witness has a violating cycle"};
  }
}

}  // namespace isolang::certify
