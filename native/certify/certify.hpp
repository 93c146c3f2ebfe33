// The certificate checker: accepts a verdict only with a proof that it can follow from the history
// alone.
//
// It shares the history columns with the rest of the core, and nothing else. The same checker
// exists once more in Python (isolang/certify); the two were written to agree and are compared by
// the tests.
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

// What a check forbids: a cycle of steps that are each a word, or one word that leads back to where
// it began.
enum class CheckKind : std::uint8_t {
  acyclic,
  irreflexive,
  earlier,     // irreflexive wr ; rw, where the read of wr precedes that of rw in their transaction
  of_one_key,  // irreflexive, of walks that stay with one key; W and R are of that key
  by_statement,       // acyclic, of walks that pass single statements
  back_by_statement,  // irreflexive, of such walks
};

// One judged check of the spec, its expression in prefix form: "(| so wr (; ww (? rw)))"; W and R
// stand for [W], [R].
struct CheckText {
  std::string name;
  CheckKind kind;
  std::string expression;
  std::vector<NameText> names;  // wr@0 in the expression is wr of the keys that the first one selects
};

// The certificate does not prove its verdict.
struct Rejected {
  std::string reason;
};
// This checker cannot decide: a form of check it does not know, or a history too large for it.
struct NotCertified {
  std::string reason;
};

// The names are in core/relations.def, and to_write is ww to the write itself, from where only po
// leads on. X_of_key and the three behind it are the steps of X between transactions that access one
// key. The last ones are tests: they relate a transaction that writes, that has an external
// read, or that bears a name, to itself. No edge of a refutation is one, nor one of iwr to prw, by which an expression tells item
// reads from predicate reads: that is what the operation of a wr or rw edge says.
enum class Relation : std::uint8_t {
#define RELATION(id, name) id,
#include "core/relations.def"
  to_write,
#define PART(id, name, whole, reads) id,
#include "core/relations.def"
#define FILTERED(id, name) id##_of_key, id##_of_key_wr, id##_of_key_rw, id##_of_key_rr,
#include "core/relations.def"
#define TEST(id, name) id,
#include "core/relations.def"
  end
};
inline constexpr int kRelations = static_cast<int>(Relation::end);
// One of the relations between transactions that access one key.
struct Filtered {
  Relation relation;  // which it is a part of
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
int relation_of(std::string_view name);  // kNoRelation if there is none
std::string_view name_of(int relation);

// A refutation; see docs/architecture.md. Numbers come from outside: nothing about them is known
// yet.
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
struct Step {
  StepKind kind;
  std::string check;  // cycle
  std::vector<std::int64_t>
      numbers;                    // anomaly: its five; choice: op; order: key, then transactions
  std::vector<Edge> edges;        // cycle
  std::vector<Literal> literals;  // rup
};

// Return normally when the proof holds; throw Rejected, NotCertified, OutOfTime.
void verify_witness(const History& history, const std::vector<CheckText>& checks,
                    std::span<const std::int32_t> source, std::span<const std::int64_t> order_start,
                    std::span<const std::int32_t> order_txn, Budget& budget);
void verify_refutation(const History& history, const std::vector<CheckText>& checks,
                       const std::vector<Step>& steps, Budget& budget);

}  // namespace isolang::certify
