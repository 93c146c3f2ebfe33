// An index of the appends of each list element, by (key, element), and the part of a list appended by the reading
// transaction itself.
#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

std::size_t mix(std::int32_t key, std::int32_t value) {
  std::uint64_t x = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) << 32) |
                    static_cast<std::uint32_t>(value);
  x *= 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  return idx(x ^ (x >> 32));
}

}  // namespace

std::int32_t Elements::find(std::int32_t key, std::int32_t value) const {
  if (slots_.empty()) return -1;
  for (std::size_t i = mix(key, value) & mask_; slots_[i] >= 0; i = (i + 1) & mask_) {
    const Element& e = all[slots_[i]];
    if (e.key == key && e.value == value) return slots_[i];
  }
  return -1;
}

std::int32_t Elements::find_or_add(std::int32_t key, std::int32_t value) {
  std::size_t i = mix(key, value) & mask_;
  for (; slots_[i] >= 0; i = (i + 1) & mask_) {
    const Element& e = all[slots_[i]];
    if (e.key == key && e.value == value) return slots_[i];
  }
  slots_[i] = static_cast<std::int32_t>(all.size());
  Element fresh{};
  fresh.key = key;
  fresh.value = value;
  all.push_back(fresh);
  return slots_[i];
}

Elements::Elements(const History& h, const Scan& s) {
  const std::size_t appends = s.append_op.size() + s.dead_append.size();
  if (appends == 0) return;
  std::size_t capacity = 16;
  while (capacity < 2 * appends) capacity *= 2;
  slots_.assign(capacity, -1);
  mask_ = capacity - 1;
  of_append.reserve(s.append_op.size());
  for (std::size_t a = 0; a < s.append_op.size(); ++a) {
    const std::int64_t op = s.append_op[a];
    const std::int32_t id = find_or_add(h.op_key[op], h.op_value[op]);
    of_append.push_back(id);
    Element& e = all[id];
    if (e.append < 0) e.append = static_cast<std::int32_t>(a);
    const std::int32_t writer = s.append_writer[a];
    if (s.append_writer[e.append] == writer) {
      ++e.count;
    } else if (e.second < 0 || s.append_writer[e.second] == writer) {
      if (e.second < 0) e.second = static_cast<std::int32_t>(a);
      ++e.second_count;
    } else {
      e.third = true;
    }
  }
  for (const std::int64_t op : s.dead_append) {
    Element& e = all[find_or_add(h.op_key[op], h.op_value[op])];
    // mutant: aborted-append-unknown
    if (e.dead_op < 0) e.dead_op = op;
  }
}

// If not all own appends are at the end of the list, this finds the longest tail that consists of the first few of
// them. The read then saw an own append that a later own append had already extended.
OwnTail own_tail(const History& h, const Scan& s, const ListRead& l) {
  OwnTail tail;
  if (l.own_last < 0) return tail;
  const std::int64_t end = l.list < 0 ? 0 : h.list_start[idx(l.list) + 1];
  const std::int64_t length = l.list < 0 ? 0 : end - h.list_start[l.list];
  const auto ends_with = [&](std::int64_t count) {
    std::int32_t a = s.first_append[l.writer];
    std::int64_t i = end - count;
    for (; i < end && h.list_values[i] == h.op_value[s.append_op[a]]; ++i) a = s.append_next[a];
    return i == end;
  };
  std::int64_t made = 1;
  for (std::int32_t a = s.first_append[l.writer]; a != l.own_last; a = s.append_next[a]) ++made;
  if (made <= length && ends_with(made)) return {made, l.own_last, true};
  // mutant: own-tail-incomplete
  tail.complete = false;
  std::int32_t last = s.first_append[l.writer];
  for (std::int64_t count = 1; count < made && count <= length; ++count, last = s.append_next[last])
    if (ends_with(count)) {
      tail.length = count;
      tail.last = last;
    }
  return tail;
}

}  // namespace isolang::prepass
