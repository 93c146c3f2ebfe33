// Intrinsic anomalies: reads, or pairs of list reads, that are wrong under every choice. A read has every anomaly whose
// definition it fits.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "certify/evidence.hpp"
#include "certify/set_read.hpp"
#include "certify/stated_versions.hpp"

namespace isolang::certify {
namespace {
unsigned bit(Kind kind) { return 1U << static_cast<unsigned>(kind); }
bool prefixes(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin());
}
bool repeats(std::vector<std::int32_t> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

}  // namespace

bool Evidence::has_anomaly(std::int64_t op, std::int64_t kind) {
  if (kind < 0 || kind > static_cast<std::int64_t>(Kind::two_values)) return false;
  // A contradiction with the transaction's own appends does not depend on who appended the other
  // elements.
  if (is_read(op) && is_list(op) && (against_own_appends(op) >> kind & 1U) != 0) return true;
  return (anomalies(op) >> kind & 1U) != 0;
}

unsigned Evidence::anomalies(std::int64_t op) {
  if (!is_read(op)) return 0;
  if (is_list(op)) return list_anomalies(op);
  const std::int32_t key = key_of(op), value = value_of(op);
  const std::int64_t named = h_.op_source[op];
  if (is_set_read(h_.kind(op))) return set_read_anomalies(op);
  // If the read names its source, what counts is the named write, not its value.
  const auto was_read = [&](std::int64_t w) {
    return named == kSourceByValue ? h_.as_read(value_of(w)) == value : w == named;
  };
  const std::vector<std::int64_t> before = own(op, true);
  if (!before.empty()) {
    if (was_read(before.back()) && !states_another(h_, op, before.back()))
      return named_otherwise(op);
    const std::vector<std::int64_t> later = own(op, false);
    unsigned found = bit(Kind::not_own_write);
    if (std::any_of(before.begin(), before.end() - 1, was_read))
      found |= bit(Kind::not_last_own_write);
    if (std::any_of(later.begin(), later.end(), was_read)) found |= bit(Kind::future_read);
    return found;
  }
  if (!candidates(op).empty()) return named_otherwise(op);
  if (named == kSourceByValue) return why_not(op, writes_seen(op));
  if (named >= 0 && is_write(named) && key_of(named) == key) {
    const Write write{value_of(named), named};
    return why_not(op, {&write, 1});
  }
  return bit(Kind::thin_air_read);
}

unsigned Evidence::set_read_anomalies(std::int64_t op) {
  const std::vector<std::int64_t> before = own(op, true);
  if (!before.empty())
    return SetRead(h_, op).allows(value_of(before.back())) ? 0 : bit(Kind::not_own_write);
  return candidates(op).empty() ? why_not(op, writes_seen(op)) : 0;
}

// Returns the anomalies that explain why `op` can read from none of these writes.
unsigned Evidence::why_not(std::int64_t op, std::span<const Write> writes) {
  unsigned found = 0;
  for (const Write& w : writes) {
    const std::int32_t t = txn_of(w.op);
    if (t == txn_of(op) && is_ok(w.op)) {
      found |= bit(Kind::future_read);
    } else {
      found |= bit(!is_ok(w.op) || !live(t) ? Kind::aborted_read : Kind::intermediate_read);
    }
  }
  return found ? found : bit(Kind::thin_air_read);
}

unsigned Evidence::against_own_appends(std::int64_t op) {
  const auto values = list_of(op);
  std::vector<std::int32_t> own_values;
  for (const std::int64_t w : own(op, true)) own_values.push_back(value_of(w));
  const std::size_t tail = own_values.size();
  if (tail == 0 || (values.size() >= tail &&
                    std::equal(own_values.begin(), own_values.end(),
                               values.end() - static_cast<std::ptrdiff_t>(tail))))
    return 0;
  const bool some = std::any_of(own_values.begin(), own_values.end(), [&](std::int32_t v) {
    return std::find(values.begin(), values.end(), v) != values.end();
  });
  return bit(Kind::not_own_write) | (some ? bit(Kind::not_last_own_write) : 0U);
}

unsigned Evidence::list_anomalies(std::int64_t op) {
  const std::int32_t reader = txn_of(op), key = key_of(op);
  const auto values = list_of(op);
  std::vector<std::int32_t> before, after;
  for (const std::int64_t w : own(op, true)) before.push_back(value_of(w));
  for (const std::int64_t w : own(op, false)) after.push_back(value_of(w));
  const auto among = [](const auto& all, std::int32_t value) {
    return std::find(all.begin(), all.end(), value) != all.end();
  };
  unsigned found = against_own_appends(op);
  if (h_.op_source[op] == kSourceMissing) found |= bit(Kind::thin_air_read);
  // A block: adjacent elements of one writer.
  struct Block {
    std::int32_t writer;
    std::vector<std::int32_t> values;
  };
  std::vector<Block> blocks;
  for (const std::int32_t value : values) {
    const std::int32_t writer = element_writer(key, value);
    if (writer < 0) found |= why_not(op, writes_of(key, value));
    if (writer == reader && among(after, value) && !among(before, value))
      found |= bit(Kind::future_read);
    if (blocks.empty() || blocks.back().writer != writer) blocks.push_back({writer, {}});
    blocks.back().values.push_back(value);
  }
  std::unordered_map<std::int32_t, std::int64_t> times_shown;
  for (const std::int32_t value : values) ++times_shown[value];
  std::unordered_set<std::int32_t> seen;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    budget_.poll();
    const Block& block = blocks[i];
    if (block.writer < 0) continue;
    std::vector<std::int32_t> made;
    for (const std::int64_t w : writes_by(block.writer, key)) made.push_back(value_of(w));
    std::unordered_map<std::int32_t, std::int64_t> times_made;
    for (const std::int32_t value : made) ++times_made[value];
    for (const std::int32_t value : block.values)
      if (times_shown[value] > times_made[value]) found |= bit(Kind::duplicate_element);
    if (!seen.insert(block.writer).second) found |= bit(Kind::split_append);
    if (block.writer == reader) {
      if (block.values != before)
        found |= bit(block.values.size() > before.size() ? Kind::future_read : Kind::not_own_write);
    } else if (block.values != made) {
      found |= bit(Kind::intermediate_read);
      // Unless the list ends here, the missing elements are elsewhere or come later, after an element of another
      // transaction.
      if (i + 1 < blocks.size() || !prefixes(block.values, made) ||
          block.values.size() > made.size())
        found |= bit(Kind::split_append);
    }
  }
  return found;
}

