// Groups the writers by key and value, so that the candidates of a read are a range.
//
// One key is handled at a time: a counting sort brings the writers and the reads of the key together, and a small
// hash table of its values stays in the cache. The time is linear in the number of operations.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

// The values of one key, numbered by first appearance. Clearing the table costs nothing, because a slot is valid only
// in the epoch in which it was set.
class ValueGroups {
 public:
  void reset(std::size_t expected) {
    std::size_t capacity = 16;
    while (capacity < 2 * expected) capacity *= 2;
    if (capacity > slots_.size()) slots_.assign(capacity, Slot{});
    mask_ = capacity - 1;
    ++epoch_;
    values_.clear();
  }
  std::int32_t find_or_add(std::int32_t value) {
    std::size_t i = hash(value);
    for (; slots_[i].epoch == epoch_; i = (i + 1) & mask_)
      if (slots_[i].value == value) return slots_[i].group;
    const auto group = static_cast<std::int32_t>(values_.size());
    slots_[i] = {epoch_, value, group};
    values_.push_back(value);
    if (2 * values_.size() > mask_ + 1) grow();
    return group;
  }
  std::size_t size() const { return values_.size(); }

 private:
  struct Slot {
    std::uint32_t epoch = 0;
    std::int32_t value = 0, group = 0;
  };
  std::size_t hash(std::int32_t value) const {
    // Fibonacci hashing, which distributes values best over the high half of the product.
    return idx((static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) *
                0x9e3779b97f4a7c15ULL) >>
               32) &
           mask_;
  }
  void grow() {
    const std::size_t capacity = 2 * (mask_ + 1);
    if (capacity > slots_.size()) slots_.resize(capacity);
    mask_ = capacity - 1;
    ++epoch_;
    for (std::size_t g = 0; g < values_.size(); ++g) {
      std::size_t i = hash(values_[g]);
      while (slots_[i].epoch == epoch_) i = (i + 1) & mask_;
      slots_[i] = {epoch_, values_[g], static_cast<std::int32_t>(g)};
    }
  }
  std::vector<Slot> slots_;
  std::vector<std::int32_t> values_;
  std::size_t mask_ = 0;
  std::uint32_t epoch_ = 0;
};

// A read with what is needed to find its candidates, so that the loop over the reads of a key reads memory sequentially.
struct Read {
  std::int32_t value, txn, read;
};

// Returns the reads, sorted by key (a stable counting sort). `start` gets one more entry than there are keys.
std::vector<Read> reads_by_key(const History& h, const Scan& s, std::vector<std::int32_t>& start) {
  start.assign(idx(h.n_keys()) + 2, 0);
  for (const std::int32_t key : s.read_key) ++start[idx(key) + 2];
  for (std::size_t k = 2; k < start.size(); ++k) start[k] += start[k - 1];
  std::vector<Read> sorted(s.read_op.size());
  for (std::size_t r = 0; r < sorted.size(); ++r)
    sorted[start[idx(s.read_key[r]) + 1]++] = {value_seen(h, s, s.read_op[r]), s.read_txn[r], static_cast<std::int32_t>(r)};
  start.pop_back();
  return sorted;
}

// Groups the writers by key, each key's in transaction order after T0 (a counting sort). Without lists, the scan's
// writers are not needed any more, and their memory is.
void put_writers_by_key(const History& h, Scan& s, Candidates& c) {
  const std::size_t writers = s.writer_op.size(), total = writers + idx(h.n_keys());
  std::vector<std::int32_t> next(idx(h.n_keys()) + 1, 0);
  for (const std::int32_t op : s.writer_op) ++next[idx(h.op_key[op]) + 1];
  for (std::size_t key = 0; key < idx(h.n_keys()); ++key) next[key + 1] += next[key] + 1;
  c.key_start = next;
  c.txn.resize(total);
  c.value.resize(total);
  c.op.resize(total);
  if (s.has_lists()) c.entry.resize(total);
  const auto put = [&](std::int32_t position, std::int32_t txn, std::int32_t value, std::int32_t op, std::int32_t entry) {
    c.txn[position] = txn;
    c.value[position] = value;
    c.op[position] = op;
    if (s.has_lists()) c.entry[position] = entry;
  };
  for (std::size_t key = 0; key < idx(h.n_keys()); ++key)
    put(next[key]++, h.transactions(), h.initial_value[key], -1, -1);
  for (std::size_t w = 0; w < writers; ++w) {
    const std::int32_t op = s.writer_op[w];
    put(next[h.op_key[op]]++, s.writer_txn[w], h.op_value[op], op, static_cast<std::int32_t>(w));
  }
  if (s.has_lists()) return;
  s.writer_txn = std::vector<std::int32_t>();
  s.writer_op = std::vector<std::int32_t>();
}

