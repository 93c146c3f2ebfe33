// Answers queries about single facts of a history: relations between two transactions, a transaction's writes and
// reads, and the writes that a read may have seen. Nothing is computed before it is queried. A key's index is built at
// the first query about the key.
#include "certify/evidence.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "certify/moments.hpp"
#include "certify/set_read.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {
std::uint64_t pair_of(std::int32_t key, std::int32_t value) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) << 32 |
         static_cast<std::uint32_t>(value);
}
bool starts_with(std::span<const std::int32_t> list, std::span<const std::int32_t> beginning) {
  return list.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), list.begin());
}

}  // namespace

Evidence::Evidence(const History& history, Budget& budget)
    : h_(history), n_(history.transactions()), budget_(budget) {
  for (std::int32_t t = 0; t < n_; ++t)
    if (static_cast<Status>(h_.txn_status[t]) == Status::initial) initial_.push_back(t);
  by_key_start_.assign(idx(h_.n_keys()) + 1, 0);
  for (const std::int32_t key : h_.op_key) ++by_key_start_[key + 1];
  std::partial_sum(by_key_start_.begin(), by_key_start_.end(), by_key_start_.begin());
  by_key_.resize(h_.op_key.size());
  std::vector<std::int64_t> at(by_key_start_.begin(), by_key_start_.end() - 1);
  for (std::size_t op = 0; op < h_.op_key.size(); ++op) {
    budget_.poll();
    by_key_[at[h_.op_key[op]]++] = static_cast<std::int64_t>(op);
  }
}

// --- transactions ---

bool Evidence::live(std::int64_t t) const {
  if (t == n_) return true;
  if (t < 0 || t > n_) return false;
  const auto status = static_cast<Status>(h_.txn_status[t]);
  return status == Status::committed || status == Status::indeterminate;
}

bool Evidence::certain(std::int64_t t) const {
  return t == n_ ||
         (t >= 0 && t < n_ && static_cast<Status>(h_.txn_status[t]) == Status::committed);
}

std::optional<bool> Evidence::given(int relation, std::int64_t a, std::int64_t b) const {
  switch (relation) {
    case static_cast<int>(Relation::init):
      return init(a, b);
    case static_cast<int>(Relation::so):
      return so(a, b);
    case static_cast<int>(Relation::rt):
      return rt(a, b);
    case static_cast<int>(Relation::group_rt):
      return group_rt(a, b);
    case static_cast<int>(Relation::done):
      return done(a, b);
    case static_cast<int>(Relation::late):
      return late(a, b);
    case static_cast<int>(Relation::locked):
      return locked(a, b);
    default:
      return std::nullopt;
  }
}

bool Evidence::init(std::int64_t a, std::int64_t b) const { return a == n_ && b != n_ && live(b); }

bool Evidence::so(std::int64_t a, std::int64_t b) const {
  if (a == n_ || b == n_) return init(a, b);
  return certain(a) && live(b) && a < b && h_.txn_session[a] == h_.txn_session[b];
}

bool Evidence::rt(std::int64_t a, std::int64_t b) const {
  if (a == n_ || b == n_) return init(a, b);
  const auto first = static_cast<std::int32_t>(a), second = static_cast<std::int32_t>(b);
  return h_.has_time && certain(a) && live(b) && a != b &&
         Moments(h_).before(h_.txn_end[idx(a)], first, h_.txn_begin[idx(b)], second);
}

bool Evidence::group_rt(std::int64_t a, std::int64_t b) const {
  return h_.has_groups() && a != n_ && b != n_ && rt(a, b) && h_.txn_group[a] != kNil &&
         h_.txn_group[a] == h_.txn_group[b];
}

bool Evidence::timed(std::int64_t a, std::int64_t b) const {
  return Moments(h_).known() && a != b && a != n_ && b != n_ && live(a) && live(b);
}

bool Evidence::done(std::int64_t a, std::int64_t b) const {
  const Moments moments(h_);
  const auto first = static_cast<std::int32_t>(a), second = static_cast<std::int32_t>(b);
  return timed(a, b) && moments.before(moments.commit_answered(first), first,
                                       moments.commit_sent(second), second);
}

bool Evidence::late(std::int64_t a, std::int64_t b) const {
  const Moments moments(h_);
  const auto first = static_cast<std::int32_t>(a), second = static_cast<std::int32_t>(b);
  return timed(a, b) && moments.before(moments.first_answered(first), first,
                                       moments.commit_sent(second), second);
}

