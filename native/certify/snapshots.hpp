// What predicate reads saw where their set-reads are implicit: an order in which the included
// transactions commit, and for each predicate read how many of them it saw the writes of.
//
// An implicit set-read of key x then takes the last version of x among those seen. With an order that
// contains the version orders, that has a wr pair from transactions seen alone, and rw pairs to others
// alone. So a check that has no cycle although each transaction seen precedes the reader, and the reader
// each other one, has none with these pairs either.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "certify/checks.hpp"
#include "certify/choice.hpp"

namespace isolang::certify {

struct Snapshots {
  std::vector<std::int32_t> commits;
  std::vector<std::int64_t> place;        // of each transaction among these, or -1
  std::vector<std::int64_t> seen;         // per predicate read, -1 where its rows are not judged
  std::vector<std::int64_t> least, most;  // per transaction: of its predicate reads; -1: it has none
};

// The checker's own reading of which predicate reads are judged. Throws Rejected.
Snapshots read_snapshots(const History& history, const Choice& choice,
                         std::span<const std::int32_t> commits, std::span<const std::int64_t> seen);

// As verify_witness, of a history with implicit set-reads.
void verify_implicit_witness(const History& history, const std::vector<CheckText>& checks,
                             std::span<const std::int32_t> source,
                             std::span<const std::int64_t> order_start,
                             std::span<const std::int32_t> order_txn,
                             std::span<const std::int32_t> commits,
                             std::span<const std::int64_t> seen, Budget& budget);

// Whether some transaction may have missed, where set-reads are implicit or by them, a write of whom it
// read from before: `wr ; rw` whose reads are in that order. With the order of snapshots, a predicate read
// sees each transaction that was read from before or that an earlier one saw, and none whose write a
// later read missed.
bool misses_what_was_read(const History& history, const Choice& choice, const Snapshots& snapshots);

// An acyclic check, of whole transactions, that forbids what this one does, and more where it speaks of
// names, tests, single keys or statements. Throws NotCertified if none is known.
Positions without_cycles(const ReadCheck& check);

}  // namespace isolang::certify
