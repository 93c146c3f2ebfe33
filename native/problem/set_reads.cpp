// Which versions of its key a set-read may have seen.
//
// In a predicate read, "none of" lists the rows that match: it returned none of them. "One of" names a
// row that it returned, and that does not match: nothing explains that.
#include <algorithm>

#include "problem/prepass.hpp"

namespace isolang::prepass {

SetRead::SetRead(const History& h, std::int64_t op)
    : h_(h),
      op_(op),
      one_of_(h.kind(op) == OpKind::read_one_of),
      statement_(h.in_statement(op)) {
  const std::int32_t list = h.op_value[op];
  values_.assign(h.list_values.begin() + h.list_start[list],
                 h.list_values.begin() + h.list_start[idx(list) + 1]);
  std::ranges::sort(values_);
}

bool SetRead::allows(std::int32_t value) const {
  // mutant: returned-row-explained
  if (statement_ && (one_of_ || value == h_.deleted)) return !one_of_;
  return std::ranges::binary_search(values_, h_.as_read(value)) == one_of_;
}

// A declared initial value is what T0 wrote. A read may also see it as nil, as an item read may.
// Of a predicate read, nil is a row that was never there: no predicate matches it.
bool SetRead::allows_initial() const {
  // mutant: unborn-row-matches
  if (statement_ && (one_of_ || h_.initial_value[h_.op_key[op_]] == kNil)) return !one_of_;
  // mutant: set-read-initial, set-read-declared
  return allows(h_.initial_value[h_.op_key[op_]]) || (one_of_ && allows(kNil));
}

}  // namespace isolang::prepass
