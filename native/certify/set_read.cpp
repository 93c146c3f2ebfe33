// Evaluates the condition of a set-read on one value or on the initial version of its key.
#include "certify/set_read.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace isolang::certify {

std::span<const std::int32_t> SetRead::values() const {
  const auto list = idx(h_.op_value[op_]);
  return {h_.list_values.begin() + h_.list_start[list],
          h_.list_values.begin() + h_.list_start[list + 1]};
}

bool SetRead::allows(std::int32_t value) const {
  // The predicate read returned a row that does not match. No version explains this.
  // mutant: checker-returned-row
  if (statement_ && h_.kind(op_) == OpKind::read_one_of) return false;
  if (value == h_.deleted) {
    // mutant: checker-deleted-row
    if (statement_) return true;
    value = kNil;
  }
  const bool listed = std::ranges::find(values(), value) != values().end();
  // mutant: checker-set-read
  return h_.kind(op_) == OpKind::read_one_of ? listed : !listed;
}

bool SetRead::allows_initial() const {
  // mutant: checker-declared-nil, checker-replaced-nil
  if (h_.kind(op_) == OpKind::read_one_of && h_.nil_is_initial(h_.op_key[op_]) && allows(kNil))
    return true;
  // mutant: checker-unborn-row
  if (statement_ && h_.initial_value[h_.op_key[op_]] == kNil)
    return h_.kind(op_) == OpKind::read_none_of;
  return allows(h_.initial_value[h_.op_key[op_]]);
}

}  // namespace isolang::certify
