// The certificate checker. It accepts a verdict only with a proof that it can follow from the history alone.
//
// It shares only the history columns with the rest of the core. A second implementation of the same checker exists in
// Python (isolang/certify). Both implementations should agree, and the tests compare them.
#pragma once
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "certify/names.hpp"
#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang::certify {

// The form of a check. It determines what the check forbids: a cycle whose steps are words of its expression, or a
// single word that leads back to its start.
enum class CheckKind : std::uint8_t {
  acyclic,
  irreflexive,
  // irreflexive wr ; rw, where the read of the wr step precedes the read of the rw step in their transaction
  earlier,
  of_one_key,  // irreflexive, over walks that stay on one key; [W] and [R] mean writers and readers of that key
  by_statement,       // acyclic, over walks through single statements
  back_by_statement,  // irreflexive, over walks through single statements
};

// One of the specification's judged checks, with its expression in prefix form: "(| so wr (; ww (? rw)))". W and R
// stand for [W] and [R].
struct CheckText {
  std::string name;
  CheckKind kind;
  std::string expression;
  std::vector<NameText> names;  // "wr@0" in the expression is wr restricted to the keys that names[0] selects
};

// Thrown if the certificate does not prove its verdict.
struct Rejected {
  std::string reason;
};
// Thrown if this checker cannot decide: it does not know a check's form, or the history is too large.
struct NotCertified {
  std::string reason;
};

// The relations, named as in core/relations.def. to_write is ww to the write itself; only po can follow it. X_of_key
// and the three relations after it contain the pairs of X between transactions that access the same key. The last
// relations are tests: each relates to itself every transaction that writes, that has an external read, or that has a
// name. A refutation's edge is never a test. Nor is it one of iwr to prw, by which an expression tells item reads from
// predicate reads: the operation of a wr or rw edge already shows the kind of its read.
enum class Relation : std::uint8_t {
#define RELATION(id, name) id,
#include "core/relations.def"
  to_write,
  mere_irw,
#define PART(id, name, whole, reads) id,
#include "core/relations.def"
#define FILTERED(id, name) id##_of_key, id##_of_key_wr, id##_of_key_rw, id##_of_key_rr,
#include "core/relations.def"
#define TEST(id, name) id,
#include "core/relations.def"
  end
};
inline constexpr int kRelations = static_cast<int>(Relation::end);
// A relation restricted to pairs of transactions that access the same key.
struct Filtered {
  Relation relation;  // the restricted relation
  bool from_reader, to_reader;
};
inline std::optional<Filtered> filtered(int relation) {
  constexpr Relation kGiven[] = {
#define FILTERED(id, name) Relation::id,
#include "core/relations.def"
  };
  const int count = 4 * static_cast<int>(std::size(kGiven));
  const int at = relation - (static_cast<int>(Relation::writes) - count);
  if (at < 0 || at >= count) return std::nullopt;
  return Filtered{kGiven[at / 4], at / 2 % 2 == 1, at % 2 == 1};
}
inline constexpr int kNoRelation = -1;
int relation_of(std::string_view name);  // kNoRelation if no relation has this name
std::string_view name_of(int relation);

// A refutation; see docs/architecture.md. All numbers come from a file and have not been checked in any way.
struct Edge {
  int relation;
  std::int64_t a, b, key, op, writer;
};
enum class LiteralKind : std::uint8_t { source, before, in };
struct Literal {
  bool positive;
  LiteralKind kind;
  std::int64_t x, y, z;  // source: op, txn; before: key, a, b; in: txn
};
enum class StepKind : std::uint8_t { anomaly, choice, cycle, order, rup, exhaustion };
struct RefutationStep {
  StepKind kind;
  std::string check;  // the name of the check violated by a cycle
  std::vector<std::int64_t>
      numbers;                    // anomaly: its five numbers; choice: op; order: key, then transactions
  std::vector<Edge> edges;        // the edges of a cycle
  std::vector<Literal> literals;  // the literals of a rup step
};

// Return normally if the proof holds; otherwise throw Rejected, NotCertified or OutOfTime.
void verify_witness(const History& history, const std::vector<CheckText>& checks,
                    std::span<const std::int32_t> source, std::span<const std::int64_t> order_start,
                    std::span<const std::int32_t> order_txn, Budget& budget);
void verify_refutation(const History& history, const std::vector<CheckText>& checks,
                       const std::vector<RefutationStep>& steps, Budget& budget);

}  // namespace isolang::certify
