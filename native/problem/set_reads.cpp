// Decides which versions of its key a set-read may have seen.
//
// In a predicate read, a "none of" lists the rows that match, and the predicate read returned none of them. A "one of"
// names a row that the predicate read returned although it does not match. No write explains such a row.
#include <algorithm>

#include "problem/prepass.hpp"

namespace isolang::prepass {

SetRead::SetRead(const History& h, std::int64_t op)
    : h_(h), op_(op), one_of_(h.kind(op) == OpKind::read_one_of) {
  const auto list = idx(h.op_value[op]);
  values_ = {h.list_values.begin() + h.list_start[list],
             h.list_values.begin() + h.list_start[list + 1]};
  if (values_.size() <= kFew) return;
  sorted_.assign(values_.begin(), values_.end());
  std::ranges::sort(sorted_);
}

bool SetRead::lists(std::int32_t value) const {
  return sorted_.empty() ? std::ranges::find(values_, value) != values_.end()
                         : std::ranges::binary_search(sorted_, value);
}

bool SetRead::allows(std::int32_t value) const {
  // mutant: returned-row-explained
  if ((one_of_ || value == h_.deleted) && h_.in_statement(op_)) return !one_of_;
  return lists(h_.as_read(value)) == one_of_;
}

// Returns whether the set-read may see the version of T0. A declared initial value is the value that T0 wrote. An item
// read may see that version as nil, and where it may, a set-read may, too. In a predicate read, nil is a row that never
// existed, and no predicate matches such a row.
bool SetRead::allows_initial() const {
  // mutant: unborn-row-matches
  if ((one_of_ || h_.initial_value[h_.op_key[op_]] == kNil) && h_.in_statement(op_))
    return !one_of_;
  const std::int32_t key = h_.op_key[op_];
  // mutant: set-read-initial, set-read-declared
  return allows(h_.initial_value[key]) || (one_of_ && h_.nil_is_initial(key) && allows(kNil));
}

}  // namespace isolang::prepass
