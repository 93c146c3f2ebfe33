#include "watch/last_values.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "core/index.hpp"
#include "watch/open_window.hpp"

namespace isolang::watch {
namespace {

std::uint64_t mix(std::uint64_t x) {  // the finalizer of splitmix64
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15ULL, kSecond = 0xc2b2ae3d27d4eb4fULL;

enum Flag : std::uint8_t { kGone = 0, kSingle = 1, kList = 2 };

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void byte(std::uint8_t b) { out_.push_back(static_cast<char>(b)); }
  void number(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) byte(static_cast<std::uint8_t>(n | 0x80));
    byte(static_cast<std::uint8_t>(n));
  }
  void atom(AtomKind kind, std::int64_t number_of, std::string_view text) {
    byte(static_cast<std::uint8_t>(kind));
    if (kind == AtomKind::integer || kind == AtomKind::natural) {
      const auto n = static_cast<std::uint64_t>(number_of);
      number((n << 1) ^ (number_of < 0 ? ~std::uint64_t{0} : 0));
    } else if (kind != AtomKind::nil) {
      number(text.size());
      out_ += text;
    }
  }
  void fixed(std::uint64_t n) {
    for (int i = 0; i < 8; ++i) byte(static_cast<std::uint8_t>(n >> 8 * i));
  }
  void last(const Last& last, bool here) {
    byte(!here ? kGone : last.list ? kList : kSingle);
    if (!here) return;
    if (last.list) {
      number(static_cast<std::uint64_t>(last.prefix.length));
      fixed(last.prefix.first);
      fixed(last.prefix.second);
    } else {
      atom(last.kind, last.number, last.text);
    }
  }

 private:
  std::string& out_;
};

[[noreturn]] void malformed() { throw std::invalid_argument("no values that a cut left"); }

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  bool more() const { return at_ < in_.size(); }
  std::uint8_t byte() {
    if (!more()) malformed();
    return static_cast<std::uint8_t>(in_[at_++]);
  }
  std::uint64_t number() {
    std::uint64_t n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = byte();
      n |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return n;
    }
    malformed();
  }
  std::uint64_t fixed() {
    std::uint64_t n = 0;
    for (int i = 0; i < 8; ++i) n |= static_cast<std::uint64_t>(byte()) << 8 * i;
    return n;
  }
  void atom(AtomKind& kind, std::int64_t& number_of, std::string& text) {
    const std::uint8_t k = byte();
    if (k > static_cast<std::uint8_t>(AtomKind::other)) malformed();
    kind = static_cast<AtomKind>(k);
    number_of = 0;
    text.clear();
    if (kind == AtomKind::integer || kind == AtomKind::natural) {
      const std::uint64_t n = number();
      number_of = static_cast<std::int64_t>((n >> 1) ^ (~(n & 1) + 1));
    } else if (kind != AtomKind::nil) {
      const std::uint64_t size = number();
      if (size > in_.size() - at_) malformed();
      text = in_.substr(at_, size);
      at_ += size;
    }
  }
  bool last(Last& last) {
    last = Last{};
    const std::uint8_t flag = byte();
    if (flag > kList) malformed();
    if (flag == kGone) return false;
    if (flag == kSingle) {
      atom(last.kind, last.number, last.text);
      return true;
    }
    last.list = true;
    const std::uint64_t length = number();
    if (length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) malformed();
    last.prefix = {static_cast<std::int64_t>(length), fixed(), fixed()};
    return true;
  }

 private:
  std::string_view in_;
  std::size_t at_ = 0;
};

bool is_text(AtomKind kind) { return kind >= AtomKind::string; }

bool appends(const History& part, std::int32_t t, std::int32_t key) {
  if (t < 0 || t >= part.transactions()) return false;
  for (std::int64_t op = part.op_start[t]; op < part.op_start[t + 1]; ++op)
    if (part.op_key[op] == key && part.kind(op) == OpKind::append && part.op_ok[op] != 0) return true;
  return false;
}

// Returns the name of a key that is not an integer: one byte for its kind, then its number or text.
std::string name_of(AtomKind kind, std::int64_t number, std::string_view text) {
  std::string name(1, static_cast<char>(kind));
  if (is_text(kind)) return name.append(text);
  return kind == AtomKind::nil ? name : name.append(std::to_string(number));
}

std::string_view text_of(const std::string* name) {
  return name == nullptr ? std::string_view{} : std::string_view(*name).substr(1);
}

void write_key(Writer& out, const Atoms& keys, std::int32_t atom) {
  const AtomKind kind = keys.kind(atom);
  out.atom(kind, keys.number(atom), is_text(kind) ? keys.text(atom) : std::string_view{});
}

