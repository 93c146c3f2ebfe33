// Checks a refutation step by step: each clause must follow from the history, the axioms or earlier clauses.
//
// By convention, excluded indeterminate transactions come last in every order, in the order of their numbers, and their
// reads have no source, so that clauses need no special cases for them. An edge out of such a transaction does not
// exist, or leads to another excluded transaction with a larger number. Therefore no closed walk passes through an
// excluded transaction.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "certify/checks.hpp"
#include "certify/evidence.hpp"
#include "certify/necessary_precedences.hpp"
#include "certify/propagation.hpp"
#include "certify/stated_versions.hpp"
#include "certify/statements.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

constexpr std::int64_t kUnused = -1;

struct LiteralKey {
  LiteralKind kind;
  std::int64_t x, y, z;
  bool operator==(const LiteralKey&) const = default;
};
struct LiteralHash {
  std::size_t operator()(const LiteralKey& k) const {
    std::uint64_t h = static_cast<std::uint64_t>(k.kind);
    for (const std::int64_t part : {k.x, k.y, k.z}) {
      h = (h ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 32;
    }
    return idx(h);
  }
};

class Checker {
 public:
  Checker(const History& history, const std::vector<CheckText>& texts, Budget& budget)
      : history_(history), budget_(budget), evidence_(history, budget), clauses_(budget) {
    for (ReadCheck& check : read_checks(history, texts))
      checks_.insert_or_assign(check.name, std::move(check));
    for (const auto& [name, check] : checks_) all_.push_back(check);
    judges_reads_ = judges_reads(all_);
  }

  // Returns whether the step's clause is empty.
  bool step(const RefutationStep& step) {
    std::vector<Lit> clause;
    switch (step.kind) {
      case StepKind::anomaly:
        clause = anomaly(step.numbers);
        break;
      case StepKind::choice:
        clause = choice(step.numbers.at(0));
        break;
      case StepKind::cycle:
        clause = cycle(step);
        break;
      case StepKind::order:
        clause = order(step.numbers);
        break;
      case StepKind::rup:
        for (const Literal& l : step.literals) clause.push_back(literal(l) ^ (l.positive ? 0 : 1));
        if (!clauses_.implies(clause)) throw Rejected{"rup: unit propagation reaches no conflict"};
        break;
      case StepKind::exhaustion:  // the claim itself is checked; its clause is empty
        if (!no_total_order(history_, all_, evidence_, budget_))
          throw NotCertified{
              "not certified: an exhaustive search found no order of the transactions, which "
              "leaves no proof to check"};
        break;
    }
    bool empty = true;
    for (const Lit l : clause) empty &= l == kFalse;
    clauses_.add(std::move(clause));
    return empty;
  }

 private:
  const History& history_;
  Budget& budget_;
  Evidence evidence_;
  Propagation clauses_;
  std::map<std::string, ReadCheck> checks_;
  std::vector<ReadCheck> all_;
  bool judges_reads_ = false;
  std::unordered_map<LiteralKey, Lit, LiteralHash> literals_;
  std::unordered_map<std::int64_t, std::int32_t>
      groups_;  // read -> the group of its source literals
  std::unordered_map<std::int64_t, std::vector<std::int32_t>> candidates_;

  static std::string str(std::int64_t i) { return std::to_string(i); }

  // --- the steps ---

  std::vector<Lit> anomaly(const std::vector<std::int64_t>& step) {
    const std::int64_t kind = step.at(0), txn = step.at(1), op = step.at(2), other_txn = step.at(3),
                       other_op = step.at(4);
    belongs(op, txn);
    if (other_op != kUnused) {
      belongs(other_op, other_txn);
      if (evidence_.key_of(op) != evidence_.key_of(other_op))
        throw Rejected{"anomaly: the two operations have different keys"};
    }
    std::vector<std::int64_t> readers{txn};
    if (kind == static_cast<std::int64_t>(Kind::contradicting_versions)) {
      // Versions that contradict each other are wrong whether or not the specification judges reads.
      if (!contradict(history_, op, other_op))
        throw Rejected{"anomaly: the versions stated do not contradict each other"};
    } else if (!judges_reads_) {
      // If the specification does not judge reads, the only violation is a contradiction in vo, because every ww
      // contains vo.
      const std::int64_t other = other_op == kUnused ? op : other_op;
      if (!evidence_.contradicts_order(op, other))
        throw Rejected{"anomaly: the level ignores reads, and vo is an order"};
      readers.push_back(evidence_.txn_of(other));
    } else if (kind == static_cast<std::int64_t>(Kind::incompatible_order) && other_op != kUnused) {
      if (!evidence_.incompatible(op, other_op))
        throw Rejected{"anomaly: one list read is a prefix of the other"};
      readers.push_back(other_txn);
    } else if (kind == static_cast<std::int64_t>(Kind::two_values) && other_op != kUnused &&
               evidence_.is_read(other_op)) {
      if (!evidence_.disagree(op, other_op))
        throw Rejected{"anomaly: the two reads do not give one version two values"};
      readers.push_back(other_txn);
    } else if (!evidence_.has_anomaly(op, kind)) {
      throw Rejected{"anomaly: operation " + str(op) + " shows none of kind " + str(kind)};
    }
    std::vector<Lit> clause;
    for (const std::int64_t t : readers) clause.push_back(included(t) ^ 1);
    return clause;
  }

