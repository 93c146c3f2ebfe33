// An index of the appends of each list element, by (key, element), and the part of a list appended by the reading
// transaction itself.
#include <bit>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

std::size_t mix(std::int32_t value) {
  auto x = static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) * 0x9e3779b97f4a7c15ULL;
  return idx(x ^ (x >> 32));
}

// Returns the number of slots for up to this many elements.
std::size_t slots_for(std::int32_t elements) {
  return elements == 0 ? 0 : std::bit_ceil(2 * static_cast<std::size_t>(elements));
}

}  // namespace

void Elements::make_room(const std::vector<std::int32_t>& elements) {
  start_.assign(elements.size() + 1, 0);
  next_.assign(elements.size(), 0);
  std::int32_t count = 0;
  for (std::size_t key = 0; key < elements.size(); ++key) {
    start_[key + 1] = start_[key] + slots_for(elements[key]);
    next_[key] = count;
    count += elements[key];
  }
  slots_.assign(start_.back(), -1);
  all.resize(idx(count));
}

std::int32_t Elements::find(std::int32_t key, std::int32_t value) const {
  const std::size_t first = start_[key], mask = start_[key + 1] - first - 1;
  if (mask + 1 == 0) return -1;
  for (std::size_t i = mix(value) & mask; slots_[first + i] >= 0; i = (i + 1) & mask)
    if (all[slots_[first + i]].value == value) return slots_[first + i];
  return -1;
}

std::int32_t Elements::find_or_add(std::int32_t key, std::int32_t value) {
  const std::size_t first = start_[key], mask = start_[key + 1] - first - 1;
  std::size_t i = mix(value) & mask;
  for (; slots_[first + i] >= 0; i = (i + 1) & mask)
    if (all[slots_[first + i]].value == value) return slots_[first + i];
  const std::int32_t id = slots_[first + i] = next_[key]++;
  all[id].key = key;
  all[id].value = value;
  return id;
}

Elements::Elements(const History& h, const Scan& s) {
  std::vector<std::int32_t> appends(idx(h.n_keys()), 0);
  for (const std::int64_t op : s.append_op) ++appends[h.op_key[op]];
  for (const std::int64_t op : s.dead_append) ++appends[h.op_key[op]];
  make_room(appends);
  of_append.reserve(s.append_op.size());
  for (std::size_t a = 0; a < s.append_op.size(); ++a) {
    const std::int64_t op = s.append_op[a];
    of_append.push_back(find_or_add(h.op_key[op], h.op_value[op]));
    Element& e = all[of_append.back()];
    const std::int32_t txn = s.writer_txn[s.append_writer[a]];
    if (e.append < 0) {
      e.append = static_cast<std::int32_t>(a);
      e.txn = txn;
    }
    if (e.txn == txn) {
      ++e.count;
    } else if (e.second < 0 || e.second_txn == txn) {
      if (e.second < 0) {
        e.second = static_cast<std::int32_t>(a);
        e.second_txn = txn;
      }
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

Elements::Elements(const Elements& from, const std::function<bool(const Element&)>& wanted) {
  std::vector<std::int32_t> elements(from.start_.size() - 1, 0);
  for (const Element& e : from.all)
    if (wanted(e)) ++elements[e.key];
  make_room(elements);
  for (const Element& e : from.all)
    if (wanted(e)) all[find_or_add(e.key, e.value)] = e;
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
