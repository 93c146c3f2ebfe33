// The native writers: they spell what Python has decided to write (isolang/history/writers/outline.py, naming.py).
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

// What is written of a history: transactions in its order, each with the operations that are kept.
struct Outline {
  const History& history;
  std::span<const std::int32_t> txns;
  std::span<const std::int64_t> start;  // txns + 1: the operations of txns[i] are ops[start[i]] … ops[start[i+1]-1]
  std::span<const std::int64_t> ops;    // numbers of operations
};

// Takes the text, in pieces.
using Sink = std::function<void(std::string_view)>;

// dbcop's bincode and Plume's text, of numbers: a key and a value for each operation that is kept.
void write_bincode(const Outline& outline, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                   const Sink& sink, Budget& budget);
void write_plume(const Outline& outline, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                 const Sink& sink, Budget& budget);

// Names of values, one for each operation that is kept: an atom (of a list read: the list), or one of these; below
// kFirstNumber are numbers: kFirstNumber - n for n.
inline constexpr std::int64_t kNameUnknown = -1, kNameInitial = -2, kFirstNumber = -3;

// Texts of atoms that are not numbers.
using Texts = std::unordered_map<std::int32_t, std::string>;

// How Jepsen's operation maps are spelled.
struct JepsenSpelling {
  bool json = false;
  bool times = false;                   // of operations and of COMMIT
  bool real_time = false;               // order lines by it, with invocations
  std::vector<std::int64_t> processes;  // of each session, by first appearance
  Texts keys, values, groups, versions;
  std::vector<std::string> labels, levels;  // of each set that is written
};

// Writes operation maps; or, if a transaction does not begin after the one before it in its session has ended, writes
// nothing and gives the two (the later one first).
std::optional<std::pair<std::int32_t, std::int32_t>> write_jepsen(const Outline& outline,
                                                                  std::span<const std::int64_t> names,
                                                                  const JepsenSpelling& spelling, const Sink& sink,
                                                                  Budget& budget);

}  // namespace isolang
