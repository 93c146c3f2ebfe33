// The native writers. Python selects the transactions and operations that they write, and the texts of names and values
// (isolang/history/writers/outline.py, naming.py).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang {

// The part of a history to be written: transactions in the order of the history, each with its kept operations.
struct Outline {
  const History& history;
  std::span<const std::int32_t> txns;
  std::span<const std::int64_t> start;  // txns + 1: the operations of txns[i] are ops[start[i]] … ops[start[i+1]-1]
  std::span<const std::int64_t> ops;    // operation numbers
};

// A function that receives the text piece by piece.
using Sink = std::function<void(std::string_view)>;

// Write dbcop's bincode and Plume's text, in which keys and values are numbers. There is one key and one value for each
// kept operation.
void write_bincode(const Outline& outline, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                   const Sink& sink, Budget& budget);
void write_plume(const Outline& outline, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                 const Sink& sink, Budget& budget);

// The value of each kept operation, encoded: an atom (for a list read, the number of its list), or one of these
// constants. The number n is encoded as kFirstNumber - n, so kFirstNumber itself is 0.
inline constexpr std::int64_t kNameUnknown = -1, kNameInitial = -2, kFirstNumber = -3;

// The texts of atoms that are not numbers.
using Texts = std::unordered_map<std::int32_t, std::string>;

// The options and texts with which Jepsen's operation maps are written.
struct JepsenSpelling {
  bool json = false;
  bool times = false;                   // whether to write times of operations and of COMMIT
  bool real_time = false;               // whether to write invocations and to order all lines by real time
  std::vector<std::int64_t> processes;  // the process of each session, in order of first appearance
  Texts keys, values, groups, versions;
  std::vector<std::string> labels, levels;  // the texts of each set of names to be written
  std::vector<std::string> statements;      // of each transaction's operations; empty if none are known
  std::vector<std::string> units;           // of each transaction; empty if none are known
};

// Writes operation maps. If a transaction does not begin after the previous one in its session has ended, writes
// nothing and returns the two transactions, the later one first.
std::optional<std::pair<std::int32_t, std::int32_t>> write_jepsen(const Outline& outline,
                                                                  std::span<const std::int64_t> names,
                                                                  const JepsenSpelling& spelling, const Sink& sink,
                                                                  Budget& budget);

}  // namespace isolang