  void belongs(std::int64_t op, std::int64_t txn) const {
    if (!evidence_.of_transaction(op, txn))
      throw Rejected{"operation " + str(op) + " is not of transaction " + str(txn)};
  }

  std::vector<Lit> choice(std::int64_t op) {
    const std::vector<std::int32_t> from = candidates(op);
    if (from.empty() && !judges_reads_)
      throw Rejected{"choice: the level ignores reads, so a read may have no source"};
    std::vector<Lit> clause;
    for (const std::int32_t u : from) clause.push_back(source(op, u));
    clause.push_back(included(evidence_.txn_of(op)) ^ 1);
    return clause;
  }

  std::vector<Lit> cycle(const RefutationStep& step) {
    const auto found = checks_.find(step.check);
    if (found == checks_.end()) throw Rejected{"cycle: the spec has no check " + step.check};
    if (step.edges.empty()) throw Rejected{"cycle: it has no edges"};
    std::vector<Lit> clause;
    for (std::size_t i = 0; i < step.edges.size(); ++i) {
      const Edge& edge = step.edges[i];
      const Edge& next = step.edges[i + 1 < step.edges.size() ? i + 1 : 0];
      if (edge.b != next.a)
        throw Rejected{"cycle: an edge ends at " + str(edge.b) + ", the next begins at " +
                       str(next.a)};
      need(edge, clause);
      if (!found->second.by_statement()) continue;
      // mutant: checker-any-statement
      // What precedes a transaction in its session precedes each of its statements.
      if (leads_to_each(edge)) {
        if (is_between(next) && !evidence_.has_external_read(edge.b, [&](std::int64_t op) {
              // mutant: checker-steps-from-nowhere
              return meets(op, next);
            }))
          throw Rejected{"cycle: no statement of " + str(edge.b) + " is where the next edge begins"};
        continue;
      }
      if (leads_to_write(edge, next)) {
        if (!evidence_.writes_before(edge.b, static_cast<std::int32_t>(edge.key), next.op))
          throw Rejected{"cycle: a write does not come before what follows it"};
        continue;
      }
      if (leads_to_statement(edge) != leads_from_statement(next) ||
          (leads_to_statement(edge) &&
           !meets(edge.op, next)))
        throw Rejected{"cycle: an edge ends at another statement than the next begins at"};
    }
    const std::int64_t key = found->second.of_one_key() ? the_key(step.edges) : kUnused;
    std::vector<Edge> walk = step.edges;
    const Positions& positions = found->second.positions;
    const auto passes = [&](std::size_t i, int letter) {
      const Edge& edge = walk[i % walk.size()];
      const std::int64_t t = edge.a;
      const int relation = relation_of_letter(letter), name = name_of_letter(letter);
      const auto has = [&](std::int64_t one) {
        return name < 0 || (one >= 0 && positions.selections->key(idx(name), one));
      };
      if (!is_test(letter)) {  // a letter with a name
        if (const auto part = filtered(relation)) return evidence_.share_key(t, edge.b, *part, has);
        return has(edge.key);
      }
      if (relation == static_cast<int>(Relation::label) || relation == static_cast<int>(Relation::level))
        return positions.selections->transaction(idx(name), evidence_.history(), t);
      const bool reader = relation == static_cast<int>(Relation::reads);
      if (key != kUnused)
        return has(key) && (reader ? evidence_.reads_key(t, static_cast<std::int32_t>(key))
                                   : evidence_.writes_key(t, static_cast<std::int32_t>(key)));
      if (name >= 0) return evidence_.accesses_key(t, reader, has);
      return reader ? evidence_.reads(t) : evidence_.writes(t);
    };
    const auto fits = [&] {
      std::vector<int> word;
      for (std::size_t i = 0; i < walk.size(); ++i) {
        const Edge& edge = walk[i];
        word.push_back(leads_to_write(edge, walk[i + 1 < walk.size() ? i + 1 : 0])
                           ? static_cast<int>(Relation::to_write)
                           : found->second.positions.letter(
                                 edge.relation,
                                 edge.op != kUnused && evidence_.of_predicate(edge.op),
                                 edge.relation == static_cast<int>(Relation::rw) &&
                                     evidence_.writes_key(edge.a, static_cast<std::int32_t>(edge.key))));
      }
      return found->second.positions.reads(word, found->second.acyclic(), passes);
    };
    // A closed walk may be read from any of its steps.
    const auto fits_from_somewhere = [&] {
      for (std::size_t turn = 0; turn < walk.size(); ++turn) {
        if (fits()) return true;
        std::ranges::rotate(walk, walk.begin() + 1);
      }
      return false;
    };
    bool fit = fits_from_somewhere();
    if (!fit && key != kUnused) {
      walk = with_joined_versions(step.edges);
      fit = fits_from_somewhere();
    }
    if (!fit) throw Rejected{"cycle: the edges spell no word of " + step.check};
    if (found->second.earlier() && !evidence_.reads_first(walk[0].op, walk[1].op))
      throw Rejected{"cycle: the first of the two reads is not the earlier one"};
    for (Lit& l : clause) l ^= 1;
    return clause;
  }