bool Evidence::locked(std::int64_t a, std::int64_t b) const {
  if (!timed(a, b)) return false;
  const Moments moments(h_);
  const auto first = static_cast<std::int32_t>(a), second = static_cast<std::int32_t>(b);
  for (std::int64_t op = h_.op_start[first]; op < h_.op_start[first + 1]; ++op)
    if (moments.writes(second, h_.op_key[op]) &&
        moments.before(moments.write_answered(first, h_.op_key[op]), first,
                       moments.commit_sent(second), second))
      return true;
  return false;
}

bool Evidence::committed_before(std::int64_t t, std::int64_t op) {
  if (!is_operation(op) || !is_external(op) || !timed(t, txn_of(op))) return false;
  const Moments moments(h_);
  const auto first = static_cast<std::int32_t>(t);
  return moments.before(moments.commit_answered(first), first, moments.sent(op, txn_of(op)),
                        txn_of(op));
}

bool Evidence::answered_before(std::int64_t op, std::int64_t later) {
  if (!is_operation(op) || !is_operation(later) || !is_external(op) || !is_external(later))
    return false;
  const Moments moments(h_);
  const std::int32_t first = txn_of(op), second = txn_of(later);
  return moments.known() && first != n_ && second != n_ &&
         moments.before(moments.answered(op, first), first, moments.sent(later, second), second);
}

bool Evidence::committed_after(std::int64_t op, std::int64_t t) {
  if (!is_operation(op) || !is_external(op) || !timed(txn_of(op), t)) return false;
  const Moments moments(h_);
  const auto second = static_cast<std::int32_t>(t);
  return moments.before(moments.answered(op, txn_of(op)), txn_of(op), moments.commit_sent(second),
                        second);
}

std::int64_t Evidence::raw_transaction(std::int64_t op) const {
  return std::upper_bound(h_.op_start.begin(), h_.op_start.end(), op) - h_.op_start.begin() - 1;
}

bool Evidence::of_transaction(std::int64_t op, std::int64_t t) const {
  return t >= 0 && t < n_ && op >= h_.op_start[t] && op < h_.op_start[t + 1];
}

bool Evidence::writes_before(std::int64_t txn, std::int32_t key, std::int64_t later) const {
  if (txn < 0 || txn >= n_ || !of_transaction(later, txn)) return false;
  std::int64_t last = -1;
  for (std::int64_t op = h_.op_start[txn]; op < h_.op_start[txn + 1]; ++op)
    if (is_write(op) && is_ok(op) && key_of(op) == key) last = op;
  return last >= 0 && last < later;
}

std::int32_t Evidence::txn_of(std::int64_t op) const {
  const auto t = static_cast<std::int32_t>(raw_transaction(op));
  return static_cast<Status>(h_.txn_status[t]) == Status::initial ? n_ : t;
}

std::vector<std::int64_t> Evidence::writes_by(std::int32_t t, std::int32_t key) const {
  std::vector<std::int64_t> found;
  const auto collect = [&](std::int32_t u) {
    for (std::int64_t op = h_.op_start[u]; op < h_.op_start[u + 1]; ++op)
      if (h_.op_key[op] == key && is_write(op) && is_ok(op)) found.push_back(op);
  };
  if (t < n_) {
    collect(t);
  } else {
    for (const std::int32_t u : initial_) collect(u);
  }
  return found;
}

bool Evidence::writes_key(std::int64_t t, std::int32_t key) const {
  return t == n_ || (live(t) && !writes_by(static_cast<std::int32_t>(t), key).empty());
}

bool Evidence::writes(std::int64_t t) const {
  if (t == n_) return true;
  if (!live(t)) return false;
  for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
    if (is_write(op) && is_ok(op)) return true;
  return false;
}

// --- reads ---

bool Evidence::reads(std::int64_t t) {
  if (t == n_ || !live(t)) return false;
  for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
    if (is_external(op) && !candidates(op).empty()) return true;
  return false;
}

bool Evidence::reads_key(std::int64_t t, std::int32_t key) {
  if (t == n_ || !live(t)) return false;
  for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
    if (h_.op_key[op] == key && is_external(op) && !candidates(op).empty()) return true;
  return false;
}

bool Evidence::is_write(std::int64_t op) const {
  const auto kind = static_cast<OpKind>(h_.op_kind[op]);
  return kind == OpKind::write || kind == OpKind::append;
}