// Returns whether a predicate is true of a row or cannot be judged. The code that judges the row reports why it cannot
// be.
bool may_match(const predicates::Predicate& predicate, std::string_view key, const std::string& value) {
  const auto own = predicates::key_in_table(key, predicate.table);
  if (!own) return false;
  predicates::Row row;
  predicates::read_row(value, row);
  try {
    return predicates::matches(predicate.where, row, predicates::cell_of(*own));
  } catch (const std::invalid_argument&) {
    return true;
  }
}

struct Name {
  AtomKind kind = AtomKind::nil;
  std::int64_t number = 0;
  std::string text;
};

// Calls row(name, last, key, value) with its texts for each of these entries that is a row, and other() for each that
// is a list or a key without a value.
template <typename Row, typename Other>
void each_row_of(std::string_view entries, const Row& row, const Other& other) {
  Reader in(entries);
  Name name;
  Last last;
  while (in.more()) {
    in.atom(name.kind, name.number, name.text);
    if (!in.last(last) || last.list) {
      other();
      continue;
    }
    row(name, last, predicates::text_of(name.kind, name.number, name.text),
        predicates::text_of(last.kind, last.number, last.text));
  }
}

}  // namespace

ElementHash hash_of(const Atoms& atoms, std::int32_t atom) {
  const AtomKind kind = atoms.kind(atom);
  std::uint64_t a = mix(kFirst + static_cast<std::uint64_t>(kind));
  std::uint64_t b = mix(kSecond + static_cast<std::uint64_t>(kind));
  if (!is_text(kind)) {
    const auto n = static_cast<std::uint64_t>(atoms.number(atom));
    return {mix((a ^ n) + kFirst), mix((b ^ n) + kSecond)};
  }
  for (const char c : atoms.text(atom)) {
    const auto n = static_cast<std::uint64_t>(static_cast<unsigned char>(c));
    a = mix((a ^ n) + kFirst);
    b = mix((b ^ n) + kSecond);
  }
  return {a, b};
}

void extend(Prefix& prefix, ElementHash element) {
  ++prefix.length;
  prefix.first = mix((prefix.first ^ element.first) + kFirst);
  prefix.second = mix((prefix.second ^ element.second) + kSecond);
}

std::int32_t LastValues::find_key(AtomKind kind, std::int64_t number, std::string_view text) const {
  if (kind == AtomKind::integer) {
    const std::int32_t atom = integers_.find_integer(number);
    return atom < 0 ? -1 : of_integer_[idx(atom)];
  }
  const auto it = others_.find(name_of(kind, number, text));
  return it == others_.end() ? -1 : it->second;
}

std::int32_t LastValues::find_key(const Atoms& from, std::int32_t atom) const {
  const AtomKind kind = from.kind(atom);
  return find_key(kind, from.number(atom), is_text(kind) ? from.text(atom) : std::string_view{});
}

std::int32_t LastValues::key_of(AtomKind kind, std::int64_t number, std::string_view text) {
  const std::int32_t known = find_key(kind, number, text);
  if (known >= 0) return known;
  const auto fresh = static_cast<std::int32_t>(keys_.size());
  const std::string* name = nullptr;
  if (kind == AtomKind::integer) {
    const std::int32_t atom = integers_.intern_integer(number);
    of_integer_.resize(idx(integers_.size()), -1);
    of_integer_[idx(atom)] = fresh;
  } else {
    name = &others_.emplace(name_of(kind, number, text), fresh).first->first;
    text_bytes_ += std::ssize(*name);
  }
  keys_.push_back({kind, number, name});
  entries_.emplace_back();
  return fresh;
}

void LastValues::read(std::int32_t key, Last& last) const {
  const Entry& entry = entries_[idx(key)];
  last.list = entry.list;
  last.kind = entry.kind;
  last.number = entry.number;
  last.prefix = entry.prefix;
  last.text = entry.view();
}

void LastValues::set(std::int32_t key, Entry&& entry) {
  constexpr std::int64_t kEntryOverhead = 16;
  Entry& old = entries_[idx(key)];
  live_ += (entry.here ? 1 : 0) - (old.here ? 1 : 0);
  text_bytes_ += (entry.text ? entry.size + kEntryOverhead : 0) - (old.text ? old.size + kEntryOverhead : 0);
  old = std::move(entry);
}