  std::vector<Lit> order(const std::vector<std::int64_t>& step) {
    if (step.size() < 3) throw Rejected{"order: fewer than two transactions"};
    std::vector<Lit> clause;
    for (std::size_t i = 1; i < step.size(); ++i)
      clause.push_back(before(step[0], step[i], step[i + 1 < step.size() ? i + 1 : 1]) ^ 1);
    return clause;
  }

  // --- edges ---

  // The functions below classify the edges of a check by statement.
  static bool leads_to_statement(const Edge& e) {
    return e.relation == static_cast<int>(Relation::wr) ||
           e.relation == static_cast<int>(Relation::committed_before) || is_between(e);
  }
  static bool leads_from_statement(const Edge& e) {
    return e.relation == static_cast<int>(Relation::rw) ||
           e.relation == static_cast<int>(Relation::committed_after) ||
           e.relation == static_cast<int>(Relation::own_commit) || is_between(e);
  }
  static bool leads_to_each(const Edge& e) {
    return e.relation == static_cast<int>(Relation::so) ||
           e.relation == static_cast<int>(Relation::init);
  }
  // Returns whether the edge is a step of the version order that continues inside the overwriting transaction.
  static bool leads_to_write(const Edge& e, const Edge& next) {
    return e.relation == static_cast<int>(Relation::ww) &&
           next.relation == static_cast<int>(Relation::po);
  }
  // Returns whether the edge leads from one statement to another. Its `op` belongs to the statement where the edge
  // ends, and the previous edge determines the statement where it begins.
  static bool is_between(const Edge& e) {
    return e.relation == static_cast<int>(Relation::answered_before) ||
           e.relation == static_cast<int>(Relation::po);
  }
  // Returns whether the next edge may begin at the statement of `op`.
  bool meets(std::int64_t op, const Edge& next) {
    if (next.relation == static_cast<int>(Relation::answered_before))
      // mutant: checker-answered-before
      return evidence_.answered_before(op, next.op);
    if (next.relation == static_cast<int>(Relation::po))
      return evidence_.txn_of(op) == evidence_.txn_of(next.op) && evidence_.reads_first(op, next.op);
    return evidence_.one_statement(op, next.op);
  }

