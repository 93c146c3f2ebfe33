// One walk over the operations: the last writes, the external reads, and the reads that contradict their transaction's
// own writes.
#include <algorithm>
#include <stdexcept>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

bool may_be_included(std::uint8_t status) {
  return status == static_cast<std::uint8_t>(Status::committed) ||
         status == static_cast<std::uint8_t>(Status::indeterminate);
}

bool is_list_kind(OpKind kind) { return kind == OpKind::append || kind == OpKind::read_list; }

std::int64_t list_length(const History& h, std::int32_t list) {
  return h.list_start[list + 1] - h.list_start[list];
}

// Returns whether a scalar represents the empty list, the value of a key without appends.
bool is_initial(const History& h, std::int32_t key, std::int32_t value) {
  return value == kNil || value == h.initial_value[key];
}

// Returns whether a read and a write both state a version, and these versions differ.
bool states_another(const History& h, std::int64_t read, std::int64_t write) {
  const std::int32_t version = h.version(read);
  return version != kNoVersion && h.version(write) != kNoVersion && version != h.version(write);
}

// Returns, for each key, whether it holds a list. Throws if a key is used both as a list and as a register, because no
// order of the writes explains its reads.
std::vector<std::uint8_t> find_list_keys(const History& h) {
  std::vector<std::int64_t> register_op(idx(h.n_keys()), -1), list_op(idx(h.n_keys()), -1),
      source_op(idx(h.n_keys()), -1);
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    const bool reads_count = may_be_included(h.txn_status[t]);
    const bool initial = h.txn_status[t] == static_cast<std::uint8_t>(Status::initial);
    for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
      if (h.op_ok[op] == 0) continue;
      const std::int32_t key = h.op_key[op], value = h.op_value[op];
      bool as_list = false, as_register = false;
      switch (static_cast<OpKind>(h.op_kind[op])) {
        case OpKind::write:
          as_register = true;
          break;
        case OpKind::append:
          as_list = true;
          if (initial)
            throw std::domain_error("key " + key_text(h, key) + ": the initial transaction " +
                                    op_text(h, op) +
                                    " appends to a list, expected lists that start empty");
          break;
        case OpKind::read:
          as_register = reads_count && value != kUnknownValue && !is_initial(h, key, value);
          break;
        case OpKind::read_list:
          as_list = reads_count && value != kUnknownValue && list_length(h, value) > 0;
          break;
        case OpKind::read_one_of:
        case OpKind::read_none_of:
          as_register = reads_count && value != kUnknownValue;
          break;
      }
      if (reads_count && h.op_source[op] != kSourceByValue) source_op[key] = op;
      if (as_list && list_op[key] < 0) list_op[key] = op;
      if (as_register && register_op[key] < 0) register_op[key] = op;
    }
  }
  std::vector<std::uint8_t> is_list(idx(h.n_keys()), 0);
  for (std::int32_t key = 0; key < h.n_keys(); ++key) {
    if (list_op[key] < 0) continue;
    is_list[key] = 1;
    // mutant: register-and-list
    if (register_op[key] >= 0)
      throw std::domain_error("key " + key_text(h, key) + ": used as a register by " +
                              op_text(h, register_op[key]) + " and as a list by " +
                              op_text(h, list_op[key]) + ", expected one of the two");
    if (source_op[key] >= 0)
      throw std::domain_error(
          "key " + key_text(h, key) + ": " + op_text(h, source_op[key]) +
          " names the source of a list read, expected lists to be matched by their elements");
  }
  return is_list;
}

}  // namespace

std::int32_t value_seen(const History& h, const Scan& s, std::int64_t op) {
  const std::int32_t value = h.op_value[op];
  const OpKind kind = h.kind(op);
  if (s.is_list(h.op_key[op]))
    return kind == OpKind::read || list_length(h, value) == 0 ? kEmptyList
                                                             : h.list_values[h.list_start[value + 1] - 1];
  return kind == OpKind::read_list ? kNil : value;  // only an empty list can occur here
}