Evidence::KeyIndex& Evidence::key_index(std::int32_t key) {
  const auto [it, fresh] = keys_.try_emplace(key);
  KeyIndex& index = it->second;
  if (!fresh) return index;
  std::vector<std::int64_t> reads;
  for (std::int64_t i = by_key_start_[key]; i < by_key_start_[key + 1]; ++i) {
    budget_.poll();
    const std::int64_t op = by_key_[i];
    if (is_write(op)) {
      index.writes.push_back({value_of(op), op});
      if (is_ok(op) && live(txn_of(op)))
        (static_cast<OpKind>(h_.op_kind[op]) == OpKind::write ? index.written : index.appended) =
            true;
    } else {
      reads.push_back(op);
    }
  }
  std::sort(index.writes.begin(), index.writes.end());
  for (const std::int64_t op : reads)
    if ((static_cast<OpKind>(h_.op_kind[op]) == OpKind::read_list || index.appended) &&
        is_read(op) && is_list(op))
      (certain(txn_of(op)) ? index.list_reads : index.indeterminate_list_reads).push_back(op);
  return index;
}

std::span<const Evidence::Write> Evidence::writes_of(std::int32_t key, std::int32_t value) {
  const auto& writes = key_index(key).writes;
  const auto first = std::lower_bound(writes.begin(), writes.end(), value,
                                      [](const Write& w, std::int32_t v) { return w.value < v; });
  const auto last = std::upper_bound(first, writes.end(), value,
                                     [](std::int32_t v, const Write& w) { return v < w.value; });
  return {first, last};
}

// Returns the writes that an external read saw or may have seen, including failed and aborted ones.
std::vector<Evidence::Write> Evidence::writes_seen(std::int64_t op) {
  if (!is_set_read(h_.kind(op))) {
    const auto same = writes_of(key_of(op), value_of(op));
    std::vector<Write> found(same.begin(), same.end());
    if (value_of(op) == kNil && h_.deleted != kNoAtom) {
      const auto deletes = writes_of(key_of(op), h_.deleted);
      found.insert(found.end(), deletes.begin(), deletes.end());
    }
    return found;
  }
  std::vector<Write> found;
  const SetRead read(h_, op);
  for (const Write& w : key_index(key_of(op)).writes)
    if (read.allows(w.value)) found.push_back(w);
  return found;
}

// Returns whether a read of nil cannot have seen the initial version. This always holds if the history declares a value
// that replaces nil. If the row existed initially, it holds once some transaction deletes the row.
bool Evidence::vanishes(std::int32_t key) {
  if (!h_.nil_is_initial(key)) return true;
  if (h_.deleted == kNoAtom || h_.initial_value[key] == kNil) return false;
  for (const Write& w : writes_of(key, h_.deleted))
    if (txn_of(w.op) != n_ && explains(w.op, key)) return true;
  return false;
}

bool Evidence::is_list(std::int64_t op) {
  const auto kind = static_cast<OpKind>(h_.op_kind[op]);
  if (kind == OpKind::read_list) return value_of(op) != kUnknownValue;
  return kind == OpKind::read && value_of(op) == kNil && key_index(key_of(op)).appended;
}

bool Evidence::is_read(std::int64_t op) {
  if (!is_operation(op) || is_write(op) || !is_ok(op) || value_of(op) == kUnknownValue)
    return false;
  const std::int32_t t = txn_of(op);
  if (t == n_ || !live(t)) return false;
  const KeyIndex& index = key_index(key_of(op));
  const OpKind kind = h_.kind(op);
  const bool list = kind == OpKind::read_list, nil = kind == OpKind::read && value_of(op) == kNil;
  if ((index.written && (index.appended || list)) || (index.appended && !list && !nil))
    throw NotCertified{"not certified: key " + std::to_string(key_of(op)) +
                       " is both a register and a list"};
  return true;
}

// Returns the successful writes of the read's key by its own transaction, before or after the read.
std::vector<std::int64_t> Evidence::own(std::int64_t op, bool before) const {
  std::vector<std::int64_t> found;
  const std::int64_t t = raw_transaction(op);
  const std::int64_t begin = before ? h_.op_start[t] : op + 1,
                     end = before ? op : h_.op_start[t + 1];
  for (std::int64_t w = begin; w < end; ++w)
    if (key_of(w) == key_of(op) && is_write(w) && is_ok(w)) found.push_back(w);
  return found;
}

