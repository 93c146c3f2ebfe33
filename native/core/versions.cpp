// `name_sources` first goes over the writes and stores the write that states each version. It then
// goes over the reads and makes the write that states a read's version the source of the read.
#include "core/versions.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/index.hpp"

namespace isolang {
namespace {

constexpr std::int64_t kNone = -1, kSeveral = -2;

// The first writes that state a given version of a key, one for each kind of outcome.
struct Stated {
  std::array<std::int64_t, 3> write{kNone, kNone, kNone};  // by Rank
  bool several_indeterminate = false;
};
enum Rank : std::size_t { kApplied, kIndeterminate, kDead };

std::uint64_t slot(std::int32_t key, std::int32_t version) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) << 32 |
         static_cast<std::uint32_t>(version);
}

std::int64_t named_by(const Stated& stated) {
  if (stated.write[kApplied] >= 0) return stated.write[kApplied];
  if (stated.several_indeterminate) return kSeveral;
  for (const Rank rank : {kIndeterminate, kDead})
    if (stated.write[rank] >= 0) return stated.write[rank];
  return kNone;
}

}  // namespace

void name_sources(History& h) {
  if (!h.has_versions()) return;
  std::unordered_map<std::uint64_t, Stated> stated;
  // For each key, 1 if some write that may have taken effect states no version.
  std::vector<std::uint8_t> silent(idx(h.n_keys()), 0);
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    const auto status = static_cast<Status>(h.txn_status[idx(t)]);
    for (std::int64_t op = h.op_start[idx(t)]; op < h.op_start[idx(t) + 1]; ++op) {
      if (!is_write(h.kind(op))) continue;
      const Rank rank = h.op_ok[idx(op)] == 0 || status == Status::aborted ? kDead
                        : status == Status::indeterminate                  ? kIndeterminate
                                                                           : kApplied;
      const std::int32_t version = h.op_version[idx(op)];
      if (version == kNoVersion) {
        if (rank != kDead && status != Status::initial) silent[idx(h.op_key[idx(op)])] = 1;
        continue;
      }
      Stated& writes = stated[slot(h.op_key[idx(op)], version)];
      if (writes.write[rank] < 0)
        writes.write[rank] = op;
      else if (rank == kIndeterminate)
        writes.several_indeterminate = true;
    }
  }
  for (std::int64_t op = 0; op < h.operations(); ++op) {
    const std::int32_t version = h.op_version[idx(op)], key = h.op_key[idx(op)];
    if (version == kNoVersion || is_write(h.kind(op))) continue;
    h.op_source.set(idx(op), kSourceByValue);
    if (h.op_value[idx(op)] == kUnknownValue) continue;
    const auto found = stated.find(slot(key, version));
    const std::int64_t named = found == stated.end() ? kNone : named_by(found->second);
    const std::int32_t value = h.op_value[idx(op)];
    if (named >= 0)
      h.op_source.set(idx(op), named);
    else if (named == kNone && silent[idx(key)] == 0)
      h.op_source.set(idx(op), value == h.initial_value[idx(key)] || (value == kNil && h.nil_is_initial(key))
                                   ? kSourceInitial
                                   : kSourceMissing);
  }
}

void unname_sources(History& h) {
  for (std::size_t op = 0; op < h.op_version.size(); ++op)
    if (h.op_version[op] != kNoVersion) h.op_source.set(op, kSourceByValue);
}

void forget_versions(History& h) {
  unname_sources(h);
  h.op_version.clear();
  h.versions_ordered = false;
}

}  // namespace isolang
