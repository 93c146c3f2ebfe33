// `add` records the keys of a part that several of its transactions write, and forgets the keys of earlier parts whose
// order can no longer change. `unexplained` returns the reads of a window that another order may explain, and the
// functions at the end construct that order.
#include "watch/loose_keys.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/index.hpp"

namespace isolang::watch {
namespace {

constexpr std::size_t kMaxLooseKeys = 200'000;  // with more loose keys, all are forgotten, and cuts are put back
constexpr std::size_t kMaxPartsOfList = 8;        // the most parts over which an order of a list is exchanged

// Returns one byte for the kind of a scalar, then its bytes.
std::string bytes_of(AtomKind kind, std::int64_t number, std::string_view text) {
  std::string name(1, static_cast<char>(kind));
  if (kind >= AtomKind::string) return name.append(text);
  return name.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string bytes_of(const Atoms& atoms, std::int32_t atom) {
  const AtomKind kind = atoms.kind(atom);
  return bytes_of(kind, kind == AtomKind::nil ? 0 : atoms.number(atom),
                 kind >= AtomKind::string ? atoms.text(atom) : std::string_view{});
}

std::string name_of_key(const History& h, std::int32_t key) { return bytes_of(h.key_atoms, h.key_atom[idx(key)]); }

std::span<const std::int32_t> elements(const History& h, std::int64_t op) {
  const std::int64_t begin = h.list_start[idx(h.op_value[idx(op)])], end = h.list_start[idx(h.op_value[idx(op)]) + 1];
  return std::span(h.list_values).subspan(idx(begin), idx(end - begin));
}

bool begins_with(const History& h, std::int64_t op, const Prefix& prefix) {
  Prefix read;
  for (const std::int32_t atom : elements(h, op).first(idx(prefix.length))) extend(read, hash_of(h.values, atom));
  return read == prefix;
}

// The writers of one key in a part, in their version order.
struct Writers {
  const History& part;
  std::int32_t key;
  std::span<std::int32_t> order;

  // Calls visit(the name of the value, the writer) for the writes, in the version order.
  template <typename Visit>
  void each_write(const Visit& visit) const {
    for (const std::int32_t t : order) {
      if (t < 0 || t >= part.transactions()) throw std::invalid_argument("an order of no transactions");
      for (std::int64_t op = part.op_start[idx(t)]; op < part.op_start[idx(t) + 1]; ++op)
        if (part.op_key[idx(op)] == key && part.op_ok[idx(op)] != 0 && is_write(part.kind(op)))
          visit(bytes_of(part.values, part.as_read(part.op_value[idx(op)])), t);
    }
  }
};

// Moves the last writer of a value to the end of the order. Returns false if no transaction wrote
// the value.
bool end_with(const Writers& writers, const std::string& value) {
  std::unordered_map<std::int32_t, std::string> left;
  writers.each_write([&](std::string name, std::int32_t t) { left[t] = std::move(name); });
  const auto order = writers.order;
  for (std::size_t i = order.size(); i-- > 0;) {
    if (left[order[i]] != value) continue;
    std::ranges::rotate(order.subspan(i), order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}

// Sorts the writers by the order of their elements in a list. Returns false if the list lacks the elements of some
// writer.
bool order_by(const Writers& writers, std::span<const std::int32_t> list, const Atoms& atoms) {
  std::unordered_map<std::string, std::int32_t> writer;
  writers.each_write([&](std::string name, std::int32_t t) { writer.emplace(std::move(name), t); });
  if (list.size() < writer.size()) return false;
  std::vector<std::int32_t> order;
  for (const std::int32_t atom : list.first(writer.size())) {
    const auto at = writer.find(bytes_of(atoms, atom));
    if (at == writer.end()) return false;
    if (std::ranges::find(order, at->second) == order.end()) order.push_back(at->second);
  }
  if (order.size() != writers.order.size()) return false;
  std::ranges::copy(order, writers.order.begin());
  return true;
}

}  // namespace

void LooseKeys::Filter::take(const std::string& name) {
  const auto kind = static_cast<AtomKind>(name[0]);
  std::int64_t number = 0;
  if (kind < AtomKind::string) std::copy_n(name.data() + 1, sizeof number, reinterpret_cast<char*>(&number));
  const std::size_t i = place(kind, number, std::string_view(name).substr(1));
  bits_[i / 64] |= std::uint64_t{1} << i % 64;
}

bool LooseKeys::Filter::may_have(const Atoms& atoms, std::int32_t atom) const {
  const AtomKind kind = atoms.kind(atom);
  const bool text = kind >= AtomKind::string;
  const std::size_t i =
      place(kind, kind == AtomKind::nil ? 0 : atoms.number(atom), text ? atoms.text(atom) : std::string_view{});
  return (bits_[i / 64] >> i % 64 & 1) != 0;
}

std::size_t LooseKeys::Filter::place(AtomKind kind, std::int64_t number, std::string_view text) {
  if (kind >= AtomKind::string) return std::hash<std::string_view>{}(text) % kBits;
  return (static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL >> 32) % kBits;
}

void LooseKeys::add(const History& part, std::span<const std::int64_t> order_start, std::int64_t number) {
  if (order_start.size() != idx(part.n_keys()) + 1) throw std::invalid_argument("no order of each key");
  if (!part.statement_start.empty() || parts_of_.size() > kMaxLooseKeys) parts_of_.clear();
  if (!part.statement_start.empty()) return;
  filter_ = Filter();
  for (const auto& [name, parts] : parts_of_) filter_.take(name);
  std::vector<char> only_appends(idx(part.n_keys()), 1);
  for (std::int64_t op = 0; op < part.operations(); ++op)
    if (part.kind(op) != OpKind::append) only_appends[idx(part.op_key[idx(op)])] = 0;
  for (std::int32_t key = 0; key < part.n_keys(); ++key) {
    const bool several = order_start[idx(key) + 1] - order_start[idx(key)] > 1;
    if (!several && !filter_.may_have(part.key_atoms, part.key_atom[idx(key)])) continue;
    std::string name = name_of_key(part, key);
    const auto known = parts_of_.find(name);
    if (known != parts_of_.end() && only_appends[idx(key)] != 0) {
      if (known->second.size() == kMaxPartsOfList) known->second.erase(known->second.begin());
      known->second.push_back(number);
    } else if (several) {
      filter_.take(name);
      parts_of_[std::move(name)] = {number};
    } else if (known != parts_of_.end()) {
      parts_of_.erase(known);
    }
  }
}

void LooseKeys::forget(std::int64_t from) {
  for (auto at = parts_of_.begin(); at != parts_of_.end();) {
    std::erase_if(at->second, [&](std::int64_t part) { return part >= from; });
    at = at->second.empty() ? parts_of_.erase(at) : std::next(at);
  }
}

LooseKeys::Reads LooseKeys::unexplained(const History& window, const LastValues& last) const {
  Reads found;
  if (parts_of_.empty()) return found;
  struct Key {
    const std::vector<std::int64_t>* parts;
    Last last;
    std::string value;  // the name of its single value, or of nil if it has none
  };
  std::vector<Key> keys;
  std::vector<std::int32_t> loose(idx(window.n_keys()), -1);  // index into keys
  for (std::int32_t k = 0; k < window.n_keys(); ++k) {
    if (!filter_.may_have(window.key_atoms, window.key_atom[idx(k)])) continue;
    const auto at = parts_of_.find(name_of_key(window, k));
    if (at == parts_of_.end()) continue;
    loose[idx(k)] = static_cast<std::int32_t>(keys.size());
    Key& key = keys.emplace_back(&at->second, Last{}, std::string{});
    if (!last.find(window.key_atoms, window.key_atom[idx(k)], key.last)) key.last = Last{};
    key.value = bytes_of(key.last.kind, key.last.number, key.last.text);
  }
  if (keys.empty()) return found;
  const auto is_loose = [&](std::int64_t op) {
    return loose[idx(window.op_key[idx(op)])] >= 0 && window.op_ok[idx(op)] != 0 &&
           window.op_value[idx(op)] != kUnknownValue;
  };
  const auto status = [&](std::int32_t t) { return static_cast<Status>(window.txn_status[idx(t)]); };
  std::vector<std::int64_t> ops;
  for (std::int32_t t = 0; t < window.transactions(); ++t) {
    if (status(t) != Status::committed) continue;
    for (std::int64_t op = window.op_start[idx(t)]; op < window.op_start[idx(t) + 1]; ++op) {
      if (!is_loose(op)) continue;
      const std::int32_t value = window.op_value[idx(op)];
      const Key& key = keys[idx(loose[idx(window.op_key[idx(op)])])];
      const OpKind kind = window.kind(op);
      const bool other =
          key.last.list
              ? kind == OpKind::read_list && std::cmp_greater_equal(elements(window, op).size(), key.last.prefix.length) &&
                    !begins_with(window, op, key.last.prefix)
              : kind == OpKind::read && bytes_of(window.values, window.as_read(value)) != key.value;
      if (other) ops.push_back(op);
    }
  }
  if (ops.empty()) return found;
  // Each write of the window to a key that one of `ops` reads, as the key and the value, in order.
  std::vector<std::pair<std::int32_t, std::int32_t>> wrote;
  std::vector<char> read(idx(window.n_keys()), 0);
  for (const std::int64_t op : ops) read[idx(window.op_key[idx(op)])] = 1;
  for (std::int32_t t = 0; t < window.transactions(); ++t) {
    if (status(t) == Status::aborted) continue;
    for (std::int64_t op = window.op_start[idx(t)]; op < window.op_start[idx(t) + 1]; ++op)
      if (read[idx(window.op_key[idx(op)])] != 0 && window.kind(op) == OpKind::write && is_loose(op))
        wrote.emplace_back(window.op_key[idx(op)], window.as_read(window.op_value[idx(op)]));
  }
  std::ranges::sort(wrote);
  for (const std::int64_t op : ops) {
    const std::int32_t key = window.op_key[idx(op)];
    if (window.kind(op) == OpKind::read &&
        std::ranges::binary_search(wrote, std::pair{key, window.as_read(window.op_value[idx(op)])}))
      continue;
    for (const std::int64_t part : *keys[idx(loose[idx(key)])].parts) {
      found.op.push_back(op);
      found.part.push_back(part);
    }
  }
  return found;
}

Exchanged exchanged(const History& part, std::span<const std::int64_t> order_start,
                    std::span<const std::int32_t> order_txn, const History& window,
                    std::span<const std::int64_t> reads, const LastValues& last) {
  if (order_start.size() != idx(part.n_keys()) + 1 || order_start.front() != 0 ||
      !std::ranges::is_sorted(order_start) || std::cmp_not_equal(order_start.back(), order_txn.size()))
    throw std::invalid_argument("no order of each key");
  const auto name_of_read = [&](std::int64_t op) { return name_of_key(window, window.op_key[idx(op)]); };
  std::unordered_map<std::string, std::int32_t> keys;  // by name
  for (const std::int64_t op : reads) {
    if (op < 0 || op >= window.operations()) throw std::invalid_argument("no operation of the window");
    keys.emplace(name_of_read(op), -1);
  }
  Exchanged found;
  for (std::int32_t key = 0; key < part.n_keys(); ++key) {
    const auto at = keys.find(name_of_key(part, key));
    if (at == keys.end()) continue;
    at->second = key;
    found.keys.push_back(key);
  }
  std::vector<std::int32_t> order(order_txn.begin(), order_txn.end());
  for (const std::int64_t op : reads) {
    const std::int32_t key = keys.at(name_of_read(op));
    if (key < 0) return found;
    const std::int64_t first = order_start[idx(key)], end = order_start[idx(key) + 1];
    const Writers writers{part, key, std::span(order).subspan(idx(first), idx(end - first))};
    if (window.kind(op) == OpKind::read_list) {
      const auto list = elements(window, op);
      Last before;
      const bool here = last.find(part.key_atoms, part.key_atom[idx(key)], before);
      const std::size_t known = here && before.list ? idx(before.prefix.length) : 0;
      if (list.size() < known || !order_by(writers, list.subspan(known), window.values)) return found;
    } else if (!end_with(writers, bytes_of(window.values, window.as_read(window.op_value[idx(op)])))) {
      return found;
    }
  }
  found.order = std::move(order);
  return found;
}

}  // namespace isolang::watch