void LastValues::put(std::int32_t key, const Last& last) {
  Entry entry{true, last.list, last.kind, 0, last.number, last.prefix, nullptr};
  if (!last.list && is_text(last.kind)) {
    if (last.text.size() > std::numeric_limits<std::uint32_t>::max()) malformed();
    entry.size = static_cast<std::uint32_t>(last.text.size());
    entry.text = std::make_unique_for_overwrite<char[]>(entry.size);
    std::ranges::copy(last.text, entry.text.get());
  }
  set(key, std::move(entry));
  if (rows_.asked() && is_row(key)) rows_.tell(key, key_text(key), value_text(key));
}

std::string LastValues::key_text(std::int32_t key) const {
  const Key& k = keys_[idx(key)];
  return predicates::text_of(k.kind, k.number, text_of(k.text));
}

std::string LastValues::value_text(std::int32_t key) const {
  const Entry& entry = entries_[idx(key)];
  return predicates::text_of(entry.kind, entry.number, entry.view());
}

std::vector<std::int32_t> LastValues::rows_of(const predicates::Predicate& predicate) {
  rows_.drop_stale();
  if (!rows_.has(predicate.table)) {
    rows_.begin(predicate.table);
    for (std::int32_t key = 0; idx(key) < keys_.size(); ++key)
      if (is_row(key)) rows_.tell(predicate.table, key, key_text(key), value_text(key));
  }
  const auto texts_of = [&](std::int32_t key) -> std::optional<std::pair<std::string, std::string>> {
    if (!is_row(key)) return std::nullopt;
    return std::pair(key_text(key), value_text(key));
  };
  std::vector<std::int32_t> found;
  for (const std::int32_t key : rows_.candidates(predicate, texts_of))
    if (const auto texts = texts_of(key); texts && may_match(predicate, texts->first, texts->second)) found.push_back(key);
  return found;
}

void LastValues::take_matching(std::string_view entries, const std::vector<predicates::Predicate>& some) {
  each_row_of(entries, [&](const Name& name, const Last& last, const std::string& key, const std::string& value) {
    const bool asked = std::ranges::any_of(some, [&](const auto& predicate) { return may_match(predicate, key, value); });
    if (asked && find_key(name.kind, name.number, name.text) < 0) put(key_of(name.kind, name.number, name.text), last);
  }, [] {});
}

std::string marked(std::string_view text) { return std::string(1, '=').append(text); }

std::vector<std::optional<Cell>> cells_of(std::string_view entries, std::string_view table, std::string_view column) {
  std::vector<std::optional<Cell>> cells;
  each_row_of(entries, [&](const Name&, const Last&, const std::string& key, const std::string& value) {
    auto& cell = cells.emplace_back();
    const auto own = predicates::key_in_table(key, table);
    if (!own) return;
    const Indexed found = column.empty() ? Indexed{Indexed::Kind::other, 0, {}} : indexed(column, *own, value);
    if (found.kind == Indexed::Kind::none) return;
    cell = Cell{found.kind == Indexed::Kind::number, found.number, {}};
    if (found.kind == Indexed::Kind::text) cell->text = marked(found.text);
  }, [&] { cells.emplace_back(); });
  return cells;
}

std::int32_t LastValues::intern_key(Atoms& into, std::int32_t key) const {
  const Key& k = keys_[idx(key)];
  switch (k.kind) {
    case AtomKind::nil: return kNil;
    case AtomKind::integer: return into.intern_integer(k.number);
    case AtomKind::natural: return into.intern_natural(static_cast<std::uint64_t>(k.number));
    default: return into.intern_text(k.kind, text_of(k.text));
  }
}

bool LastValues::find(const Atoms& keys, std::int32_t atom, Last& found) const {
  const std::int32_t key = find_key(keys, atom);
  if (key < 0 || !entries_[idx(key)].here) return false;
  read(key, found);
  return true;
}

