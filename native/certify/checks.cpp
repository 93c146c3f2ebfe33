// `read_checks` parses the judged checks and determines their form. It throws `NotCertified` for a form that this
// checker does not know. A check of one key is refused if one of its walks could leave the key and return
// (`leads_elsewhere`), because the rewriting in one_key.cpp would lose that walk.
#include "certify/checks.hpp"

#include <algorithm>
#include <initializer_list>

namespace isolang::certify {
namespace {

// Returns whether the relation is an order that can be a step of a closed walk. `init` cannot, because nothing leads to
// T0.
bool is_order(int label) {
  constexpr Relation kOrders[] = {Relation::so, Relation::rt, Relation::group_rt};
  return std::ranges::any_of(kOrders, [&](Relation r) { return static_cast<int>(r) == label; });
}

// Returns whether a walk can pass through a transaction that does not access the key. It can do so by a letter that
// relates any two transactions and is not an order, or by two order steps in a row. For two steps of the same order,
// the first and the last transaction also form a pair of that order, but this helps only if the pair can replace the
// two steps. A transaction that passes [W] or [R] accesses the key. A transaction with a label or a level need not.
bool leads_elsewhere(const ReadCheck& check) {
  const Positions& p = check.positions;
  const auto foreign = [&](int label) {
    const int relation = relation_of_letter(label);
    return relation >= 0 && relation < static_cast<int>(Relation::wr) && !is_order(label) &&
           label != static_cast<int>(Relation::init);
  };
  if (std::ranges::any_of(p.label, foreign)) return true;
  const bool repeats = !check.acyclic() && p.repeatable();
  // Returns the orders that may come next, with nothing but tests of labels and levels in between.
  const auto next_orders = [&](int from) {
    std::vector<char> met(p.label.size(), 0);
    std::vector<int> work{from}, found;
    while (!work.empty()) {
      const int at = work.back();
      work.pop_back();
      const auto visit = [&](int f) {
        if (met[idx(f)]++ != 0) return;
        met[idx(f)] = 1;
        const int relation = relation_of_letter(p.label[idx(f)]);
        if (is_order(p.label[idx(f)])) found.push_back(f);
        if (relation == static_cast<int>(Relation::label) || relation == static_cast<int>(Relation::level))
          work.push_back(f);
      };
      std::ranges::for_each(p.follow[idx(at)], visit);
      if (p.accepting[idx(at)] != 0) std::ranges::for_each(p.follow[0], visit);
    }
    return found;
  };
  const auto may_follow = [&](int q, int f) {
    return std::ranges::find(p.follow[idx(q)], f) != p.follow[idx(q)].end() ||
           (repeats && p.accepting[idx(q)] != 0 && std::ranges::find(p.follow[0], f) != p.follow[0].end());
  };
  const auto does_in_place = [&](int once, int second) {
    return p.label[idx(once)] == p.label[idx(second)] && p.accepting[idx(once)] >= p.accepting[idx(second)] &&
           std::ranges::includes(p.follow[idx(once)], p.follow[idx(second)]);
  };
  const int count = static_cast<int>(p.label.size());
  for (int first = 1; first < count; ++first) {
    if (!is_order(p.label[idx(first)])) continue;
    for (const int second : next_orders(first)) {
      if (p.label[idx(first)] != p.label[idx(second)]) return true;
      for (int q = 0; q < count; ++q) {
        if (!may_follow(q, first)) continue;
        bool once = false;
        for (int f = 1; f < count && !once; ++f) once = may_follow(q, f) && does_in_place(f, second);
        if (!once) return true;
      }
    }
  }
  return false;
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
    if (check.of_one_key() && (compares || leads_elsewhere(check)))
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
    throw NotCertified{"not certified: the level refers to times, but the history has none"};
  if (groups && !history.has_groups())
    throw NotCertified{"not certified: the level uses group-rt, but the history has no groups"};
  if (!times && !(moments && !history.has_operation_times())) return checks;
  if (!history.has_time)
    throw NotCertified{"not certified: the level uses rt, but the history has no times"};
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
           c.positions.distinguishes_reads();
  });
}

}  // namespace isolang::certify
