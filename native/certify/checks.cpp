#include "certify/checks.hpp"

#include <algorithm>
#include <initializer_list>

namespace isolang::certify {
namespace {

// Whether a letter leads between transactions that need not access one key, and is no order, which has
// a pair of the first and the last of several transactions.
bool leads_elsewhere(const Positions& positions) {
  constexpr Relation kOrders[] = {Relation::init, Relation::so, Relation::rt, Relation::group_rt};
  return std::ranges::any_of(positions.label, [&](int label) {
    const int relation = relation_of_letter(label);
    return relation >= 0 && relation < static_cast<int>(Relation::wr) &&
           std::ranges::none_of(kOrders, [&](Relation r) { return static_cast<int>(r) == relation; });
  });
}

}  // namespace

std::vector<ReadCheck> read_checks(const History& history, const std::vector<CheckText>& texts) {
  std::vector<ReadCheck> checks;
  bool times = false, groups = false, moments = false;
  for (const CheckText& text : texts) {
    checks.push_back(
        {text.name, text.kind,
         read_expression(text.expression, text.names.empty() ? nullptr : std::make_shared<const Selections>(history, text.names))});
    const ReadCheck& check = checks.back();
    const Positions& positions = check.positions;
    const auto mentions = [&](std::initializer_list<Relation> some) {
      return std::ranges::any_of(some, [&](Relation r) { return positions.mentions(r); });
    };
    const bool times_of_statements = mentions(
        {Relation::committed_before, Relation::answered_before, Relation::committed_after});
    const bool statements = times_of_statements ||
                            mentions({Relation::po, Relation::own_commit, Relation::to_write});
    if (statements && !check.by_statement())
      throw NotCertified{"not certified: check " + text.name + " leads to statements"};
    if (check.earlier() &&
        (positions.label != std::vector{kNoRelation, static_cast<int>(Relation::wr),
                                        static_cast<int>(Relation::rw)} ||
         !positions.reads({static_cast<int>(Relation::wr), static_cast<int>(Relation::rw)}, false,
                          [](std::size_t, int) { return false; })))
      throw NotCertified{"not certified: check " + text.name +
                         ": the order of reads matters to 'wr ; rw' only"};
    if (positions.nullable)
      throw Rejected{"check " + text.name + ": the expression contains the identity"};
    const auto speaks_of = [&](Relation relation) {
      return positions.mentions(relation) ||
             std::any_of(positions.label.begin(), positions.label.end(), [&](int label) {
               const auto part = filtered(relation_of_letter(label));
               return part && part->relation == relation;
             });
    };
    groups |= positions.mentions(Relation::group_rt);
    times |= groups || speaks_of(Relation::rt);
    const bool compares =
        speaks_of(Relation::done) || speaks_of(Relation::late) || speaks_of(Relation::locked);
    if (check.of_one_key() && (compares || leads_elsewhere(positions)))
      throw NotCertified{"not certified: check " + text.name +
                         " of one key compares whole transactions"};
    if (check.kind == CheckKind::by_statement && !mentions({Relation::own_commit}))
      throw NotCertified{"not certified: check " + text.name +
                         " leads to statements, and not to their COMMIT"};
    if (check.by_statement() && (positions.tests() || positions.names() || mentions({Relation::late})))
      throw NotCertified{"not certified: check " + text.name +
                         " leads to statements, and says what is not known of these"};
    moments |= compares || times_of_statements;
  }
  if (moments && !history.has_time && !history.has_operation_times())
    throw NotCertified{"not certified: the spec speaks of times, but the history has none"};
  if (groups && !history.has_groups())
    throw NotCertified{"not certified: the spec uses group-rt, but the history has no groups"};
  if (!times && !(moments && !history.has_operation_times())) return checks;
  if (!history.has_time)
    throw NotCertified{"not certified: the spec uses rt, but the history has no times"};
  for (std::size_t t = 0; t < history.txn_status.size(); ++t)
    if (history.txn_status[t] == static_cast<std::uint8_t>(Status::committed) &&
        history.txn_end[t] < history.txn_begin[t])
      throw NotCertified{"not certified: transaction " + std::to_string(t) +
                         " ends before it begins"};
  return checks;
}

bool judges_reads(const std::vector<ReadCheck>& checks) {
  return std::any_of(checks.begin(), checks.end(), [](const ReadCheck& c) {
    return c.positions.mentions(Relation::wr) || c.positions.mentions(Relation::rw) ||
           c.positions.tells_reads_apart();
  });
}

}  // namespace isolang::certify