// Moves each entry from `first` on to its place.
template <typename T>
void rearrange(std::vector<T>& column, std::size_t first, const std::vector<std::int32_t>& place) {
  if (column.empty()) return;
  const std::vector<T> before(column.begin() + static_cast<std::ptrdiff_t>(first),
                              column.begin() + static_cast<std::ptrdiff_t>(first + place.size()));
  for (std::size_t i = 0; i < place.size(); ++i) column[place[i]] = before[i];
}

// The latest transaction of the scan that read a version, and its first read of that version.
struct FirstRead {
  std::int32_t txn = -1, read = -1;
};
// Marks a read as repeated if its transaction has already read the version. A transaction counts as reading each
// version once: later reads are merged into the first one.
void merge(FirstRead& first, std::int32_t txn, std::int32_t read, Candidates& c) {
  // mutant: repeated-reads-kept
  if (first.txn == txn) {
    c.range[read].flags |= kRepeated;
    c.repeated.push_back({read, first.read});
  } else {
    first = {txn, read};
  }
}

// Returns the writers of the key (among low … high-1) that a set-read may have seen.
Candidates::Range list_writers(const History& h, std::int64_t op, std::int32_t low,
                               std::int32_t high, Candidates& c) {
  const SetRead read(h, op);
  Candidates::Range range;
  range.flags = kListed | kOwn;
  if (read.allows_initial()) range.flags |= kFromT0;
  range.low = static_cast<std::int32_t>(c.listed.size());
  for (std::int32_t e = low; e < high; ++e)
    if (read.allows(c.value[e])) c.listed.push_back(e);
  if (c.listed.size() > idx(std::numeric_limits<std::int32_t>::max()))
    throw std::domain_error("set-reads have more candidate sources than the 2147483647 expected");
  range.high = static_cast<std::int32_t>(c.listed.size());
  return range;
}

// Sets the candidates of reads whose source is named by the format.
void follow_sources(const History& h, const Scan& s, Candidates& c) {
  std::vector<std::int32_t> entry_of_op(idx(h.operations()), -1);
  for (std::size_t e = 0; e < c.op.size(); ++e)
    if (c.op[e] >= 0) entry_of_op[c.op[e]] = static_cast<std::int32_t>(e);
  std::vector<FirstRead> first_read(c.op.size());
  for (std::size_t r = 0; r < s.read_op.size(); ++r) {
    const std::int64_t source = h.op_source[s.read_op[r]];
    if (source == kSourceByValue) continue;
    const std::int32_t key = s.read_key[r];
    std::int32_t from = -1;
    if (source == kSourceInitial) {
      from = c.key_start[key];
    } else if (source >= 0 && h.op_key[source] == key && h.op_ok[source] != 0 &&
               h.op_kind[source] == static_cast<std::uint8_t>(OpKind::write)) {
      from = entry_of_op[source];
      const std::int32_t t = from < 0 ? txn_of_op(h, source) : -1;
      if (t >= 0 && h.txn_status[t] == static_cast<std::uint8_t>(Status::initial)) {
        bool last = true;  // the effect of T0 is the last write of the transaction that stands for it
        for (std::int64_t op = source + 1; op < h.op_start[t + 1]; ++op)
          last &= h.op_ok[op] == 0 || h.op_key[op] != key ||
                  h.op_kind[op] != static_cast<std::uint8_t>(OpKind::write);
        // mutant: initial-any-write
        if (last) from = c.key_start[key];
      }
    }
    if (from < 0) continue;
    if (from == c.key_start[key]) {
      c.range[r].flags |= kFromT0;
      // mutant: named-source-is-reader
    } else if (c.txn[from] != s.read_txn[r]) {
      c.range[r].low = from;
      c.range[r].high = from + 1;
    } else {
      continue;  // a later write of the reading transaction itself, which is not a candidate
    }
    merge(first_read[from], s.read_txn[r], static_cast<std::int32_t>(r), c);
  }
}

}  // namespace

