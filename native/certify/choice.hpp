// What a witness chooses, found legal against the history: included transactions, sources, version
// orders.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "certify/certify.hpp"
#include "core/index.hpp"

namespace isolang::certify {

struct ExternalRead {
  std::int32_t reader, key;  // the reader, or the place of its statement
  std::int32_t source;  // the position of the source in the key's order, -1 for T0
  std::int32_t
      own;  // the position of the reader itself in the key's order, -1 if it does not write the key
  bool of_predicate = false;  // it says, for a predicate read, that no matching row was there
};

// The statements that read, where each is a place of its own in walks, behind those of the
// transactions: see by_statement.hpp. Only a choice by statement has any.
struct Statements {
  std::int32_t first = 0;           // the place of the first of them
  std::vector<std::int32_t> owner;  // the transaction that each is part of
  std::vector<char> several;        // more than one, with po between them
  std::vector<std::int64_t> sent, answered;
  // Of each writer in each version order, the first statement behind its write, or -1.
  std::vector<std::int32_t> behind;

  std::size_t count() const { return owner.size(); }
  std::int32_t place(std::size_t i) const { return first + static_cast<std::int32_t>(i); }
  std::int32_t transaction(std::int32_t place) const {
    return owner.empty() || place < first ? place : owner[idx(place - first)];
  }
};

struct Choice {
  // Per place: the transactions, T0 not among them, and behind them the statements, which are included
  // in nothing.
  std::vector<char> included;
  std::vector<ExternalRead> reads;      // of included transactions
  std::vector<std::int32_t> statement;  // of each of them, or -1; empty if there are none at all
  std::vector<std::int64_t> op;         // the operation of each read, if they were asked for
  std::vector<std::int64_t> key_start;  // per key, into order
  std::vector<std::int32_t> order;      // included writers in version order
  Statements apart;

  std::int32_t places() const { return static_cast<std::int32_t>(included.size()); }
};

// Throws Rejected, NotCertified. `judges_reads`: intrinsic anomalies violate the spec; `operations`:
// those of the reads are needed.
Choice read_choice(const History& history, std::span<const std::int32_t> source,
                   std::span<const std::int64_t> order_start,
                   std::span<const std::int32_t> order_txn, bool judges_reads, bool operations,
                   Budget& budget);

}  // namespace isolang::certify