  // Adds the literals under which the edge exists. Throws if it never exists.
  void need(const Edge& e, std::vector<Lit>& clause) {
    const bool keyed = e.relation == static_cast<int>(Relation::wr) ||
                       e.relation == static_cast<int>(Relation::ww) ||
                       e.relation == static_cast<int>(Relation::rw);
    const bool reads = keyed && e.relation != static_cast<int>(Relation::ww);
    const bool overwrites = e.relation == static_cast<int>(Relation::rw);
    const bool statement = leads_to_statement(e) || leads_from_statement(e);
    if ((!keyed && e.key != kUnused) || (!reads && !statement && e.op != kUnused) ||
        (!overwrites && e.writer != kUnused))
      throw Rejected{"edge " + text(e) + ": a field that is not used is set"};
    bool fact = true;
    const auto part = filtered(e.relation);
    const int relation = part ? static_cast<int>(part->relation) : e.relation;
    switch (relation) {
      case static_cast<int>(Relation::committed_before):
        // mutant: checker-committed-before
        fact = evidence_.committed_before(e.a, e.op) && evidence_.txn_of(e.op) == e.b;
        break;
      case static_cast<int>(Relation::answered_before):
      case static_cast<int>(Relation::po):
        fact = evidence_.is_operation(e.op) && evidence_.is_external(e.op) &&
               evidence_.txn_of(e.op) == e.b;
        break;
      case static_cast<int>(Relation::committed_after):
        // mutant: checker-committed-after
        fact = evidence_.committed_after(e.op, e.b) && evidence_.txn_of(e.op) == e.a;
        break;
      case static_cast<int>(Relation::own_commit):
        fact = e.a == e.b && evidence_.is_operation(e.op) && evidence_.is_external(e.op) &&
               evidence_.txn_of(e.op) == e.a;
        break;
      case static_cast<int>(Relation::wr):
        reads_key(e, e.b);
        clause.push_back(source(e.op, e.a));
        break;
      case static_cast<int>(Relation::ww):
        clause.push_back(before(e.key, e.a, e.b));
        break;
      case static_cast<int>(Relation::rw):
        reads_key(e, e.a);
        if (e.a == e.b) throw Rejected{"edge " + text(e) + ": rw leaves out the identity"};
        clause.push_back(source(e.op, e.writer));
        clause.push_back(before(e.key, e.writer, e.b));
        break;
      default:
        const std::optional<bool> given = evidence_.given(relation, e.a, e.b);
        if (!given) throw Rejected{"edge: unknown relation"};
        fact = *given;
    }
    if (!fact || (part && !evidence_.share_key(e.a, e.b, *part, [](std::int32_t) { return true; })))
      throw Rejected{"edge " + text(e) + ": the history does not say so"};
  }

  // Returns the same walk with successive steps of the version order joined into one. This is sound because the
  // versions of one key are in a total order.
  static std::vector<Edge> with_joined_versions(const std::vector<Edge>& edges) {
    std::vector<Edge> found;
    for (const Edge& e : edges) {
      if (!found.empty() && found.back().relation == e.relation &&
          e.relation == static_cast<int>(Relation::ww))
        found.back().b = e.b;
      else
        found.push_back(e);
    }
    return found;
  }

  // Returns the key of all edges that have one. Throws Rejected if they have several different
  // keys, or none at all.
  static std::int64_t the_key(const std::vector<Edge>& edges) {
    std::int64_t key = kUnused;
    for (const Edge& e : edges) {
      if (e.key == kUnused) continue;
      // mutant: checker-several-keys
      if (key != kUnused && e.key != key) throw Rejected{"cycle: its edges have several keys"};
      key = e.key;
    }
    if (key == kUnused) throw Rejected{"cycle: no edge states its key"};
    return key;
  }

  void reads_key(const Edge& e, std::int64_t reader) {
    candidates(e.op);
    if (evidence_.txn_of(e.op) != reader || evidence_.key_of(e.op) != e.key)
      throw Rejected{"edge " + text(e) + ": not a read of that key by that transaction"};
  }

  static std::string text(const Edge& e) {
    return std::string(name_of(e.relation)) + " " + str(e.a) + " " + str(e.b);
  }

  // --- literals ---

  const std::vector<std::int32_t>& candidates(std::int64_t op) {
    const auto found = candidates_.find(op);
    if (found != candidates_.end()) return found->second;
    if (!evidence_.is_external(op)) throw Rejected{"operation " + str(op) + " is no external read"};
    return candidates_.emplace(op, evidence_.candidates(op)).first->second;
  }

  Lit literal(const Literal& l) {
    switch (l.kind) {
      case LiteralKind::source:
        return source(l.x, l.y);
      case LiteralKind::before:
        return before(l.x, l.y, l.z);
      case LiteralKind::in:
        return included(l.x);
    }
    throw Rejected{"no literal"};
  }