Candidates find_candidates(const History& h, Scan& s) {
  Candidates c;
  put_writers_by_key(h, s, c);
  std::vector<std::int32_t> read_start;
  const std::vector<Read> reads = reads_by_key(h, s, read_start);
  c.range.resize(reads.size());

  // Without set-reads, the key's reads, which may be anywhere in the history, need not be looked up again.
  const bool set_reads = std::ranges::any_of(
      h.op_kind, [](std::uint8_t kind) { return is_set_read(static_cast<OpKind>(kind)); });
  ValueGroups groups;
  std::vector<std::int32_t> group_of, group_end;
  std::vector<FirstRead> first_read;
  for (std::int32_t key = 0; key < h.n_keys(); ++key) {
    const std::int32_t first = c.key_start[key] + 1, last = c.key_start[key + 1];
    const std::size_t writers = idx(last - first);
    groups.reset(writers);
    // A loaded row is nil only after a delete.
    // mutant: replaced-nil-initial
    const bool vanishes =
        !h.nil_is_initial(key) ||
        (h.deleted != kNoAtom && h.initial_value[key] != kNil &&
         std::find(c.value.begin() + first, c.value.begin() + last, h.deleted) != c.value.begin() + last);
    group_of.resize(writers);
    group_end.clear();
    for (std::size_t i = 0; i < writers; ++i) {
      const std::int32_t g = groups.find_or_add(h.as_read(c.value[idx(first) + i]));
      if (idx(g) == group_end.size()) group_end.push_back(0);
      ++group_end[g];
      group_of[i] = g;
    }
    std::int32_t position = first;
    for (std::int32_t& end : group_end) {  // the counts become starts …
      const std::int32_t count = end;
      end = position;
      position += count;
    }
    for (std::int32_t& place : group_of) place = group_end[place]++;  // … and the starts become ends
    if (group_end.size() < writers) {  // some value is repeated
      rearrange(c.txn, idx(first), group_of);
      rearrange(c.value, idx(first), group_of);
      rearrange(c.op, idx(first), group_of);
      rearrange(c.entry, idx(first), group_of);
    }

    const std::size_t written = group_end.size();
    first_read.assign(written, {});
    for (std::size_t i = idx(read_start[key]); i < idx(read_start[key + 1]); ++i) {
      const Read& read = reads[i];
      if (s.any_source && h.op_source[s.read_op[read.read]] != kSourceByValue) continue;
      Candidates::Range& range = c.range[read.read];
      if (set_reads && is_set_read(h, s.read_op[read.read])) {
        range = list_writers(h, s.read_op[read.read], first, last, c);
        continue;
      }
      const std::size_t g = idx(groups.find_or_add(read.value));
      if (g < written) {
        range.low = g == 0 ? first : group_end[g - 1];
        range.high = group_end[g];
        const bool own = range.high - range.low == 1
                             ? c.txn[range.low] == read.txn
                             : std::binary_search(c.txn.begin() + range.low,
                                                  c.txn.begin() + range.high, read.txn);
        // mutant: reads-own-write
        if (own) range.flags |= kOwn;
      }
      const bool from_t0 =
          // mutant: nil-not-initial, declared-not-initial
          s.is_list(key) ? read.value == kEmptyList
                         : read.value == h.initial_value[key] || (read.value == kNil && !vanishes);
      if (from_t0) range.flags |= kFromT0;
      if (g >= first_read.size()) first_read.emplace_back();
      merge(first_read[g], read.txn, read.read, c);
    }
  }
  if (s.any_source) follow_sources(h, s, c);
  return c;
}

}  // namespace isolang::prepass
