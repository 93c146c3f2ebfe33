// `verify_witness` accepts a witness if its sources and version orders explain the history, and if no check is
// violated. For a check of cycles, the product of the relations with the check's automaton must be acyclic. For a check
// of return paths, no walk may lead from the overwriting transaction back to the read.
#include <algorithm>
#include <optional>

#include "certify/by_statement.hpp"
#include "certify/checks.hpp"
#include "certify/choice.hpp"
#include "certify/given_order.hpp"
#include "certify/one_key.hpp"
#include "certify/product.hpp"
#include "certify/return_paths.hpp"
#include "certify/snapshots.hpp"
#include "certify/statements.hpp"
#include "core/implicit.hpp"

namespace isolang::certify {
void verify_witness(const History& history, const std::vector<CheckText>& texts,
                    std::span<const std::int32_t> source, std::span<const std::int64_t> order_start,
                    std::span<const std::int32_t> order_txn, Budget& budget) {
  const std::vector<ReadCheck> checks = read_checks(history, texts);
  if (is_implicit(history)) throw Rejected{"the witness says not what predicate reads saw"};
  check_statements(history, budget);
  const bool apart = std::ranges::any_of(checks, &ReadCheck::by_statement);
  const Choice choice = read_choice(history, source, order_start, order_txn, judges_reads(checks),
                                    apart, budget);
  const bool by_key = std::any_of(checks.begin(), checks.end(),
                                  [](const ReadCheck& check) { return check.of_one_key(); });
  const Accesses parts = by_key ? accesses(history, choice) : Accesses{};
  const bool writes = std::ranges::any_of(
      checks, [](const ReadCheck& check) { return check.positions.mentions(Relation::to_write); });
  const Choice together = apart ? by_statement(history, choice, writes, true) : Choice{};
  const bool merged = std::ranges::find(together.apart.several, 1) != together.apart.several.end();
  std::optional<Choice> one_by_one;
  const auto statements = [&]() -> const Choice& {
    if (!merged) return together;
    if (!one_by_one) one_by_one = by_statement(history, choice, writes, false);
    return *one_by_one;
  };
  // Decide return paths last, because they may need other checks to have no cycles.
  for (const bool return_paths : {false, true})
    for (const ReadCheck& check : checks) {
      const History& whole = check.of_one_key() ? parts.history : history;
      const auto chosen = [&]() -> const Choice& {
        return check.of_one_key() ? parts.choice : check.by_statement() ? statements() : choice;
      };
      const auto breaks_check = [&](Positions positions, bool looped) {
        if (!looped && !check.by_statement()) {
          if (returns_by_order(whole, chosen(), positions, kGivenOrders, budget)) return true;
          if (!any_word(positions)) return false;
          looped = positions.repeatable();
        }
        const Machine machine = certify::machine(positions, looped);
        // mutant: checker-together-decides
        if (check.by_statement() && merged && !breaks(whole, together, machine, budget)) return false;
        return breaks(whole, chosen(), machine, budget);
      };
      const bool looped = check.acyclic() || (!check.earlier() && check.positions.repeatable());
      const auto single = looped || check.earlier() ? std::nullopt : single_rw(check.positions);
      const auto source = looped || check.earlier() || check.by_statement()
                              ? std::nullopt
                              : before_source(check.positions);
      bool broken = false;
      if (!return_paths) {
        if (single)
          broken = any_word(single->without) &&
                   breaks_check(single->without, single->without.repeatable());
        else if (!check.earlier() && !source)
          broken = breaks_check(check.positions, looped);
      } else if (check.earlier()) {
        broken = closes_earlier_read(history, choice, budget);
      } else if (source) {
        // SOUND BECAUSE a walk that spells one word is also a walk that spells one or more words.
        broken = breaks_check(check.positions, true) &&
                 leads_back_to_source(whole, chosen(), *source, budget);
      } else if (single) {
        for (const auto& [closing, before] : single->before)
          broken = broken || closes_return_path(whole, chosen(), closing, before,
                                                check.by_statement(), budget);
      }
      if (broken) throw Rejected{"check " + check.name + ": the witness has a violating cycle"};
    }
}

void verify_implicit_witness(const History& history, const std::vector<CheckText>& texts,
                             std::span<const std::int32_t> source,
                             std::span<const std::int64_t> order_start,
                             std::span<const std::int32_t> order_txn,
                             std::span<const std::int32_t> commits,
                             std::span<const std::int64_t> seen, Budget& budget) {
  const std::vector<ReadCheck> checks = read_checks(history, texts);
  const Choice choice =
      read_choice(history, source, order_start, order_txn, judges_reads(checks),
                  std::ranges::any_of(checks, &ReadCheck::earlier), budget);
  const Snapshots snapshots = read_snapshots(history, choice, commits, seen);
  check_statements(history, budget, &snapshots);
  for (const ReadCheck& check : checks)
    if (check.earlier() ? closes_earlier_read(history, choice, budget) || misses_what_was_read(history, choice, snapshots)
                        : breaks(history, choice, machine(without_cycles(check), true), budget, &snapshots))
      throw NotCertified{"not certified: check " + check.name +
                         ": the order of snapshots does not show that it holds"};
}

}  // namespace isolang::certify
