// What was there before a history begins: rows and lists that nobody in it wrote.
//
// THE RULE. A key holds at most one value that nobody in the history wrote, and it is the first in
// the key's version order: T0 wrote it. nil, and the empty list, are such a value, too, where nobody
// deleted the row. Which one it is, the first committed read that shows one says; without a committed
// one, a read of unknown outcome. Of a list it is what precedes the first element that a
// transaction appended. A read of another one reads a version of T0 that does not exist.
//
// A value that somebody wrote is that write's, also if the write failed or was aborted.
//
// A stream that is joined in the middle is read by the same rule, with what its last cut left for T0.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// The first element of a list that lacks its initial elements; no transaction appends it.
inline constexpr std::string_view kWithoutBeginning = "#without-what-was-there";

struct Before {
  std::int64_t registers = 0, lists = 0;  // that held something
  // Reads of a key between which nothing decides: all are of unknown outcome. The history is then as
  // it was.
  std::vector<std::int64_t> open;
};
// Makes T0 write what no transaction wrote, instead of nil; keys whose initial value is declared keep that.
// Predicates are to be lowered after it.
Before take_unwritten_for_initial(History& history);

// Takes what a list began with out of all its reads; one that begins with something else reads what
// nobody appended.
void begin_list_with(History& history, std::int32_t key, std::span<const std::int32_t> atoms);

}  // namespace isolang
