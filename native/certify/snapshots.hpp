// The snapshots of predicate reads whose set-reads are implicit: an order in which the included transactions commit,
// and for each predicate read the number of transactions in that order whose writes it saw.
//
// An implicit set-read of key x then takes the last version of x among the transactions seen. With an order that
// contains the version orders, the set-read has wr pairs only from transactions seen and rw pairs only to others.
// Suppose that each transaction seen precedes the reader and that the reader precedes each other transaction. If a
// check has no cycle with these pairs, it has none with the wr and rw pairs either.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "certify/checks.hpp"
#include "certify/choice.hpp"

namespace isolang::certify {

struct Snapshots {
  std::vector<std::int32_t> commits;
  std::vector<std::int64_t> place;        // the position of each transaction in the commit order, or -1
  // for each predicate read, how many transactions it saw; -1 if its rows are not judged
  std::vector<std::int64_t> seen;
  // for each transaction: the least and the largest number that its predicate reads saw; -1 if it
  // has none
  std::vector<std::int64_t> least, most;
};

// Decides with the checker's own code which predicate reads are judged. Throws Rejected.
Snapshots read_snapshots(const History& history, const Choice& choice,
                         std::span<const std::int32_t> commits, std::span<const std::int64_t> seen);

// Like verify_witness, for a history with implicit set-reads.
void verify_implicit_witness(const History& history, const std::vector<CheckText>& checks,
                             std::span<const std::int32_t> source,
                             std::span<const std::int64_t> order_start,
                             std::span<const std::int32_t> order_txn,
                             std::span<const std::int32_t> commits,
                             std::span<const std::int64_t> seen, Budget& budget);

// Returns whether some transaction may have missed a write by a transaction from which it had already read: `wr ; rw`,
// with the reads in that order, where at least one of the reads is an implicit set-read. If snapshots are ordered, a
// predicate read must see each transaction that was the source of an earlier read or was seen by an earlier predicate
// read, and no transaction whose write an earlier read missed.
bool misses_what_was_read(const History& history, const Choice& choice, const Snapshots& snapshots);

// Returns an acyclic check over whole transactions that forbids everything that this check forbids, and more if the
// check has names, tests, single keys or statements. Throws NotCertified if no such check is known.
Positions without_cycles(const ReadCheck& check);

}  // namespace isolang::certify
