// One walk over the operations, transaction by transaction, and a sort of the values written to each key.
#include "core/census.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace isolang {
namespace {

Spread spread(std::vector<std::int64_t> counts) {
  if (counts.empty()) return {};
  std::ranges::sort(counts);
  const std::size_t middle = counts.size() / 2;
  const auto above = static_cast<double>(counts[middle]);
  const auto below = static_cast<double>(counts[counts.size() % 2 == 0 ? middle - 1 : middle]);
  return {counts.front(), (below + above) / 2, counts.back()};
}

class Counter {
 public:
  explicit Counter(const History& history) : h_(history), of_key_(idx(history.n_keys())) {}

  Census count() {
    std::vector<std::uint8_t> in_session(idx(h_.sessions), 0);
    std::vector<std::int64_t> operations, keys;
    for (std::int32_t t = 0; t < h_.transactions(); ++t) {
      if (status(t) == Status::initial) continue;
      in_session[idx(h_.txn_session[t])] = 1;
      operations.push_back(h_.op_start[t + 1] - h_.op_start[t]);
      keys.push_back(count_transaction(t));
    }
    census_.sessions = std::ranges::count(in_session, 1);
    census_.operations_per_transaction = spread(std::move(operations));
    census_.keys_per_transaction = spread(std::move(keys));
    count_repeated_values();
    return census_;
  }

 private:
  Status status(std::int32_t t) const { return static_cast<Status>(h_.txn_status[idx(t)]); }

  // Returns true if the read returned the initial state, or names T0 as its source.
  bool is_initial(std::int64_t op) const {
    const std::int64_t source = h_.op_source[idx(op)];
    if (source != kSourceByValue) return source == kSourceInitial;
    const std::int32_t value = h_.op_value[idx(op)], key = h_.op_key[idx(op)];
    if (value < 0) return false;
    if (h_.kind(op) == OpKind::read_list) return h_.list_start[idx(value)] == h_.list_start[idx(value) + 1];
    if (h_.kind(op) != OpKind::read) return false;
    const bool alone = idx(key) < h_.initial_alone.size() && h_.initial_alone[idx(key)] != 0;
    return (value == kNil && !alone) || value == h_.initial_value[idx(key)];
  }

  void count_operation(std::int64_t op) {
    ++census_.operations;
    const OpKind kind = h_.kind(op);
    std::int64_t* const of_kind[kOpKinds] = {&census_.reads,      &census_.writes,    &census_.appends,
                                             &census_.list_reads, &census_.set_reads, &census_.set_reads};
    ++*of_kind[idx(static_cast<std::int64_t>(kind))];
    if (h_.op_ok[idx(op)] == 0) ++census_.failed_operations;
    if (h_.op_value[idx(op)] == kUnknownValue) ++census_.unknown_reads;
    if (h_.op_source[idx(op)] != kSourceByValue) ++census_.explicit_sources;
    if (h_.op_source[idx(op)] == kSourceMissing) ++census_.missing_sources;
  }

  // Returns the number of keys that the transaction accesses.
  std::int64_t count_transaction(std::int32_t t) {
    const std::int64_t first = h_.op_start[t], last = h_.op_start[t + 1];
    const bool works = status(t) == Status::committed && first < last;
    std::int64_t keys = 0;
    bool reads = false, writes = false, writes_what_it_read = false;
    for (std::int64_t op = first; op < last; ++op) {
      count_operation(op);
      OfKey& key = of_key_[idx(h_.op_key[idx(op)])];
      if (key.txn != t) {
        key = {t, false};
        ++keys;
      }
      if (!works || h_.op_ok[idx(op)] == 0) continue;
      if (is_write(h_.kind(op))) {
        writes = true;
        writes_what_it_read |= key.read;
      } else {
        reads = key.read = true;
        if (is_initial(op)) ++census_.initial_reads;
      }
    }
    if (works) {
      ++census_.working;
      census_.read_modify_write += static_cast<std::int64_t>(writes_what_it_read);
      census_.read_only += static_cast<std::int64_t>(reads && !writes);
      census_.write_only += static_cast<std::int64_t>(writes && !reads);
    }
    return keys;
  }

  template <typename Visit>
  void each_write(Visit visit) const {
    for (std::int32_t t = 0; t < h_.transactions(); ++t) {
      if (status(t) == Status::initial || status(t) == Status::aborted) continue;
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
        if (h_.op_ok[idx(op)] != 0 && is_write(h_.kind(op))) visit(idx(h_.op_key[idx(op)]), h_.op_value[idx(op)]);
    }
  }

  void count_repeated_values() {
    std::vector<std::size_t> next(of_key_.size() + 1, 0);
    each_write([&](std::size_t key, std::int32_t) { ++next[key + 1]; });
    for (std::size_t key = 1; key < next.size(); ++key) next[key] += next[key - 1];
    std::vector<std::int32_t> values(next.back());
    each_write([&](std::size_t key, std::int32_t value) { values[next[key]++] = value; });
    std::size_t first = 0;
    for (std::size_t key = 0; key < of_key_.size(); ++key) {
      const std::size_t last = next[key];  // next[key] has moved to the end of its key
      std::sort(values.begin() + static_cast<std::ptrdiff_t>(first), values.begin() + static_cast<std::ptrdiff_t>(last));
      for (std::size_t same = first; first < last; first = same) {
        while (same < last && values[same] == values[first]) ++same;
        if (same - first < 2) continue;
        ++census_.repeated_values;
        census_.repeated_writes += static_cast<std::int64_t>(same - first);
      }
    }
  }

  struct OfKey {
    std::int32_t txn = -1;  // the last transaction that accessed the key
    bool read = false;      // whether it has read the key, and the read counts
  };
  const History& h_;
  std::vector<OfKey> of_key_;
  Census census_;
};

}  // namespace

Census census(const History& history) { return Counter(history).count(); }

}  // namespace isolang
