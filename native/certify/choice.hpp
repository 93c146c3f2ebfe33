// What a witness chooses, found legal against the history: included transactions, sources, version
// orders.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "certify/certify.hpp"

namespace isolang::certify {

struct ExternalRead {
  std::int32_t reader, key;
  std::int32_t source;  // the position of the source in the key's order, -1 for T0
  std::int32_t
      own;  // the position of the reader itself in the key's order, -1 if it does not write the key
  bool of_predicate = false;  // it says, for a predicate read, that no matching row was there
};

struct Choice {
  std::vector<char> included;           // per transaction; T0 is not among them
  std::vector<ExternalRead> reads;      // of included transactions
  std::vector<std::int32_t> statement;  // of each of them, or -1; empty if there are none at all
  std::vector<std::int64_t> op;         // the operation of each read, if they were asked for
  std::vector<std::int64_t> key_start;  // per key, into order
  std::vector<std::int32_t> order;      // included writers in version order
  // In a choice by statement, of each of order: the first statement behind its write, or -1.
  std::vector<std::int32_t> behind;
};

// Throws Rejected, NotCertified. `judges_reads`: intrinsic anomalies violate the spec; `operations`:
// those of the reads are needed.
Choice read_choice(const History& history, std::span<const std::int32_t> source,
                   std::span<const std::int64_t> order_start,
                   std::span<const std::int32_t> order_txn, bool judges_reads, bool operations,
                   Budget& budget);

}  // namespace isolang::certify
