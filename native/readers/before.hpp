// The values that existed before the history began: rows and lists that no transaction of the history wrote.
//
// THE RULE. A key holds at most one value that no transaction of the history wrote. T0 wrote this value, so it is the
// first in the key's version order. nil, and the empty list, are also such a value, unless some transaction deleted the
// row. The first committed read that shows such a value determines it. If no committed read shows one, a read of
// unknown outcome determines it. For a list, the value is the part before the first element appended by a transaction.
// A read of a different such value reads a version of T0 that does not exist.
//
// A value written by some transaction belongs to that write, even if the write failed or was aborted.
//
// A stream joined in the middle is read by the same rule, with the values left by its last cut in place of those of T0.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/history.hpp"

namespace isolang {

// The first element of a list that lacks its initial elements. No transaction appends this element.
inline constexpr std::string_view kWithoutBeginning = "#without-what-was-there";

struct Before {
  std::int64_t registers = 0, lists = 0;  // numbers of keys that held a value
  // Empty, or two reads of one key with different values, if no committed read decides between them. In the latter
  // case, the history is unchanged.
  std::vector<std::int64_t> open;
};
// Makes T0 write the values that no transaction wrote, instead of nil. Keys whose initial value is declared keep that
// value. Predicates must be lowered afterwards.
Before take_unwritten_for_initial(History& history);

// Removes these first elements from all reads of the list. If a read of the list does not begin with them, it gets an
// element that no transaction appended.
void begin_list_with(History& history, std::int32_t key, std::span<const std::int32_t> atoms);

}  // namespace isolang
