#include <vector>

#include "writers/out.hpp"

namespace isolang {
namespace {

std::size_t idx(auto i) { return static_cast<std::size_t>(i); }

bool is_number(const Atoms& atoms, std::int32_t atom, WrittenFormat format) {
  if (atoms.kind(atom) != AtomKind::integer) return false;
  return format == WrittenFormat::edn || atoms.number(atom) >= 0;
}

// A process does one thing at a time: each transaction of a session begins after the one before has ended.
bool one_at_a_time(const History& h) {
  std::vector<std::int64_t> free_at(idx(h.sessions), kTimeUnknownBegin);
  std::vector<bool> blocked(idx(h.sessions), false);  // by a transaction without an end that is known
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    const auto status = static_cast<Status>(h.txn_status[idx(t)]);
    if (status == Status::aborted) continue;  // stands where its process has room
    const auto s = idx(h.txn_session[idx(t)]);
    const std::int64_t begin = h.txn_begin[idx(t)], end = h.txn_end[idx(t)];
    if (begin == kTimeUnknownBegin || blocked[s] || begin <= free_at[s]) return false;
    if (status == Status::maybe) {
      blocked[s] = true;
    } else if (end == kTimeUnknownEnd) {
      return false;
    } else {
      free_at[s] = end;
    }
  }
  return true;
}

}  // namespace

bool is_plain(const History& h, WrittenFormat format, bool real_time) {
  const bool edn = format == WrittenFormat::edn;
  for (const std::int32_t atom : h.initial_value)
    if (atom != kNil) return false;
  for (const std::int32_t atom : h.key_atom)
    if (!is_number(h.key_atoms, atom, format)) return false;
  // 0 is the initial state of bincode and Plume: neither written nor read under this name here.
  std::vector<char> good(idx(h.values.size()), 0);
  for (std::int32_t v = 0; v < h.values.size(); ++v)
    good[idx(v)] = v != kNil && is_number(h.values, v, format) && (edn || h.values.number(v) > 0);
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    const auto status = static_cast<Status>(h.txn_status[idx(t)]);
    if (status == Status::initial || (status == Status::maybe && !edn)) return false;
    if (format == WrittenFormat::plume && h.op_start[idx(t)] == h.op_start[idx(t) + 1]) return false;
    for (std::int64_t op = h.op_start[idx(t)]; op < h.op_start[idx(t) + 1]; ++op) {
      if (h.op_ok[idx(op)] == 0 || h.op_source[idx(op)] != kSourceByValue) return false;
      const std::int32_t value = h.op_value[idx(op)];
      switch (static_cast<OpKind>(h.op_kind[idx(op)])) {
        case OpKind::append:
          if (!edn || !good[idx(value)]) return false;
          break;
        case OpKind::write:
          if (!good[idx(value)]) return false;
          break;
        case OpKind::read:
          if (value == kUnknownValue ? !edn || status == Status::committed : value != kNil && !good[idx(value)])
            return false;
          if (value == kNil && status == Status::maybe) return false;
          break;
        case OpKind::read_list:
          if (!edn || (value == kUnknownValue && status == Status::committed)) return false;
          if (value == kUnknownValue) break;
          for (std::int64_t i = h.list_start[idx(value)]; i < h.list_start[idx(value) + 1]; ++i)
            if (!good[idx(h.list_values[idx(i)])]) return false;
      }
    }
  }
  return !edn || !real_time || one_at_a_time(h);
}

}  // namespace isolang