bool Evidence::is_external(std::int64_t op) { return is_read(op) && own(op, true).empty(); }

// Returns whether the write is the last write of the key by a transaction that may be included.
bool Evidence::explains(std::int64_t write, std::int32_t key) {
  if (!is_write(write) || !is_ok(write) || key_of(write) != key) return false;
  const std::int32_t t = txn_of(write);
  if (!live(t)) return false;
  return t == n_ ? writes_by(n_, key).back() == write : own(write, false).empty();
}

std::vector<std::int32_t> Evidence::candidates(std::int64_t op) {
  const std::int32_t reader = txn_of(op), key = key_of(op), value = value_of(op);
  const std::int64_t named = h_.op_source[op];
  if (is_list(op)) {
    if (named == kSourceMissing) return {};
    const auto list = list_of(op);
    if (list.empty()) return {n_};
    const std::int32_t writer = element_writer(key, list.back());
    if (writer < 0 || writer == reader || value_of(writes_by(writer, key).back()) != list.back())
      return {};
    return {writer};
  }
  if (named == kSourceInitial) return {n_};
  if (named >= 0) {
    if (!explains(named, key) || txn_of(named) == reader) return {};
    return {txn_of(named)};
  }
  std::vector<std::int32_t> found;
  if (named != kSourceByValue) return found;
  for (const Write& w : writes_seen(op))
    if (explains(w.op, key) && txn_of(w.op) != reader) found.push_back(txn_of(w.op));
  if (is_set_read(h_.kind(op))
          ? SetRead(h_, op).allows_initial()
          : value == h_.initial_value[key] || (value == kNil && !vanishes(key)))
    found.push_back(n_);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// --- lists ---

std::span<const std::int32_t> Evidence::list_of(std::int64_t op) const {
  if (static_cast<OpKind>(h_.op_kind[op]) == OpKind::read) return {};  // nil of a list key is the empty list
  const auto list = idx(value_of(op));
  return {h_.list_values.begin() + h_.list_start[list],
          h_.list_values.begin() + h_.list_start[list + 1]};
}

std::int32_t Evidence::element_writer(std::int32_t key, std::int32_t value) {
  std::int32_t writer = -1;
  for (const Write& w : writes_of(key, value)) {
    const std::int32_t t = txn_of(w.op);
    if (!is_ok(w.op) || static_cast<OpKind>(h_.op_kind[w.op]) != OpKind::append || !live(t))
      continue;
    if (writer >= 0 && writer != t)
      throw NotCertified{"not certified: several transactions appended the same element to key " +
                         std::to_string(key)};
    writer = t;
  }
  return writer;
}

std::vector<std::int32_t> Evidence::shown(std::int64_t op) {
  std::vector<std::int32_t> writers;
  for (const std::int32_t value : list_of(op)) {
    budget_.poll();
    const std::int32_t writer = element_writer(key_of(op), value);
    if (writer >= 0) writers.push_back(writer);
  }
  return writers;
}

// Returns the writers in the order of their elements, with equal neighbours merged and without a leading T0. If the
// list lacks an append of a writer, the writer is repeated at the end, unless it is already the last writer: its
// missing elements were appended after all elements that the list shows.
std::vector<std::int32_t> Evidence::shown_order(std::int64_t op) {
  std::vector<std::int32_t> writers = shown(op);
  const auto list = list_of(op);
  const std::unordered_set<std::int32_t> elements(list.begin(), list.end());
  const auto lacks_one_of = [&](std::int32_t writer) {
    const std::vector<std::int64_t> made = writes_by(writer, key_of(op));
    return std::any_of(made.begin(), made.end(),
                       [&](std::int64_t w) { return elements.count(value_of(w)) == 0; });
  };
  writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
  if (!writers.empty() && writers.front() == n_) writers.erase(writers.begin());
  for (std::size_t i = 0; i + 1 < writers.size(); ++i)
    if (lacks_one_of(writers[i])) {
      writers.push_back(writers[i]);
      break;
    }
  return writers;
}

const std::vector<std::int64_t>& Evidence::indeterminate_list_reads(std::int32_t key) {
  return key_index(key).indeterminate_list_reads;
}

std::int64_t Evidence::most_informative_list(std::int32_t key) {
  KeyIndex& index = key_index(key);
  if (index.most_informative != kNotAsked) return index.most_informative;
  const auto shorter = [&](std::int64_t a, std::int64_t b) {
    return list_of(a).size() < list_of(b).size();
  };
  const auto count = [&](std::int64_t op) {
    const std::vector<std::int32_t> writers = shown(op);
    return std::unordered_set<std::int32_t>(writers.begin(), writers.end()).size();
  };
  const auto& reads = index.list_reads;
  const auto longest = std::max_element(reads.begin(), reads.end(), shorter);
  std::int64_t best = longest == reads.end() ? -1 : *longest;
  std::size_t most = best < 0 ? 0 : count(best);
  for (const std::int64_t op : reads)  // a prefix of the longest list cannot show more
    if (!starts_with(list_of(*longest), list_of(op)) && count(op) > most) {
      best = op;
      most = count(op);
    }
  return index.most_informative = best;
}

bool Evidence::shows(std::int64_t op, std::int32_t a, std::int32_t b) {
  const auto [it, fresh] = first_shown_.try_emplace(op);
  if (fresh) {
    const std::vector<std::int32_t> writers = shown(op);
    for (std::size_t i = 0; i < writers.size(); ++i)
      it->second.try_emplace(writers[i], static_cast<std::int64_t>(i));
  }
  const auto first = it->second.find(a), second = it->second.find(b);
  return a != b && first != it->second.end() &&
         (second == it->second.end() || first->second < second->second);
}

// --- inclusion ---

bool Evidence::forced(std::int32_t t) {
  if (!forced_known_) find_forced();
  return forced_[t] != 0;
}

void Evidence::find_forced() {
  forced_known_ = true;
  forced_.assign(idx(n_), 0);
  // Only a read of a value written by an indeterminate transaction can force an indeterminate transaction to be
  // included.
  std::unordered_set<std::uint64_t> of_indeterminate;
  std::unordered_set<std::int32_t> keys_of_indeterminate;
  std::vector<std::int32_t> work;
  for (std::int32_t t = 0; t < n_; ++t) {
    const auto status = static_cast<Status>(h_.txn_status[t]);
    if (status == Status::committed) work.push_back(t);
    if (status != Status::indeterminate) continue;
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
      if (is_write(op) && is_ok(op)) {
        of_indeterminate.insert(pair_of(key_of(op), h_.as_read(value_of(op))));
        keys_of_indeterminate.insert(key_of(op));
      }
  }
  const auto force = [&](std::int32_t u, std::int32_t reader) {
    if (u < 0 || u == n_ || u == reader || certain(u) || forced_[u]) return;
    forced_[u] = 1;
    work.push_back(u);
  };
  while (!work.empty() && !of_indeterminate.empty()) {
    const std::int32_t t = work.back();
    work.pop_back();
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) {
      budget_.poll();
      if (is_write(op) || !is_ok(op) || value_of(op) == kUnknownValue) continue;
      if (static_cast<OpKind>(h_.op_kind[op]) == OpKind::read_list) {
        const auto values = list_of(op);
        if (std::any_of(
                values.begin(), values.end(),
                [&](std::int32_t v) { return of_indeterminate.count(pair_of(key_of(op), v)) != 0; }) &&
            is_read(op))
          for (const std::int32_t u : shown(op)) force(u, t);
        continue;
      }
      const std::int64_t named = h_.op_source[op];
      const std::int32_t value = named >= 0 ? h_.as_read(value_of(named)) : value_of(op);
      const bool can_force = is_set_read(h_.kind(op))
                                 ? keys_of_indeterminate.contains(key_of(op))
                                 : of_indeterminate.contains(pair_of(key_of(op), value));
      if (!can_force || !is_external(op)) continue;
      const std::vector<std::int32_t> from = candidates(op);
      if (from.size() == 1) force(from.front(), t);
    }
  }
}

std::vector<std::int32_t> Evidence::showing(std::int32_t t) {
  std::vector<std::int32_t> readers;
  std::unordered_set<std::int32_t> keys;
  for (std::int64_t w = h_.op_start[t]; w < h_.op_start[t + 1]; ++w) {
    if (!is_write(w) || !is_ok(w) || !keys.insert(key_of(w)).second) continue;
    for (const std::int64_t op : indeterminate_list_reads(key_of(w))) {
      const std::int32_t reader = txn_of(op);
      if (reader == t) continue;
      const std::vector<std::int32_t> writers = shown(op);
      if (std::find(writers.begin(), writers.end(), t) != writers.end()) readers.push_back(reader);
    }
  }
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

}  // namespace isolang::certify
