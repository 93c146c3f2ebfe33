// `check_versions` indexes the versions stated by writes, and rejects a history in which two committed operations
// contradict each other. `stated_before` compares the versions of two writers.
#include "certify/stated_versions.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "certify/certify.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

class Stated {
 public:
  explicit Stated(const History& h) : h_(h) {}

  std::int32_t txn(std::int64_t op) const {
    return static_cast<std::int32_t>(std::ranges::upper_bound(h_.op_start, op) -
                                     h_.op_start.begin()) - 1;
  }
  bool committed(std::int32_t t) const {
    return h_.txn_status[t] == static_cast<std::uint8_t>(Status::committed);
  }
  // Returns whether the operation states a version and its transaction committed.
  bool counts(std::int64_t op) const {
    return op >= 0 && op < h_.operations() && h_.op_ok[op] != 0 && h_.version(op) != kNoVersion &&
           committed(txn(op));
  }
  bool writes(std::int64_t op) const { return is_write(h_.kind(op)); }
  bool reads(std::int64_t op) const {
    return !is_write(h_.kind(op)) && h_.op_value[op] != kUnknownValue;
  }
  std::int64_t number(std::int64_t op) const { return h_.versions.number(h_.version(op)); }
  bool same_version(std::int64_t a, std::int64_t b) const {
    return h_.op_key[a] == h_.op_key[b] && h_.version(a) == h_.version(b);
  }
  bool same_value(std::int64_t a, std::int64_t b) const {
    return h_.as_read(h_.op_value[a]) == h_.as_read(h_.op_value[b]);
  }
  // Returns whether the read saw the initial version: no write in the history states the version that the read names.
  bool of_initial(std::int64_t op) const { return reads(op) && h_.op_source[op] == kSourceInitial; }

 private:
  const History& h_;
};

[[noreturn]] void reject(std::int64_t op, std::int64_t other) {
  throw Rejected{"operation " + std::to_string(op) + " contradicts operation " +
                 std::to_string(other) + " by the versions that they state"};
}

}  // namespace

bool contradict(const History& h, std::int64_t op, std::int64_t other) {
  const Stated s(h);
  if (!s.counts(op)) return false;
  if (other < 0) return s.reads(op) && h.op_source[op] == kSourceMissing;
  if (other >= h.operations() || other == op || h.op_key[op] != h.op_key[other]) return false;
  // A version has one value, whatever the outcome of its writer.
  if (s.reads(op) && h.op_source[op] == other && h.version(other) == h.version(op))
    return !s.same_value(op, other);
  if (!s.counts(other)) return false;
  if (s.reads(op) && s.reads(other)) {
    if (s.same_version(op, other)) return !s.same_value(op, other);
    return s.of_initial(op) && s.of_initial(other);
  }
  if (s.writes(op) && s.writes(other)) {
    if (s.same_version(op, other)) return true;
    const auto [first, second] = std::minmax(op, other);
    return h.versions_ordered && s.txn(op) == s.txn(other) && s.number(first) > s.number(second);
  }
  const auto [read, write] = s.reads(op) ? std::pair(op, other) : std::pair(other, op);
  return h.versions_ordered && s.of_initial(read) && s.writes(write) &&
         s.number(write) < s.number(read);
}

bool states_another(const History& h, std::int64_t read, std::int64_t write) {
  const std::int32_t seen = h.version(read), made = h.version(write);
  // mutant: checker-own-versions-unchecked
  return seen != made && seen != kNoVersion && made != kNoVersion;
}

bool stated_before(const History& h, std::int32_t key, std::int32_t a, std::int32_t b) {
  if (!h.versions_ordered || !h.has_versions()) return false;
  const Stated s(h);
  const auto last = [&](std::int32_t t) {
    for (std::int64_t op = h.op_start[idx(t) + 1] - 1; op >= h.op_start[t]; --op)
      if (h.op_key[op] == key && s.writes(op) && h.op_ok[op] != 0) return op;
    return std::int64_t{-1};
  };
  const std::int64_t first = last(a), second = last(b);
  return s.counts(first) && s.counts(second) && s.number(first) < s.number(second);
}

void check_versions(const History& h, Budget& budget) {
  if (!h.has_versions()) return;
  const Stated s(h);
  // Compare neighbours of one version first, and then the operations of each key as a whole.
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int64_t>> by_version;
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    if (!s.committed(t)) continue;
    for (std::int64_t op = h.op_start[t]; op < h.op_start[idx(t) + 1]; ++op) {
      budget.poll();
      if (h.op_ok[op] == 0 || h.version(op) == kNoVersion || (!s.writes(op) && !s.reads(op)))
        continue;
      by_version.emplace_back(h.op_key[op], h.version(op), op);
      if (!s.reads(op)) continue;
      if (h.op_source[op] == kSourceMissing) reject(op, -1);
      if (h.op_source[op] >= 0 && contradict(h, op, h.op_source[op])) reject(op, h.op_source[op]);
    }
  }
  std::ranges::sort(by_version);
  std::vector<std::int64_t> initial(idx(h.n_keys()), -1), least(idx(h.n_keys()), -1);
  std::int64_t write = -1, read = -1;  // the first write and the first read of this version
  for (std::size_t i = 0; i < by_version.size(); ++i) {
    budget.poll();
    const auto [key, version, op] = by_version[i];
    if (i == 0 || std::tie(key, version) != std::tie(std::get<0>(by_version[i - 1]),
                                                     std::get<1>(by_version[i - 1])))
      write = read = -1;
    std::int64_t& first = s.writes(op) ? write : read;
    if (first >= 0 && contradict(h, op, first)) reject(op, first);
    if (first < 0) first = op;
    if (s.of_initial(op)) {
      if (initial[key] >= 0 && contradict(h, op, initial[key])) reject(op, initial[key]);
      initial[key] = op;
    }
    if (s.writes(op) && h.versions_ordered && (least[key] < 0 || s.number(op) < s.number(least[key])))
      least[key] = op;
  }
  for (std::size_t key = 0; key < initial.size(); ++key)
    if (initial[key] >= 0 && least[key] >= 0 && contradict(h, initial[key], least[key]))
      reject(initial[key], least[key]);
  if (!h.versions_ordered) return;
  // Compare, for each key, the writes of one transaction in their order.
  std::ranges::sort(by_version, {}, [](const auto& one) {
    return std::pair(std::get<0>(one), std::get<2>(one));
  });
  std::int64_t last = -1;
  for (const auto& [key, version, op] : by_version) {
    if (!s.writes(op)) continue;
    if (last >= 0 && contradict(h, op, last)) reject(op, last);
    last = op;
  }
}

}  // namespace isolang::certify
