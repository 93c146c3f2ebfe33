// `classify_reads` determines the intrinsic anomaly of each read that has no candidate, or that contradicts its own
// transaction's writes. The functions at the top form the names of transactions and operations for messages.
#include <algorithm>
#include <cctype>
#include <compare>
#include <unordered_map>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

constexpr auto kWrite = static_cast<std::uint8_t>(OpKind::write);

bool is_status(const History& h, std::int32_t t, Status status) {
  return h.txn_status[t] == static_cast<std::uint8_t>(status);
}

std::string atom_text(const Atoms& atoms, std::int32_t i) {
  std::string text;
  switch (atoms.kind(i)) {
    case AtomKind::nil:
      return "nil";
    case AtomKind::integer:
      return std::to_string(atoms.number(i));
    case AtomKind::natural:
      return std::to_string(static_cast<std::uint64_t>(atoms.number(i)));
    case AtomKind::string:
      text.append("\"").append(atoms.text(i)).append("\"");
      return text;
    case AtomKind::keyword:
      text.append(":").append(atoms.text(i));
      return text;
    case AtomKind::other:
      break;
  }
  text.append(atoms.text(i));
  return text;
}

// The successful writes of one transaction at a time, sorted by key and value.
class OwnWrites {
 public:
  explicit OwnWrites(const History& h) : h_(h) {}
  void of(std::int32_t t) {
    if (t == txn_) return;
    txn_ = t;
    writes_.clear();
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
      if (h_.op_ok[op] != 0 && h_.op_kind[op] == kWrite)
        writes_.push_back({h_.op_key[op], h_.as_read(h_.op_value[op]), op});
    std::sort(writes_.begin(), writes_.end());
  }
  // Returns the last write of the value to the key before the read, or -1.
  std::int64_t before(std::int64_t read, std::int32_t key, std::int32_t value) const {
    const auto it = std::lower_bound(writes_.begin(), writes_.end(), Write{key, value, read});
    return it != writes_.begin() && (it - 1)->key == key && (it - 1)->value == value ? (it - 1)->op
                                                                                     : -1;
  }
  // Returns the first write of the value to the key after the read, or -1.
  std::int64_t after(std::int64_t read, std::int32_t key, std::int32_t value) const {
    const auto it = std::upper_bound(writes_.begin(), writes_.end(), Write{key, value, read});
    return it != writes_.end() && it->key == key && it->value == value ? it->op : -1;
  }

 private:
  struct Write {
    std::int32_t key, value;
    std::int64_t op;
    auto operator<=>(const Write&) const = default;
  };
  const History& h_;
  std::int32_t txn_ = -1;
  std::vector<Write> writes_;
};

// Classifies a read after an own write whose value it did not return. An earlier own write explains more than a later
// one, so it has priority: `w(x,1) w(x,2) r(x,1) w(x,1)` is not_last_own_write.
Anomaly classify_broken(const History& h, const Scan::BrokenRead& r, const OwnWrites& own) {
  if (is_set_read(h, r.op)) return {AnomalyKind::not_own_write, r.txn, r.op, r.txn, r.last_own};
  const std::int64_t source = h.op_source[r.op];
  const std::int32_t key = h.op_key[r.op];
  if (source == r.last_own) return {AnomalyKind::two_values, r.txn, r.op, r.txn, r.last_own};
  std::int64_t older = -1, later = -1;
  if (source == kSourceByValue) {
    // The read may return the value of the last own write, but state a different version from that write.
    if (r.value != h.as_read(h.op_value[r.last_own])) {
      older = own.before(r.op, key, r.value);
      later = own.after(r.op, key, r.value);
    }
  } else if (source >= 0 && h.op_ok[source] != 0 && h.op_kind[source] == kWrite &&
             h.op_key[source] == key && txn_of_op(h, source) == r.txn) {
    (source < r.op ? older : later) = source;
  }
  if (older >= 0) return {AnomalyKind::not_last_own_write, r.txn, r.op, r.txn, older};
  if (later >= 0) return {AnomalyKind::future_read, r.txn, r.op, r.txn, later};
  return {AnomalyKind::not_own_write, r.txn, r.op, r.txn, r.last_own};
}

// Classifies a read that names a source from which it cannot have read.
Anomaly classify_source(const History& h, std::int32_t reader, std::int64_t read) {
  const std::int64_t source = h.op_source[read];
  if (source < 0) return {AnomalyKind::thin_air_read, reader, read, -1, -1};
  const std::int32_t t = txn_of_op(h, source);
  if (h.op_kind[source] != kWrite || h.op_key[source] != h.op_key[read])
    return {AnomalyKind::thin_air_read, reader, read, t, source};
  if (h.op_ok[source] == 0 || is_status(h, t, Status::aborted))
    return {AnomalyKind::aborted_read, reader, read, t, source};
  if (t == reader) return {AnomalyKind::future_read, reader, read, t, source};
  return {AnomalyKind::intermediate_read, reader, read, t, source};
}