std::string LastValues::left_by(const History& part, std::span<const std::int64_t> order_start,
                                std::span<const std::int32_t> order_txn) const {
  std::string out;
  Writer writer(out);
  if (order_start.size() != idx(part.n_keys()) + 1) throw std::invalid_argument("no order of each key");
  for (std::int32_t key = 0; key < part.n_keys(); ++key) {
    const std::int64_t begin = order_start[idx(key)], end = order_start[idx(key) + 1];
    if (begin < 0 || end < begin || idx(end) > order_txn.size())
      throw std::invalid_argument("an order that has no bounds");
    Last last;
    bool here = false, wrote = false;
    if (find(part.key_atoms, part.key_atom[idx(key)], last)) here = true;
    const bool list = begin < end && appends(part, order_txn[idx(end - 1)], key);
    // A list grows by all appends; of single values, the last one remains.
    for (std::int64_t i = list ? begin : std::max(begin, end - 1); i < end; ++i) {
      const std::int32_t t = order_txn[idx(i)];
      if (t < 0 || t >= part.transactions()) throw std::invalid_argument("an order of no transactions");
      for (std::int64_t op = part.op_start[t]; op < part.op_start[t + 1]; ++op) {
        if (part.op_key[op] != key || part.op_ok[op] == 0 || !is_write(part.kind(op))) continue;
        const std::int32_t value = part.op_value[op];
        if (part.kind(op) == OpKind::append) {
          if (!here || !last.list) last = Last{}, last.list = true, here = true;
          extend(last.prefix, hash_of(part.values, value));
          wrote = true;
        } else if (i + 1 == end) {
          last = Last{};
          last.kind = part.values.kind(value);
          const bool text = is_text(last.kind);
          if (text)
            last.text = part.values.text(value);
          else
            last.number = part.values.number(value);
          here = value != part.deleted;
          wrote = true;
        }
      }
    }
    if (!wrote) continue;
    write_key(writer, part.key_atoms, part.key_atom[idx(key)]);
    writer.last(last, here);
  }
  return out;
}

std::string LastValues::replace(std::string_view change) {
  std::string before;
  Writer undo(before);
  Reader in(change);
  Last last, old;
  AtomKind kind = AtomKind::nil;
  std::int64_t number = 0;
  std::string text;
  while (in.more()) {
    in.atom(kind, number, text);
    const bool here = in.last(last);
    std::int32_t key = find_key(kind, number, text);
    const bool was = key >= 0 && entries_[idx(key)].here;
    if (was) read(key, old);
    undo.atom(kind, number, text);
    undo.last(old, was);
    if (here) {
      if (key < 0) key = key_of(kind, number, text);
      put(key, last);
    } else if (was) {
      set(key, Entry{});
    } else if (keep_removed && key < 0) {
      key_of(kind, number, text);
    }
  }
  compact();
  return before;
}

template <typename Visit>
void LastValues::each(std::int64_t first, std::int64_t count, const Visit& visit) const {
  Last last;
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, numbers());
  const std::int64_t end = begin + std::clamp<std::int64_t>(count, 0, numbers() - begin);
  for (std::int64_t k = begin; k < end; ++k) {
    const auto key = static_cast<std::int32_t>(k);
    const bool here = entries_[idx(key)].here;
    if (!here && !keep_removed) continue;
    if (here) read(key, last);
    visit(keys_[idx(key)], here, last);
  }
}

std::string LastValues::entries(std::int64_t first, std::int64_t count) const {
  std::string out;
  Writer writer(out);
  each(first, count, [&](const Key& key, bool here, const Last& last) {
    writer.atom(key.kind, key.number, text_of(key.text));
    writer.last(last, here);
  });
  return out;
}

LastValues::Records LastValues::records(std::int64_t first, std::int64_t count) const {
  Records records;
  each(first, count, [&](const Key& key, bool here, const Last& last) {
    std::string name;
    Writer(name).atom(key.kind, key.number, text_of(key.text));
    std::string record = name;
    Writer(record).last(last, here);
    records.emplace_back(std::move(name), std::move(record));
  });
  return records;
}

void LastValues::clear() {
  const bool kept = keep_removed;
  *this = LastValues();
  keep_removed = kept;
}

std::vector<std::string> LastValues::missing(const History& history) const {
  std::vector<std::string> names;
  for (const std::int32_t atom : history.key_atom) {
    const std::int32_t key = find_key(history.key_atoms, atom);
    if (key >= 0) continue;
    std::string name;
    Writer writer(name);
    write_key(writer, history.key_atoms, atom);
    names.push_back(std::move(name));
  }
  return names;
}

std::int64_t LastValues::memory() const {
  return static_cast<std::int64_t>(keys_.size() * (sizeof(Key) + sizeof(Entry)) + of_integer_.capacity() * 4 +
                                   idx(integers_.size()) * 25 + others_.size() * 80) +
         text_bytes_ + rows_.memory();
}

// Frees the numbers of deleted keys.
void LastValues::compact() {
  if (keep_removed) return;
  if (std::ssize(keys_) < 2 * live_ + 4096) return;
  const std::string kept = entries(0, numbers());
  *this = LastValues();
  Reader in(kept);
  AtomKind kind = AtomKind::nil;
  std::int64_t number = 0;
  std::string text;
  Last last;
  while (in.more()) {
    in.atom(kind, number, text);
    in.last(last);
    put(key_of(kind, number, text), last);
  }
}

}  // namespace isolang::watch
