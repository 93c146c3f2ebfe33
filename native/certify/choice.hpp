// The choice made by a witness: the included transactions, the sources of reads and the version orders, all checked
// against the history.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "certify/certify.hpp"
#include "core/index.hpp"

namespace isolang::certify {

struct ExternalRead {
  std::int32_t reader, key;  // reader: the reading transaction, or the place of its statement
  std::int32_t source;  // the position of the source in the key's order, -1 for T0
  std::int32_t
      own;  // the position of the reader itself in the key's order, -1 if it does not write the key
  bool of_predicate = false;  // the read stands for a predicate read that found no matching row of this key
};

// The statements that read. In walks, each of them is a separate place, and these places are numbered after the
// transactions (see by_statement.hpp). Only a choice by statement has such places.
struct Statements {
  std::int32_t first = 0;           // the place of the first statement
  std::vector<std::int32_t> owner;  // the transaction of each statement
  std::vector<char> several;        // whether the place represents several statements, with po between them
  std::vector<std::int64_t> sent, answered;
  // For each writer in each version order: the first statement after its write, or -1 if there is
  // none.
  std::vector<std::int32_t> behind;

  std::size_t count() const { return owner.size(); }
  std::int32_t place(std::size_t i) const { return first + static_cast<std::int32_t>(i); }
  std::int32_t transaction(std::int32_t place) const {
    return owner.empty() || place < first ? place : owner[idx(place - first)];
  }
};

struct Choice {
  // For each place, whether it is included. Places are the transactions without T0, then the statements, which are
  // never included.
  std::vector<char> included;
  std::vector<ExternalRead> reads;      // the external reads of included transactions
  // the predicate read of each read, or -1; empty if the history has no predicate reads
  std::vector<std::int32_t> statement;
  std::vector<std::int64_t> op;         // the operation of each read, if the caller asked for it
  std::vector<std::int64_t> key_start;  // for each key, the start of its version order in `order`
  std::vector<std::int32_t> order;      // the included writers of each key, in version order
  Statements apart;

  std::int32_t places() const { return static_cast<std::int32_t>(included.size()); }
};

// Reads the choice and checks it against the history. With `judges_reads`, intrinsic anomalies violate the
// specification. With `operations`, the choice also contains the operation of each read. Throws Rejected or
// NotCertified.
Choice read_choice(const History& history, std::span<const std::int32_t> source,
                   std::span<const std::int64_t> order_start,
                   std::span<const std::int32_t> order_txn, bool judges_reads, bool operations,
                   Budget& budget);

}  // namespace isolang::certify