// Classifies a set-read that no version of its key satisfies. Among the writes whose values would satisfy it, the kinds
// have this priority: later, overwritten, failed or aborted.
Anomaly classify_set_read(const History& h, std::int32_t reader, std::int64_t read) {
  const SetRead set(h, read);
  std::int64_t later = -1, overwritten = -1, dead = -1;
  for (std::int32_t t = 0; t < h.transactions(); ++t)
    for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
      if (h.op_kind[op] != kWrite || h.op_key[op] != h.op_key[read] || !set.allows(h.op_value[op]))
        continue;
      const bool failed = h.op_ok[op] == 0 || is_status(h, t, Status::aborted);
      std::int64_t& first = failed ? dead : t == reader ? later : overwritten;
      if (first < 0) first = op;
    }
  for (const auto& [kind, op] : {std::pair{AnomalyKind::future_read, later},
                                 std::pair{AnomalyKind::intermediate_read, overwritten},
                                 std::pair{AnomalyKind::aborted_read, dead}})
    if (op >= 0) return {kind, reader, read, txn_of_op(h, op), op};
  return {AnomalyKind::thin_air_read, reader, read, -1, -1};
}

}  // namespace

std::int32_t txn_of_op(const History& h, std::int64_t op) {
  const auto after = std::upper_bound(h.op_start.begin(), h.op_start.end(), op);
  return static_cast<std::int32_t>(after - h.op_start.begin()) - 1;
}

std::string key_text(const History& h, std::int32_t key) {
  const std::int32_t atom = h.key_atom[key];
  if (h.key_atoms.kind(atom) ==
      AtomKind::string) {  // a string that looks like a name is printed without quotes
    const auto text = h.key_atoms.text(atom);
    const bool name =
        std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (name && !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0)
      return std::string(text);
  }
  return atom_text(h.key_atoms, atom);
}
std::string value_text(const History& h, std::int32_t value) { return atom_text(h.values, value); }
std::string txn_text(const History& h, std::int32_t txn) {
  std::string text = "T";
  return text.append(std::to_string(h.txn_number[txn]));
}
std::string op_text(const History& h, std::int64_t op) {
  return txn_text(h, txn_of_op(h, op))
      .append(" (at ")
      .append(std::to_string(h.op_position[op]))
      .append(")");
}

// Tries the possible sources in this order: a later write of the transaction itself, a write that was overwritten
// inside its transaction, an aborted write, no write. The first is certain, because no other client can have sent the
// value back through this transaction. Of the next two, the transaction that did commit is the more likely source.
std::vector<Anomaly> classify_reads(const History& h, const Scan& s, const std::vector<UnexplainedRead>& reads) {
  std::vector<Anomaly> out;
  OwnWrites own_writes(h);
  for (const Scan::BrokenRead& r : s.broken_reads) {
    own_writes.of(r.txn);
    out.push_back(classify_broken(h, r, own_writes));
  }
  struct Writes {
    std::int64_t overwritten = -1, dead = -1;
  };
  const auto slot = [](std::int32_t key, std::int32_t value) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) << 32) |
           static_cast<std::uint32_t>(value);
  };
  std::unordered_map<std::uint64_t, Writes> wanted;
  for (const UnexplainedRead& r : reads)
    if (h.op_source[r.op] == kSourceByValue && !is_set_read(h, r.op)) wanted[slot(r.key, r.value)];
  if (!wanted.empty()) {
    for (std::int32_t t = 0; t < h.transactions(); ++t)
      for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
        if (h.op_kind[op] != kWrite) continue;
        const auto it = wanted.find(slot(h.op_key[op], h.as_read(h.op_value[op])));
        if (it == wanted.end()) continue;
        const bool dead = h.op_ok[op] == 0 || is_status(h, t, Status::aborted);
        std::int64_t& first = dead ? it->second.dead : it->second.overwritten;
        if (first < 0) first = op;
      }
  }
  for (const auto& [reader, key, value, read] : reads) {
    if (is_set_read(h, read)) {
      out.push_back(classify_set_read(h, reader, read));
      continue;
    }
    if (h.op_source[read] != kSourceByValue) {
      out.push_back(classify_source(h, reader, read));
      continue;
    }
    own_writes.of(reader);
    const std::int64_t own = own_writes.after(read, key, value);
    const Writes& writes = wanted[slot(key, value)];
    // mutant: own-later-unseen
    if (own >= 0) out.push_back({AnomalyKind::future_read, reader, read, reader, own});
    // mutant: aborted-first
    else if (writes.overwritten >= 0)
      out.push_back({AnomalyKind::intermediate_read, reader, read, txn_of_op(h, writes.overwritten),
                     writes.overwritten});
    else if (writes.dead >= 0)
      out.push_back(
          {AnomalyKind::aborted_read, reader, read, txn_of_op(h, writes.dead), writes.dead});
    else
      out.push_back({AnomalyKind::thin_air_read, reader, read, -1, -1});
  }
  return out;
}

}  // namespace isolang::prepass