  Lit source(std::int64_t op, std::int64_t u) {
    const auto& from = candidates(op);
    const LiteralKey key{LiteralKind::source, op, u, 0};
    if (const auto known = literals_.find(key); known != literals_.end()) return known->second;
    if (std::find(from.begin(), from.end(), u) == from.end())
      throw Rejected{"transaction " + str(u) + " is no candidate of the read " + str(op)};
    const std::int32_t reader = evidence_.txn_of(op);
    Lit variable = kTrue;
    if (from.size() > 1 || included(reader) != kTrue) {
      const auto [group, fresh] = groups_.try_emplace(op, 0);
      if (fresh) group->second = clauses_.new_group();
      variable = clauses_.variable(group->second);
      // If the reader is excluded, the read has no source. The source of a read is included.
      clauses_.add({variable ^ 1, included(reader)});
      clauses_.add({variable ^ 1, included(u)});
    }
    literals_.emplace(key, variable);
    return variable;
  }

  Lit before(std::int64_t key, std::int64_t a, std::int64_t b) {
    if (!evidence_.is_key(key)) throw Rejected{"there is no key " + str(key)};
    if (a == b)
      throw Rejected{"transaction " + str(a) + " does not precede itself in key " + str(key)};
    if (a > b && b != evidence_.t0() && a != evidence_.t0()) return before(key, b, a) ^ 1;
    const LiteralKey name{LiteralKind::before, key, a, b};
    if (const auto known = literals_.find(name); known != literals_.end()) return known->second;
    const auto k = static_cast<std::int32_t>(key);
    for (const std::int64_t t : {a, b})
      if (!evidence_.writes_key(t, k))
        throw Rejected{"transaction " + str(t) + " is no writer of key " + str(key)};
    const auto first = static_cast<std::int32_t>(a), second = static_cast<std::int32_t>(b);
    Lit value = kFalse;
    if (a == evidence_.t0()) {
      value = kTrue;
    } else if (b != evidence_.t0()) {
      const std::int64_t list = evidence_.most_informative_list(k);
      if ((list >= 0 && evidence_.shows(list, first, second)) ||
          stated_before(history_, k, first, second)) {
        value = kTrue;
      } else if (stated_before(history_, k, second, first)) {
        value = kFalse;
      } else if (list < 0 || !evidence_.shows(list, second, first)) {
        value = clauses_.variable();
        conditional_order(value, k, first, second);
        conditional_order(value ^ 1, k, second, first);
      }
    }
    literals_.emplace(name, value);
    return value;
  }

  // Adds the meaning of the literal `holds` (a before b), both for included and for excluded indeterminate
  // transactions.
  void conditional_order(Lit holds, std::int32_t key, std::int32_t a, std::int32_t b) {
    clauses_.add({holds ^ 1, included(a),
                  included(b) ^ 1});  // an excluded transaction is last in every order
    for (const std::int64_t op : evidence_.indeterminate_list_reads(key))
      if (evidence_.shows(op, a, b)) clauses_.add({included(evidence_.txn_of(op)) ^ 1, holds});
  }

  Lit included(std::int64_t t) {
    if (!evidence_.live(t)) throw Rejected{"transaction " + str(t) + " is never included"};
    if (evidence_.certain(t) || evidence_.forced(static_cast<std::int32_t>(t))) return kTrue;
    const auto [known, fresh] = literals_.try_emplace(LiteralKey{LiteralKind::in, t, 0, 0}, kTrue);
    if (!fresh) return known->second;
    const Lit variable = known->second = clauses_.variable();
    for (const std::int32_t reader : evidence_.showing(static_cast<std::int32_t>(t)))
      clauses_.add({included(reader) ^ 1, variable});
    return variable;
  }
};

}  // namespace

void verify_refutation(const History& history, const std::vector<CheckText>& checks,
                       const std::vector<RefutationStep>& steps, Budget& budget) {
  check_statements(history, budget);
  Checker checker(history, checks, budget);
  if (steps.empty()) throw Rejected{"the refutation has no steps"};
  bool empty = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    budget.poll();
    try {
      empty = checker.step(steps[i]);
    } catch (const Rejected& rejected) {
      throw Rejected{"step " + std::to_string(i) + ": " + rejected.reason};
    }
  }
  if (!empty) throw Rejected{"the last step is not the empty clause"};
}

}  // namespace isolang::certify
