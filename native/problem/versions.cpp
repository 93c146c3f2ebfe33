// Finds the order of writers implied by stated versions, and where these versions contradict each other or the values
// (docs/versions.md).
#include <algorithm>
#include <unordered_map>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

bool is_committed(const History& h, std::int32_t t) {
  return h.txn_status[idx(t)] == static_cast<std::uint8_t>(Status::committed);
}

class Contradictions {
 public:
  explicit Contradictions(const History& h) : h_(h) {}

  std::vector<Anomaly> find() {
    std::vector<std::int64_t> own(idx(h_.n_keys()), -1);  // the transaction's last write of the key
    for (std::int32_t t = 0; t < h_.transactions(); ++t) {
      if (!is_committed(h_, t)) continue;
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op) {
        if (h_.op_ok[idx(op)] == 0 || h_.version(op) == kNoVersion) continue;
        if (is_write(h_.kind(op)))
          write(t, op, own[idx(h_.op_key[idx(op)])]);
        else if (h_.op_value[idx(op)] != kUnknownValue)
          read(t, op);
      }
    }
    for (const Anomaly& a : initial_reads_) beside_initial(a);
    return std::move(out_);
  }

 private:
  std::int32_t key(std::int64_t op) const { return h_.op_key[idx(op)]; }
  std::int64_t number(std::int64_t op) const { return h_.versions.number(h_.version(op)); }
  std::uint64_t slot(std::int64_t op) const {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(key(op))) << 32 |
           static_cast<std::uint32_t>(h_.version(op));
  }
  bool differ(std::int64_t op, std::int64_t other) const {
    return h_.as_read(h_.op_value[idx(op)]) != h_.as_read(h_.op_value[idx(other)]);
  }

  void report(std::int32_t t, std::int64_t op, std::int64_t other) {
    out_.push_back({AnomalyKind::contradicting_versions, t, op,
                    other < 0 ? -1 : txn_of_op(h_, other), other});
  }

  void write(std::int32_t t, std::int64_t op, std::int64_t& last_own) {
    const auto [first, fresh] = written_.try_emplace(slot(op), op);
    // mutant: version-written-twice
    if (!fresh) report(t, op, first->second);
    if (!h_.versions_ordered) return;
    // mutant: own-versions-descend
    if (last_own >= h_.op_start[idx(t)] && number(last_own) > number(op)) report(t, op, last_own);
    last_own = op;
    const auto [least, none] = least_.try_emplace(key(op), op);
    if (!none && number(op) < number(least->second)) least->second = op;
  }

  void read(std::int32_t t, std::int64_t op) {
    const std::int64_t source = h_.op_source[idx(op)];
    // mutant: version-of-nobody
    if (source == kSourceMissing) return report(t, op, -1);
    if (source >= 0) {
      // mutant: version-of-two-values
      if (differ(op, source)) report(t, op, source);
      return;
    }
    const auto [first, fresh] = read_.try_emplace(slot(op), op);
    // mutant: version-read-twice
    if (!fresh && differ(op, first->second)) report(t, op, first->second);
    if (source == kSourceInitial)
      initial_reads_.push_back({AnomalyKind::contradicting_versions, t, op, -1, -1});
  }

  // Reports contradictions with a read of the initial version. T0 wrote one version of each key,
  // and no write precedes that version.
  void beside_initial(const Anomaly& a) {
    const auto [first, fresh] = initial_.try_emplace(key(a.op), a.op);
    // mutant: two-initial-versions
    if (!fresh && h_.version(first->second) != h_.version(a.op))
      return report(a.txn, a.op, first->second);
    const auto least = least_.find(key(a.op));
    // mutant: version-before-initial
    if (least != least_.end() && number(least->second) < number(a.op))
      report(a.txn, a.op, least->second);
  }

  const History& h_;
  std::vector<Anomaly> out_, initial_reads_;
  // For each version: the first committed write and, if no write is its source, the first committed read.
  std::unordered_map<std::uint64_t, std::int64_t> written_, read_;
  // For each key: the write of the least version, and the first read of the initial version.
  std::unordered_map<std::int32_t, std::int64_t> least_, initial_;
};

}  // namespace

std::vector<Anomaly> contradicting_versions(const History& h) {
  if (!h.has_versions()) return {};
  return Contradictions(h).find();
}

std::vector<StatedOrder> order_by_versions(const History& h, const Candidates& c) {
  if (!h.versions_ordered || !h.has_versions()) return {};
  std::vector<StatedOrder> found;
  std::vector<std::pair<std::int64_t, std::int32_t>> stated;
  for (std::size_t key = 0; key < idx(h.n_keys()); ++key) {
    // mutant: versions-order-transactions
    stated.clear();
    for (std::int32_t e = c.key_start[key] + 1; e < c.key_start[key + 1]; ++e)
      // mutant: indeterminate-versions-order
      if (is_committed(h, c.txn[idx(e)]) && h.version(c.op[idx(e)]) != kNoVersion)
        stated.emplace_back(h.versions.number(h.version(c.op[idx(e)])), e);
    std::ranges::sort(stated);
    for (std::size_t i = 1; i < stated.size(); ++i)
      // Two writers that state the same version are a contradiction, which orders nothing.
      if (stated[i - 1].first < stated[i].first)
        found.push_back({stated[i - 1].second, stated[i].second});
  }
  return found;
}

}  // namespace isolang::prepass
