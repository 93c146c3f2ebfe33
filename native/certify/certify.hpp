// The certificate checker: accepts a verdict only with a proof that it can follow from the history
// alone.
//
// It shares the history columns with the rest of the core, and nothing else. The same checker
// exists once more in Python (isolang/certify); the two were written to agree and are compared by
// the tests.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang::certify {

// One judged check of the spec, its expression in prefix form: "(| so wr (; ww (? rw)))"; W and R
// stand for [W], [R].
struct CheckText {
  std::string name;
  std::string kind;  // acyclic, irreflexive, earlier, one key, by statement, irreflexive by
                           // statement: see ReadCheck
  std::string expression;
};

// The certificate does not prove its verdict.
struct Rejected {
  std::string reason;
};
// This checker cannot decide: a form of check it does not know, or a history too large for it.
struct NotCertified {
  std::string reason;
};

// From so_of_key on: so, rt, done and late between transactions that access one key, four of each:
// from a writer to a writer, from a writer to a reader, from a reader to either. The last two are
// to_write is ww to the write itself, from where only po leads on. The last two are
// tests: they relate a transaction that writes, or that has an external read, to itself. No edge of a
// refutation is one, nor one of iwr to prw, by which an expression tells item reads from predicate
// reads: that is what the operation of a wr or rw edge says.
enum class Relation : std::uint8_t {
  init = 0,
  so,
  rt,
  group_rt,
  done,
  late,
  locked,
  committed_before,
  answered_before,
  po,
  committed_after,
  own_commit,
  wr,
  ww,
  rw,
  to_write,
  iwr,
  pwr,
  irw,
  prw,
  so_of_key,
  writes = so_of_key + 16,
  reads
};
inline constexpr int kRelations = 38;
// One of the relations between transactions that access one key.
struct Filtered {
  Relation relation;  // which it is a part of
  bool from_reader, to_reader;
};
inline std::optional<Filtered> filtered(int relation) {
  const int at = relation - static_cast<int>(Relation::so_of_key);
  if (at < 0 || at >= 16) return std::nullopt;
  constexpr std::array given{Relation::so, Relation::rt, Relation::done, Relation::late};
  return Filtered{given[static_cast<std::size_t>(at / 4)], at / 2 % 2 == 1, at % 2 == 1};
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
