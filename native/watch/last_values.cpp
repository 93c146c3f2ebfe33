// A hash table finds the entry of a key by the hash of its name. The entry of a list contains its length and the hashes
// of its elements. `left_by` computes the values that a part leaves, and `replace` applies them and returns the bytes
// that undo the change.
#include "watch/last_values.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <unordered_set>

#include "core/index.hpp"
#include "core/prefetch.hpp"
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

constexpr std::int64_t kTextOverhead = 16;  // additional bytes taken by the allocation of a text
constexpr std::size_t kParallelLookups = 12;           // how many look-ups run side by side

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
  void atom(const Scalar& atom) {
    byte(static_cast<std::uint8_t>(atom.kind));
    if (atom.kind == AtomKind::integer || atom.kind == AtomKind::natural) {
      const auto n = static_cast<std::uint64_t>(atom.number);
      number((n << 1) ^ (atom.number < 0 ? ~std::uint64_t{0} : 0));
    } else if (atom.kind != AtomKind::nil) {
      number(atom.text.size());
      out_ += atom.text;
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
      atom({last.kind, last.number, last.text});
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
  Scalar atom() {
    const std::uint8_t k = byte();
    if (k > static_cast<std::uint8_t>(AtomKind::other)) malformed();
    Scalar atom{static_cast<AtomKind>(k), 0, {}};
    if (atom.kind == AtomKind::integer || atom.kind == AtomKind::natural) {
      const std::uint64_t n = number();
      atom.number = static_cast<std::int64_t>((n >> 1) ^ (~(n & 1) + 1));
    } else if (atom.kind != AtomKind::nil) {
      const std::uint64_t size = number();
      if (size > in_.size() - at_) malformed();
      atom.text = in_.substr(at_, size);
      at_ += size;
    }
    return atom;
  }
  bool last(Last& last) {
    last = Last{};
    const std::uint8_t flag = byte();
    if (flag > kList) malformed();
    if (flag == kGone) return false;
    if (flag == kSingle) {
      const Scalar value = atom();
      last.kind = value.kind, last.number = value.number, last.text = value.text;
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

Scalar scalar_of(const Atoms& atoms, std::int32_t atom) {
  const AtomKind kind = atoms.kind(atom);
  if (is_text(kind)) return {kind, 0, atoms.text(atom)};
  return {kind, atoms.number(atom), {}};
}

std::uint64_t hash_of_name(const Scalar& name) {
  if (is_text(name.kind)) return mix(std::hash<std::string_view>{}(name.text) + static_cast<std::uint64_t>(name.kind));
  return mix(static_cast<std::uint64_t>(name.number));
}

// Returns whether a predicate is true of a row, or cannot be decided for it. In the second case, later code reports the
// reason.
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

// Calls row(name, last, key, value) with its texts for each of these entries that is a row, and other() for each that
// is a list or a key without a value.
template <typename Row, typename Other>
void each_row_of(std::string_view entries, const Row& row, const Other& other) {
  Reader in(entries);
  Last last;
  while (in.more()) {
    const Scalar name = in.atom();
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

Scalar LastValues::Key::scalar() const {
  if (is_text(kind)) return {kind, 0, {text.get(), idx(number)}};
  return {kind, number, {}};
}

LastValues::Item& LastValues::Items::add() {
  if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<Item[]>(kBlock));
  return (*this)[size_++];
}

std::size_t LastValues::slot(const Scalar& name, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots_[i] < 0) return i;
    const Scalar held = items_[idx(slots_[i])].key.scalar();
    if (held.kind == name.kind && held.number == name.number && held.text == name.text) return i;
  }
}

void LastValues::prefetch_slot(std::uint64_t hash) const { prefetch(&slots_[hash & (slots_.size() - 1)]); }

void LastValues::prefetch_item(std::uint64_t hash) const {
  const std::int32_t key = slots_[hash & (slots_.size() - 1)];
  if (key >= 0) prefetch(&items_[idx(key)]);
}

std::int32_t LastValues::find_key(const Scalar& name) const { return slots_[slot(name, hash_of_name(name))]; }

std::int32_t LastValues::key_of(const Scalar& name, std::uint64_t hash) {
  std::size_t at = slot(name, hash);
  if (slots_[at] >= 0) return slots_[at];
  if (2 * (items_.size() + 1) > slots_.size()) {
    slots_.assign(2 * slots_.size(), -1);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Scalar held = items_[i].key.scalar();
      slots_[slot(held, hash_of_name(held))] = static_cast<std::int32_t>(i);
    }
    at = slot(name, hash);
  }
  Key& key = items_.add().key;
  key.kind = name.kind, key.number = name.number;
  if (is_text(name.kind)) {
    key.number = std::ssize(name.text);
    key.text = std::make_unique_for_overwrite<char[]>(name.text.size());
    std::ranges::copy(name.text, key.text.get());
    text_bytes_ += key.number + kTextOverhead;
  }
  return slots_[at] = static_cast<std::int32_t>(items_.size()) - 1;
}

std::vector<std::int32_t> LastValues::numbers_of(const History& history) const {
  const std::size_t n = history.key_atom.size();
  std::vector<std::int32_t> found(n);
  std::vector<std::uint64_t> hashes(n);
  for (std::size_t i = 0; i < n + 2 * kParallelLookups; ++i) {
    if (i < n) {
      hashes[i] = hash_of_name(scalar_of(history.key_atoms, history.key_atom[i]));
      prefetch_slot(hashes[i]);
    }
    if (i >= kParallelLookups && i - kParallelLookups < n) prefetch_item(hashes[i - kParallelLookups]);
    if (i < 2 * kParallelLookups) continue;
    const std::size_t k = i - 2 * kParallelLookups;
    found[k] = slots_[slot(scalar_of(history.key_atoms, history.key_atom[k]), hashes[k])];
  }
  return found;
}

void LastValues::read(std::int32_t key, Last& last) const {
  const Entry& held = entry(key);
  last = {held.list, held.kind, held.list ? 0 : held.number, held.view(), {}};
  if (held.list) last.prefix = {held.number, held.first, held.second};
}

void LastValues::set(std::int32_t key, Entry&& entry) {
  Entry& old = items_[idx(key)].entry;
  live_ += (entry.here ? 1 : 0) - (old.here ? 1 : 0);
  text_bytes_ += (entry.text ? entry.size + kTextOverhead : 0) - (old.text ? old.size + kTextOverhead : 0);
  old = std::move(entry);
}

void LastValues::put(std::int32_t key, const Last& last) {
  Entry entry{true, last.list, last.kind, 0, last.list ? last.prefix.length : last.number,
              last.prefix.first, last.prefix.second, nullptr};
  if (!last.list && is_text(last.kind)) {
    if (last.text.size() > std::numeric_limits<std::uint32_t>::max()) malformed();
    entry.size = static_cast<std::uint32_t>(last.text.size());
    entry.text = std::make_unique_for_overwrite<char[]>(entry.size);
    std::ranges::copy(last.text, entry.text.get());
  }
  set(key, std::move(entry));
  if (rows_.asked() && is_row(key)) rows_.add_row(key, key_text(key), value_text(key));
}

std::string LastValues::key_text(std::int32_t key) const {
  const Scalar name = items_[idx(key)].key.scalar();
  return predicates::text_of(name.kind, name.number, name.text);
}

std::string LastValues::value_text(std::int32_t key) const {
  const Entry& held = entry(key);
  return predicates::text_of(held.kind, held.number, held.view());
}

std::vector<std::int32_t> LastValues::rows_of(const predicates::Predicate& predicate) {
  rows_.drop_stale();
  if (!rows_.has(predicate.table)) {
    rows_.begin(predicate.table);
    for (std::int32_t key = 0; idx(key) < items_.size(); ++key)
      if (is_row(key)) rows_.add_row(predicate.table, key, key_text(key), value_text(key));
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
  each_row_of(entries, [&](const Scalar& name, const Last& last, const std::string& key, const std::string& value) {
    const bool asked = std::ranges::any_of(some, [&](const auto& predicate) { return may_match(predicate, key, value); });
    if (asked && find_key(name) < 0) put(key_of(name, hash_of_name(name)), last);
  }, [] {});
}

std::string marked(std::string_view text) { return std::string(1, '=').append(text); }

std::vector<std::optional<Cell>> cells_of(std::string_view entries, std::string_view table, std::string_view column) {
  std::vector<std::optional<Cell>> cells;
  each_row_of(entries, [&](const Scalar&, const Last&, const std::string& key, const std::string& value) {
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
  const Scalar name = items_[idx(key)].key.scalar();
  switch (name.kind) {
    case AtomKind::nil: return kNil;
    case AtomKind::integer: return into.intern_integer(name.number);
    case AtomKind::natural: return into.intern_natural(static_cast<std::uint64_t>(name.number));
    default: return into.intern_text(name.kind, name.text);
  }
}

bool LastValues::find(const Atoms& keys, std::int32_t atom, Last& found) const {
  return find(find_key(scalar_of(keys, atom)), found);
}

bool LastValues::find(std::int32_t number, Last& found) const {
  if (number < 0 || !entry(number).here) return false;
  read(number, found);
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
    if (begin == end) continue;
    Last last;
    const bool list = appends(part, order_txn[idx(end - 1)], key);
    bool wrote = false;
    bool here = list && find(part.key_atoms, part.key_atom[idx(key)], last);
    // A list contains all appends. Of the values of a register, only the last one remains.
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
    writer.atom(scalar_of(part.key_atoms, part.key_atom[idx(key)]));
    writer.last(last, here);
  }
  return out;
}

std::string LastValues::replace(std::string_view change) {
  struct Change {
    Scalar name;
    std::uint64_t hash;
    bool here;
    Last last;
  };
  std::vector<Change> changes;
  Reader in(change);
  while (in.more()) {
    Change& one = changes.emplace_back();
    one.name = in.atom();
    one.hash = hash_of_name(one.name);
    one.here = in.last(one.last);
  }
  std::string before;
  before.reserve(change.size());
  Writer undo(before);
  Last old;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i + 2 * kParallelLookups < changes.size()) prefetch_slot(changes[i + 2 * kParallelLookups].hash);
    if (i + kParallelLookups < changes.size()) prefetch_item(changes[i + kParallelLookups].hash);
    const Change& one = changes[i];
    std::int32_t key = slots_[slot(one.name, one.hash)];
    const bool was = find(key, old);
    undo.atom(one.name);
    undo.last(old, was);
    if (one.here) {
      if (key < 0) key = key_of(one.name, one.hash);
      put(key, one.last);
    } else if (was) {
      set(key, Entry{});
    } else if (keep_removed && key < 0) {
      key_of(one.name, one.hash);
    }
  }
  compact();
  return before;
}

LastValues LastValues::of_reads(std::string_view entries, const History& window, std::span<const std::int64_t> reads) {
  std::unordered_set<std::uint64_t> concerned;  // the hashes of the keys' names; entries of other keys do no harm
  for (const std::int64_t op : reads) {
    if (op < 0 || op >= window.operations()) throw std::invalid_argument("no operation of the window");
    concerned.insert(hash_of_name(scalar_of(window.key_atoms, window.key_atom[idx(window.op_key[idx(op)])])));
  }
  LastValues found;
  Reader in(entries);
  Last last;
  while (in.more()) {
    const Scalar name = in.atom();
    const bool here = in.last(last);
    const std::uint64_t hash = hash_of_name(name);
    if (here && concerned.contains(hash)) found.put(found.key_of(name, hash), last);
  }
  return found;
}

std::string entries_with(std::string_view entries, std::string_view change) {
  LastValues changed;
  changed.keep_removed = true;
  changed.replace(change);
  std::string out;
  out.reserve(entries.size() + change.size());
  Writer writer(out);
  Reader in(entries);
  Last last;
  while (in.more()) {
    const Scalar name = in.atom();
    bool here = in.last(last);
    if (const std::int32_t key = changed.find_key(name); key >= 0) here = changed.find(key, last);
    writer.atom(name);
    writer.last(last, here);
  }
  return out;
}

template <typename Visit>
void LastValues::each(std::int64_t first, std::int64_t count, const Visit& visit) const {
  Last last;
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, numbers());
  const std::int64_t end = begin + std::clamp<std::int64_t>(count, 0, numbers() - begin);
  for (std::int64_t k = begin; k < end; ++k) {
    const auto key = static_cast<std::int32_t>(k);
    const bool here = find(key, last);
    if (here || keep_removed) visit(items_[idx(key)].key.scalar(), here, last);
  }
}

std::string LastValues::entries(std::int64_t first, std::int64_t count) const {
  std::string out;
  Writer writer(out);
  each(first, count, [&](const Scalar& key, bool here, const Last& last) {
    writer.atom(key);
    writer.last(last, here);
  });
  return out;
}

LastValues::Records LastValues::records(std::int64_t first, std::int64_t count) const {
  Records records;
  each(first, count, [&](const Scalar& key, bool here, const Last& last) {
    std::string name;
    Writer(name).atom(key);
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
  const std::vector<std::int32_t> numbers = numbers_of(history);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (numbers[k] < 0) Writer(names.emplace_back()).atom(scalar_of(history.key_atoms, history.key_atom[k]));
  return names;
}

std::int64_t LastValues::memory() const {
  return static_cast<std::int64_t>(items_.size() * sizeof(Item) + slots_.size() * sizeof(slots_[0])) + text_bytes_ +
         rows_.memory();
}

// Frees the numbers of deleted keys.
void LastValues::compact() {
  if (keep_removed) return;
  if (numbers() < 2 * live_ + 4096) return;
  const std::string kept = entries(0, numbers());
  *this = LastValues();
  Reader in(kept);
  Last last;
  while (in.more()) {
    const Scalar name = in.atom();
    in.last(last);
    put(key_of(name, hash_of_name(name)), last);
  }
}

}  // namespace isolang::watch
