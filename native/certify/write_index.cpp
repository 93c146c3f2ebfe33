// The constructor finds the last writes of each transaction in one pass over the operations. It builds the indexes of
// T0's writes and of appends only if the history has declared initial transactions or lists.
#include "certify/write_index.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "core/index.hpp"

namespace isolang::certify {

WriteIndex::WriteIndex(const History& history, Budget& budget)
    : h_(history), n_(history.transactions()) {
  const auto keys = idx(h_.n_keys());
  written_.assign(keys, 0);
  appended_.assign(keys, 0);
  std::vector<std::int32_t> stamp(keys, -1);
  std::vector<std::int64_t> at(keys, 0);
  bool any_initial = false;
  last_start_.assign(idx(n_) + 1, 0);
  for (std::int32_t t = 0; t < n_; ++t) {
    last_start_[t] = static_cast<std::int64_t>(last_.size());
    if (status(t) == Status::aborted) continue;
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) {
      budget.poll();
      if (!writes(op) || !h_.op_ok[op]) continue;
      const std::int32_t key = h_.op_key[op];
      (kind(op) == OpKind::write ? written_ : appended_)[key] = 1;
      if (stamp[key] != t) {
        stamp[key] = t;
        at[key] = static_cast<std::int64_t>(last_.size());
        last_.push_back({key, -1, kNil, 0});
      }
      LastWrite& write = last_[at[key]];
      write.value = h_.op_value[op];
      write.at = static_cast<std::int32_t>(op - h_.op_start[t]);
    }
    const auto begin = last_.begin() + last_start_[t];
    std::sort(begin, last_.end(),
              [](const LastWrite& a, const LastWrite& b) { return a.key < b.key; });
    if (status(t) == Status::initial) {
      any_initial = true;
      last_.erase(begin,
                  last_.end());  // T0 is not a writer in the orders; its last writes are found below
    }
  }
  last_start_[n_] = static_cast<std::int64_t>(last_.size());
  if (last_.size() > idx(std::numeric_limits<std::int32_t>::max()))
    throw NotCertified{"not certified: the history is too large for this checker"};
  if (any_initial) index_initial();
  if (std::find(appended_.begin(), appended_.end(), 1) != appended_.end()) index_appends();
}

// Indexes the declared initial transactions as a single writer: of all their writes of a key, only the last is kept.
void WriteIndex::index_initial() {
  std::vector<std::int64_t> last(idx(h_.n_keys()), -1);
  for (std::int32_t t = 0; t < n_; ++t)
    if (status(t) == Status::initial)
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
        if (writes(op) && h_.op_ok[op]) last[h_.op_key[op]] = op;
  for (std::int32_t key = 0; key < h_.n_keys(); ++key)
    if (last[key] >= 0) initial_.emplace_back(key, h_.op_value[last[key]], last[key]);
}

void WriteIndex::index_appends() {
  append_start_.assign(idx(h_.n_keys()) + 1, 0);
  const auto each = [&](auto&& visit) {
    for (std::int32_t t = 0; t < n_; ++t) {
      if (status(t) == Status::aborted) continue;
      const std::int32_t owner = status(t) == Status::initial ? n_ : t;
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
        if (kind(op) == OpKind::append && h_.op_ok[op]) visit(owner, op);
    }
  };
  each([&](std::int32_t, std::int64_t op) { ++append_start_[idx(h_.op_key[op]) + 1]; });
  std::partial_sum(append_start_.begin(), append_start_.end(), append_start_.begin());
  append_.resize(idx(append_start_.back()));
  std::vector<std::int64_t> at(append_start_.begin(), append_start_.end() - 1);
  each([&](std::int32_t owner, std::int64_t op) {
    append_[at[h_.op_key[op]]++] = {h_.op_value[op], owner, op};
  });
  for (std::size_t key = 0; key + 1 < append_start_.size(); ++key)
    std::sort(append_.begin() + append_start_[key], append_.begin() + append_start_[key + 1]);
}

void WriteIndex::index_by_key() {
  for (std::int32_t u = 0; u < n_; ++u)
    for (std::int64_t i = begin_of(u); i < end_of(u); ++i)
      by_key_.emplace_back(last(i).key, last(i).value, u);
  std::ranges::sort(by_key_);
}

std::int32_t WriteIndex::element_writer(std::int32_t key, std::int32_t value) const {
  if (append_start_.empty()) return -1;
  const auto end = append_.begin() + append_start_[key + 1];
  const auto first = std::lower_bound(append_.begin() + append_start_[key], end, value,
                                      [](const Append& a, std::int32_t v) { return a.value < v; });
  if (first == end || first->value != value) return -1;
  for (auto other = first; other != end && other->value == value; ++other)
    if (other->txn != first->txn)
      throw NotCertified{"not certified: several transactions appended the same element to key " +
                         std::to_string(key)};
  return first->txn;
}

const std::vector<std::int64_t>& WriteIndex::appends_of(std::int32_t key, std::int32_t writer) {
  if (cached_key_ == key && cached_writer_ == writer) return cached_;
  cached_key_ = key;
  cached_writer_ = writer;
  cached_.clear();
  const auto collect = [&](std::int32_t t) {
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
      if (kind(op) == OpKind::append && h_.op_ok[op] && h_.op_key[op] == key) cached_.push_back(op);
  };
  if (writer < n_) {
    collect(writer);
  } else {
    for (std::int32_t t = 0; t < n_; ++t)
      if (status(t) == Status::initial) collect(t);
  }
  return cached_;
}

}  // namespace isolang::certify
