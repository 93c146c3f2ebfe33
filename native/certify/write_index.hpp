// The writes of a history's transactions, indexed for reading a witness: the last writes, the writes of T0, and the
// appends by value.
//
// Each read of a witness names its source. So the index needs only the last write of a transaction to a key and, for
// list reads, the transaction that appended an element.
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "certify/certify.hpp"
#include "core/index.hpp"
#include "core/prefetch.hpp"

namespace isolang::certify {

// A transaction's last write of a key, together with everything that queries about it need.
struct LastWrite {
  std::int32_t key;
  std::int32_t position;  // in the version order of the key, once the order has been read
  std::int32_t value;
  std::int32_t at;  // the index of the operation in its transaction
};

class WriteIndex {
 public:
  using InitialWrite = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // key, value, operation

  // Throws NotCertified if the history is too large.
  WriteIndex(const History& history, Budget& budget);

  OpKind kind(std::int64_t op) const { return static_cast<OpKind>(h_.op_kind[op]); }
  Status status(std::int32_t t) const { return static_cast<Status>(h_.txn_status[t]); }
  bool live(std::int32_t t) const {
    return status(t) == Status::committed || status(t) == Status::indeterminate;
  }
  bool writes(std::int64_t op) const {
    return kind(op) == OpKind::write || kind(op) == OpKind::append;
  }

  // Return whether some transaction that may be included writes the key, or appends to it.
  bool written(std::int32_t key) const { return written_[key] != 0; }
  bool appended(std::int32_t key) const { return appended_[key] != 0; }
  bool any_appended() const { return !append_start_.empty(); }

  // The last writes of `t`, sorted by key, are last(begin_of(t)) … last(end_of(t) - 1).
  std::int64_t begin_of(std::int32_t t) const { return last_start_[t]; }
  std::int64_t end_of(std::int32_t t) const { return last_start_[t + 1]; }
  const LastWrite& last(std::int64_t place) const { return last_[place]; }
  LastWrite& last(std::int64_t place) { return last_[place]; }
  std::int32_t find_last(std::int32_t t, std::int32_t key) const {  // the place for last(), or -1
    const LastWrite* from = last_.data() + begin_of(t);
    const LastWrite* const end = last_.data() + end_of(t);
    if (end - from > kFewWrites) {
      from = std::lower_bound(from, end, key, [](const LastWrite& w, std::int32_t k) { return w.key < k; });
      return from != end && from->key == key ? static_cast<std::int32_t>(from - last_.data()) : -1;
    }
    // Among few writes, a search without branches takes less time, because none can be mispredicted.
    std::int32_t found = -1;
    for (; from != end; ++from) found = from->key == key ? static_cast<std::int32_t>(from - last_.data()) : found;
    return found;
  }

  void prefetch_start(std::int32_t t) const { prefetch(last_start_.data() + t); }
  void prefetch_last(std::int32_t t) const { prefetch(last_.data() + begin_of(t)); }
  void prefetch_place(std::int32_t place) const {
    if (place >= 0) prefetch(last_.data() + place);
  }

  // Returns the last write of the key by a declared initial transaction, or nullptr.
  const InitialWrite* initial_write(std::int32_t key) const {
    const auto found =
        std::lower_bound(initial_.begin(), initial_.end(), InitialWrite(key, -1, -1));
    return found != initial_.end() && std::get<0>(*found) == key ? &*found : nullptr;
  }

  // Returns whether nil does not name the initial version of the key. This is the case if the version holds something
  // else, or if the row existed and some transaction deleted it.
  bool vanishes(std::int32_t key) {
    if (!h_.nil_is_initial(key)) return true;
    return h_.deleted != kNoAtom && h_.initial_value[key] != kNil &&
           any_written(key, n_, [&](std::int32_t v) { return v == h_.deleted; });
  }
  // Returns whether such(value) holds for the last write of the key by some transaction other than `t`.
  template <typename Such>
  bool any_written(std::int32_t key, std::int32_t t, const Such& such) {
    if (by_key_.empty()) index_by_key();
    for (auto w = std::ranges::lower_bound(by_key_, std::tuple(key, -1, -1));
         w != by_key_.end() && std::get<0>(*w) == key; ++w)
      if (std::get<2>(*w) != t && such(std::get<1>(*w))) return true;
    return false;
  }

  // Returns the only transaction that may be included and appended the value, or -1 if there is none. Throws
  // NotCertified if there are several.
  std::int32_t element_writer(std::int32_t key, std::int32_t value) const;
  // Returns the operations with which `writer` appended to `key`, in program order. Only the last result is cached,
  // because a list read asks for the elements of one writer in succession. The reference is valid until the next call
  // for another key or writer.
  const std::vector<std::int64_t>& appends_of(std::int32_t key, std::int32_t writer);

 private:
  static constexpr std::ptrdiff_t kFewWrites = 8;
  struct Append {
    std::int32_t value, txn;
    std::int64_t op;
    auto operator<=>(const Append&) const = default;
  };
  void index_by_key();
  void index_initial();
  void index_appends();

  const History& h_;
  const std::int32_t n_;
  std::vector<std::int64_t> last_start_;
  std::vector<LastWrite> last_;
  std::vector<InitialWrite> initial_;       // the writes of T0 itself
  std::vector<char> written_, appended_;    // for each key, by transactions that may be included
  // for each key, the start of its appends in append_, which are sorted by value
  std::vector<std::int64_t> append_start_;
  std::vector<Append> append_;
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>>
      by_key_;  // (key, value, txn); filled when first needed
  std::int32_t cached_key_ = -1, cached_writer_ = -1;
  std::vector<std::int64_t> cached_;
};

}  // namespace isolang::certify