Scan scan(const History& h) {
  Scan s;
  bool lists = false;
  for (const std::uint8_t kind : h.op_kind) lists |= is_list_kind(static_cast<OpKind>(kind));
  if (lists) s.key_is_list = find_list_keys(h);

  // For each key: the transaction that wrote it last in this walk, and its writer entry.
  struct Own {
    std::int32_t txn = -1, writer = -1;
  };
  std::vector<Own> own(idx(h.n_keys()));
  const auto writes = idx(std::ranges::count_if(h.op_kind, [](std::uint8_t kind) {
    return kind == static_cast<std::uint8_t>(OpKind::write) ||
           kind == static_cast<std::uint8_t>(OpKind::append);
  }));
  const std::size_t reads = h.op_kind.size() - writes;
  s.writer_txn.reserve(writes);
  s.writer_op.reserve(writes);
  s.read_txn.reserve(reads);
  s.read_key.reserve(reads);
  s.read_op.reserve(reads);

  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    const bool included = may_be_included(h.txn_status[t]);
    s.any_indeterminate |= h.txn_status[t] == static_cast<std::uint8_t>(Status::indeterminate);
    const std::size_t first_list_read = s.list_reads.size();
    for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
      const auto kind = static_cast<OpKind>(h.op_kind[op]);
      // mutant: failed-operations-count
      const bool ok = h.op_ok[op] != 0;
      if (!ok) ++s.ignored_failed_ops;
      if (!ok || !included) {
        if (kind == OpKind::append) s.dead_append.push_back(op);
        continue;
      }
      const std::int32_t key = h.op_key[op], value = h.op_value[op];
      Own& mine = own[key];
      if (kind == OpKind::write || kind == OpKind::append) {
        const bool first = mine.txn != t;
        if (first) {
          mine = {t, static_cast<std::int32_t>(s.writer_txn.size())};
          s.writer_txn.push_back(t);
          s.writer_op.push_back(static_cast<std::int32_t>(op));
          if (lists) {
            s.first_append.push_back(-1);
            s.last_append.push_back(-1);
          }
        } else {
          // mutant: first-write-counts
          s.writer_op[mine.writer] = static_cast<std::int32_t>(op);
        }
        if (kind == OpKind::append) {
          const auto append = static_cast<std::int32_t>(s.append_op.size());
          s.append_op.push_back(op);
          s.append_writer.push_back(mine.writer);
          s.append_next.push_back(-1);
          if (first)
            s.first_append[mine.writer] = append;
          else
            s.append_next[s.last_append[mine.writer]] = append;
          s.last_append[mine.writer] = append;
        }
        continue;
      }
      const std::int64_t source = h.op_source[op];
      if (value == kUnknownValue) {
        ++s.ignored_unknown_reads;
        continue;
      }
      if (s.is_list(key)) {
        const bool empty = kind == OpKind::read || list_length(h, value) == 0;
        const std::int32_t own_last = mine.txn == t ? s.last_append[mine.writer] : -1;
        s.list_reads.push_back({t, key, empty ? -1 : value, -1, own_last, op});
        if (own_last >= 0) continue;
        s.read_txn.push_back(t);
        s.read_key.push_back(key);
        s.read_op.push_back(static_cast<std::int32_t>(op));
        continue;
      }
      s.any_source |= source != kSourceByValue;
      if (mine.txn == t) {
        const std::int32_t seen = value_seen(h, s, op);
        const std::int64_t expected = s.writer_op[mine.writer];
        const std::int32_t written = h.op_value[expected];
        const bool fits = is_set_read(kind)
                              ? SetRead(h, op).allows(written)
                          : source == kSourceByValue
                              ? seen == h.as_read(written)
                              : source == expected && (kind != OpKind::read || value == h.as_read(written));
        // mutant: own-writes-unchecked
        // mutant: own-versions-unchecked
        if (!fits || states_another(h, op, expected)) s.broken_reads.push_back({t, seen, op, expected});
        continue;
      }
      s.read_txn.push_back(t);
      s.read_key.push_back(key);
      s.read_op.push_back(static_cast<std::int32_t>(op));
    }
    for (std::size_t i = first_list_read; i < s.list_reads.size(); ++i) {
      const Own& mine = own[s.list_reads[i].key];
      if (mine.txn == t) s.list_reads[i].writer = mine.writer;
    }
  }
  return s;
}

}  // namespace isolang::prepass