// --- reads that name a version ---

bool Evidence::names_initial(std::int64_t op) const {
  const std::int64_t named = h_.op_source[op];
  return named == kSourceInitial || (named >= 0 && txn_of(named) == n_);
}

// Returns the anomaly of a read that names a version but returns a value other than the version's. If the history
// allows it, nil may name the initial version, whatever its value.
unsigned Evidence::named_otherwise(std::int64_t op) const {
  if (h_.kind(op) != OpKind::read || h_.op_source[op] == kSourceByValue) return 0;
  const bool initial = names_initial(op);
  const bool nil = value_of(op) == kNil && h_.nil_is_initial(key_of(op));
  if (initial && (nil || h_.initial_value[key_of(op)] == kNil)) return 0;
  const std::int32_t known = initial ? h_.initial_value[key_of(op)] : value_of(h_.op_source[op]);
  return value_of(op) != h_.as_read(known) ? bit(Kind::two_values) : 0;
}

bool Evidence::disagree(std::int64_t op, std::int64_t other) {
  const auto tells = [&](std::int64_t read) {
    return is_external(read) && h_.kind(read) == OpKind::read && names_initial(read) &&
           value_of(read) != kNil && !candidates(read).empty();
  };
  return key_of(op) == key_of(other) && tells(op) && tells(other) &&
         value_of(op) != value_of(other);
}

// --- two list reads ---

bool Evidence::incompatible(std::int64_t op, std::int64_t other) {
  return is_read(op) && is_read(other) && is_list(op) && is_list(other) &&
         key_of(op) == key_of(other) && !prefixes(list_of(op), list_of(other));
}

bool Evidence::contradicts_order(std::int64_t op, std::int64_t other) {
  if (!is_read(op) || !is_read(other) || !is_list(op) || !is_list(other) ||
      key_of(op) != key_of(other))
    return false;
  const std::vector<std::int32_t> a = shown_order(op), b = shown_order(other);
  return repeats(a) || repeats(b) || !prefixes(a, b);
}

}  // namespace isolang::certify
