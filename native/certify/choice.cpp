// Reads a witness against the history: which transactions are in, whether each external read may have its source,
// whether reads agree with their own transaction, whether the orders are orders of the included writers and contain
// what list reads show. One pass over the included transactions; the candidates of a read are never enumerated.
#include "certify/choice.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

namespace isolang::certify {
namespace {

constexpr std::int32_t kNoSource = -1;

class ChoiceReader {
 public:
  ChoiceReader(const History& history, std::span<const std::int32_t> source, std::span<const std::int64_t> order_start,
               std::span<const std::int32_t> order_txn, bool judges_reads, Budget& budget)
      : h_(history),
        n_(history.transactions()),
        source_(source),
        order_start_(order_start),
        order_txn_(order_txn),
        judges_reads_(judges_reads),
        budget_(budget) {}

  Choice read() {
    check_shapes();
    index_writes();
    include();
    read_orders();
    check_lists();
    place_reads();
    return std::move(choice_);
  }

 private:
  // A transaction's last write of a key: all that is asked of it in one place.
  struct LastWrite {
    std::int32_t key;
    std::int32_t position;  // in the key's order
    std::int32_t value;
    std::int32_t at;  // which operation of its transaction
  };
  struct Append {
    std::int32_t value, txn;
    std::int64_t op;
    auto operator<=>(const Append&) const = default;
  };
  struct Element {
    std::int32_t writer;  // -1: nobody who may be included
    std::int32_t index;   // among the writer's own appends to the key
  };
  // What the list reads of a key have shown so far: the longest list, element by element.
  struct Shown {
    std::int64_t begin = 0;
    std::vector<Element> elements;
  };
  const History& h_;
  const std::int32_t n_;
  std::span<const std::int32_t> source_;
  std::span<const std::int64_t> order_start_;
  std::span<const std::int32_t> order_txn_;
  const bool judges_reads_;
  Budget& budget_;
  Choice choice_;
  std::vector<std::int64_t> last_start_;
  std::vector<LastWrite> last_;
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int64_t>> initial_;  // T0's own writes: key, value, op
  std::vector<char> written_, appended_;                                      // per key, by those who may be included
  std::vector<std::int64_t> append_start_;                                    // per key, into append_, sorted by value
  std::vector<Append> append_;
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> by_value_;  // (key, value, txn), if needed
  std::vector<Shown> shown_;                       // per key
  std::vector<std::int64_t> list_reads_;           // when reads are not judged: all of them
  // Per key, of the transaction that is being read: its last write of the key so far, and how many.
  std::vector<std::int64_t> last_own_;
  std::vector<std::int32_t> own_txn_, own_count_;
  bool any_appends_ = false, any_initial_ = false;

  static std::size_t idx(std::int64_t i) { return static_cast<std::size_t>(i); }
  OpKind kind(std::int64_t op) const { return static_cast<OpKind>(h_.op_kind[idx(op)]); }
  Status status(std::int32_t t) const { return static_cast<Status>(h_.txn_status[idx(t)]); }
  bool live(std::int32_t t) const { return status(t) == Status::committed || status(t) == Status::maybe; }
  bool writes(std::int64_t op) const { return kind(op) == OpKind::write || kind(op) == OpKind::append; }
  static std::string str(std::int64_t i) { return std::to_string(i); }
  [[noreturn]] static void reject(std::string why) { throw Rejected{std::move(why)}; }

  void check_shapes() {
    if (static_cast<std::int64_t>(source_.size()) != h_.operations())
      reject("source has " + str(static_cast<std::int64_t>(source_.size())) + " entries (expected one per operation: " +
             str(h_.operations()) + ")");
    if (order_start_.size() != idx(h_.n_keys()) + 1 || order_start_.front() != 0 ||
        order_start_.back() != static_cast<std::int64_t>(order_txn_.size()))
      reject("order_start does not fit the keys and order_txn");
    for (std::size_t k = 0; k + 1 < order_start_.size(); ++k)
      if (order_start_[k] > order_start_[k + 1])
        reject("order_start decreases at key " + str(static_cast<std::int64_t>(k)));
  }

  void index_writes() {
    const auto keys = idx(h_.n_keys());
    written_.assign(keys, 0);
    appended_.assign(keys, 0);
    std::vector<std::int32_t> stamp(keys, -1);
    std::vector<std::int64_t> at(keys, 0);
    last_start_.assign(idx(n_) + 1, 0);
    for (std::int32_t t = 0; t < n_; ++t) {
      last_start_[idx(t)] = static_cast<std::int64_t>(last_.size());
      if (status(t) == Status::aborted) continue;
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op) {
        budget_.poll();
        if (!writes(op) || !h_.op_ok[idx(op)]) continue;
        const std::int32_t key = h_.op_key[idx(op)];
        (kind(op) == OpKind::write ? written_ : appended_)[idx(key)] = 1;
        if (stamp[idx(key)] != t) {
          stamp[idx(key)] = t;
          at[idx(key)] = static_cast<std::int64_t>(last_.size());
          last_.push_back({key, -1, kNil, 0});
        }
        LastWrite& write = last_[idx(at[idx(key)])];
        write.value = h_.op_value[idx(op)];
        write.at = static_cast<std::int32_t>(op - h_.op_start[idx(t)]);
      }
      const auto begin = last_.begin() + last_start_[idx(t)];
      std::sort(begin, last_.end(), [](const LastWrite& a, const LastWrite& b) { return a.key < b.key; });
      if (status(t) == Status::initial) {
        any_initial_ = true;
        last_.erase(begin, last_.end());  // T0 is no writer in the orders; what it wrote last is found below
      }
    }
    last_start_[idx(n_)] = static_cast<std::int64_t>(last_.size());
    if (last_.size() > idx(std::numeric_limits<std::int32_t>::max()))
      throw NotCertified{"not certified: the history is too large for this checker"};
    if (any_initial_) index_initial();
    any_appends_ = std::find(appended_.begin(), appended_.end(), 1) != appended_.end();
    if (any_appends_) index_appends();
  }

  void index_initial() {
    std::vector<std::int64_t> last(idx(h_.n_keys()), -1);
    for (std::int32_t t = 0; t < n_; ++t)
      if (status(t) == Status::initial)
        for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op)
          if (writes(op) && h_.op_ok[idx(op)]) last[idx(h_.op_key[idx(op)])] = op;
    for (std::int32_t key = 0; key < h_.n_keys(); ++key)
      if (last[idx(key)] >= 0) initial_.emplace_back(key, h_.op_value[idx(last[idx(key)])], last[idx(key)]);
    // Declared initial transactions are one writer: of each key only their last write together.
  }

  void index_appends() {
    append_start_.assign(idx(h_.n_keys()) + 1, 0);
    const auto each = [&](auto&& visit) {
      for (std::int32_t t = 0; t < n_; ++t) {
        if (status(t) == Status::aborted) continue;
        const std::int32_t owner = status(t) == Status::initial ? n_ : t;
        for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op)
          if (kind(op) == OpKind::append && h_.op_ok[idx(op)]) visit(owner, op);
      }
    };
    each([&](std::int32_t, std::int64_t op) { ++append_start_[idx(h_.op_key[idx(op)]) + 1]; });
    std::partial_sum(append_start_.begin(), append_start_.end(), append_start_.begin());
    append_.resize(idx(append_start_.back()));
    std::vector<std::int64_t> at(append_start_.begin(), append_start_.end() - 1);
    each([&](std::int32_t owner, std::int64_t op) {
      append_[idx(at[idx(h_.op_key[idx(op)])]++)] = {h_.op_value[idx(op)], owner, op};
    });
    for (std::size_t key = 0; key + 1 < append_start_.size(); ++key)
      std::sort(append_.begin() + append_start_[key], append_.begin() + append_start_[key + 1]);
    shown_.resize(idx(h_.n_keys()));
  }

  // Index into last_, or -1.
  std::int32_t find_last(std::int32_t t, std::int32_t key) const {
    const auto begin = last_.begin() + last_start_[idx(t)], end = last_.begin() + last_start_[idx(t) + 1];
    const auto found = std::lower_bound(begin, end, key, [](const LastWrite& w, std::int32_t k) { return w.key < k; });
    return found != end && found->key == key ? static_cast<std::int32_t>(found - last_.begin()) : -1;
  }

  // The one transaction that may be included and appended the value; -1 if there is none.
  std::int32_t element_writer(std::int32_t key, std::int32_t value) const {
    if (append_start_.empty()) return -1;
    const auto end = append_.begin() + append_start_[idx(key) + 1];
    const auto first = std::lower_bound(append_.begin() + append_start_[idx(key)], end, value,
                                        [](const Append& a, std::int32_t v) { return a.value < v; });
    if (first == end || first->value != value) return -1;
    for (auto other = first; other != end && other->value == value; ++other)
      if (other->txn != first->txn)
        throw NotCertified{"not certified: several transactions appended the same element to key " + str(key)};
    return first->txn;
  }

  // --- inclusion, and the reads of included transactions ---

  void include() {
    choice_.included.assign(idx(n_), 0);
    last_own_.assign(idx(h_.n_keys()), -1);
    own_txn_.assign(idx(h_.n_keys()), -1);
    own_count_.assign(idx(h_.n_keys()), 0);
    choice_.reads.reserve(idx(std::count_if(source_.begin(), source_.end(), [](std::int32_t u) { return u >= 0; })));
    std::vector<std::int32_t> work;
    for (std::int32_t t = 0; t < n_; ++t)
      if (status(t) == Status::committed) choice_.included[idx(t)] = 1;
    for (std::int32_t t = 0; t < n_; ++t) {
      if (status(t) != Status::committed) continue;
      read_transaction(t, work);
      while (!work.empty()) {
        const std::int32_t u = work.back();
        work.pop_back();
        read_transaction(u, work);
      }
    }
    // A source at an operation of a transaction that is left out would say that it is in.
    for (std::int32_t t = 0; t < n_; ++t) {
      if (choice_.included[idx(t)]) continue;
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op) no_source(op);
    }
  }

  void no_source(std::int64_t op) const {
    if (source_[idx(op)] != kNoSource)
      reject("operation " + str(op) + " has source " + str(source_[idx(op)]) +
             ", but is no external read of an included transaction");
  }

  void add(std::int32_t u, std::vector<std::int32_t>& work) {
    if (u < 0 || u == n_ || choice_.included[idx(u)]) return;
    choice_.included[idx(u)] = 1;
    work.push_back(u);
  }

  bool says_nothing(std::int64_t op) const { return h_.op_value[idx(op)] == kUnknownValue || !h_.op_ok[idx(op)]; }

  void read_transaction(std::int32_t t, std::vector<std::int32_t>& work) {
    for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op) {
      budget_.poll();
      const std::int32_t key = h_.op_key[idx(op)];
      if (writes(op)) {
        no_source(op);
        if (!h_.op_ok[idx(op)]) continue;
        if (own_txn_[idx(key)] != t) {
          own_txn_[idx(key)] = t;
          own_count_[idx(key)] = 0;
        }
        ++own_count_[idx(key)];
        last_own_[idx(key)] = op;
        continue;
      }
      if (says_nothing(op)) {
        no_source(op);
        continue;
      }
      const bool list = kind(op) == OpKind::read_list;
      const bool nil = !list && h_.op_value[idx(op)] == kNil;
      if ((written_[idx(key)] && (appended_[idx(key)] || list)) || (appended_[idx(key)] && !list && !nil))
        throw NotCertified{"not certified: key " + str(key) + " is both a register and a list"};
      const bool own = own_txn_[idx(key)] == t;
      if (own) no_source(op);
      if (list || (nil && appended_[idx(key)])) {
        read_list(t, op, own ? own_count_[idx(key)] : 0, work);
      } else if (own) {
        read_own(op, last_own_[idx(key)]);
      } else {
        read_register(t, op, work);
      }
    }
  }

  void read_own(std::int64_t op, std::int64_t last) const {
    if (!judges_reads_) return;
    const std::int64_t named = h_.op_source[idx(op)];  // if there is one, the write itself counts, not its value
    if (named == kSourceByValue ? h_.op_value[idx(op)] != h_.op_value[idx(last)] : named != last)
      reject("operation " + str(op) + " is an intrinsic anomaly: not what its transaction wrote last");
  }

  void read_register(std::int32_t t, std::int64_t op, std::vector<std::int32_t>& work) {
    const std::int32_t u = source_[idx(op)], key = h_.op_key[idx(op)];
    if (u == kNoSource) {
      if (judges_reads_ || has_candidate(t, op)) reject("the external read " + str(op) + " has no source");
      return;
    }
    const std::int32_t write = u < 0 || u >= n_ ? -1 : find_last(u, key);
    if (u < 0 || u > n_ || !explains(t, op, u, write))
      reject("the external read " + str(op) + " cannot read from transaction " + str(u));
    choice_.reads.push_back({t, key, write, find_last(t, key)});
    add(u, work);
  }

  // Whether `u`, whose last write of the key that is, may be the source of the external register read `op` of `t`.
  bool explains(std::int32_t t, std::int64_t op, std::int32_t u, std::int32_t write) const {
    const std::int32_t key = h_.op_key[idx(op)], value = h_.op_value[idx(op)];
    const std::int64_t named = h_.op_source[idx(op)];
    if (u == n_) {
      if (named == kSourceInitial) return true;
      const auto* own = initial_write(key);
      if (named >= 0) return own && std::get<2>(*own) == named;
      if (named != kSourceByValue) return false;
      return value == kNil || value == h_.initial_value[idx(key)] || (own && std::get<1>(*own) == value);
    }
    if (u == t || !live(u) || write < 0) return false;
    const LastWrite& last = last_[idx(write)];
    if (named >= 0) return h_.op_start[idx(u)] + last.at == named;
    return named == kSourceByValue && last.value == value;
  }

  // The last write of the key by a declared initial transaction, or nullptr.
  const std::tuple<std::int32_t, std::int32_t, std::int64_t>* initial_write(std::int32_t key) const {
    const auto found = std::lower_bound(initial_.begin(), initial_.end(), std::tuple(key, -1, std::int64_t{-1}));
    return found != initial_.end() && std::get<0>(*found) == key ? &*found : nullptr;
  }

  // Only asked where a read may go without a source: when the spec judges no reads.
  bool has_candidate(std::int32_t t, std::int64_t op) {
    const std::int32_t key = h_.op_key[idx(op)], value = h_.op_value[idx(op)];
    if (explains(t, op, n_, -1)) return true;
    const std::int64_t named = h_.op_source[idx(op)];
    if (named >= 0) {
      const auto u = static_cast<std::int32_t>(
          std::upper_bound(h_.op_start.begin(), h_.op_start.end(), named) - h_.op_start.begin() - 1);
      return explains(t, op, u, find_last(u, key));
    }
    if (named != kSourceByValue) return false;
    if (by_value_.empty()) {
      for (std::int32_t u = 0; u < n_; ++u)
        for (std::int64_t i = last_start_[idx(u)]; i < last_start_[idx(u) + 1]; ++i)
          by_value_.emplace_back(last_[idx(i)].key, last_[idx(i)].value, u);
      std::sort(by_value_.begin(), by_value_.end());
    }
    for (auto w = std::lower_bound(by_value_.begin(), by_value_.end(), std::tuple(key, value, -1));
         w != by_value_.end() && std::get<0>(*w) == key && std::get<1>(*w) == value; ++w)
      if (std::get<2>(*w) != t) return true;
    return false;
  }

  // --- lists ---

  std::pair<std::int64_t, std::int64_t> list_range(std::int64_t op) const {
    if (kind(op) != OpKind::read_list) return {0, 0};
    const auto list = idx(h_.op_value[idx(op)]);
    return {h_.list_start[list], h_.list_start[list + 1]};
  }

  // `own`: how many own appends precede.
  void read_list(std::int32_t t, std::int64_t op, std::int32_t own, std::vector<std::int32_t>& work) {
    const std::int32_t key = h_.op_key[idx(op)];
    const auto [begin, end] = list_range(op);
    if (judges_reads_) {
      if (h_.op_source[idx(op)] == kSourceMissing) reject("operation " + str(op) + " is a thin-air read");
      extend(key, op, begin, end, work);
      check_end(t, op, own, end - begin);
    } else {
      for (std::int64_t i = begin; i < end; ++i) add(element_writer(key, h_.list_values[idx(i)]), work);
      list_reads_.push_back(op);
    }
    if (own > 0) return;
    std::int32_t candidate = begin == end ? n_ : element_writer(key, h_.list_values[idx(end - 1)]);
    if (candidate == t || h_.op_source[idx(op)] == kSourceMissing) candidate = kNoSource;
    if (begin < end && candidate >= 0 &&
        h_.op_value[idx(appends_of(key, candidate).back())] != h_.list_values[idx(end - 1)])
      candidate = kNoSource;  // it ends inside the appends: no last write
    const std::int32_t u = source_[idx(op)];
    if (u != candidate)
      reject(u == kNoSource ? "the external read " + str(op) + " has no source"
                            : "the external read " + str(op) + " cannot read from transaction " + str(u));
    if (u != kNoSource) choice_.reads.push_back({t, key, u == n_ ? -1 : find_last(u, key), find_last(t, key)});
  }

  [[noreturn]] static void bad_list(std::int64_t op, const char* why) {
    reject("operation " + str(op) + " is an intrinsic anomaly: " + why);
  }

  // All list reads of a key are prefixes of the longest one, whose elements are looked at once.
  void extend(std::int32_t key, std::int64_t op, std::int64_t begin, std::int64_t end,
              std::vector<std::int32_t>& work) {
    if (begin == end) return;
    if (shown_.empty()) bad_list(op, "a thin-air element");
    Shown& shown = shown_[idx(key)];
    const auto known = static_cast<std::int64_t>(shown.elements.size());
    const auto common = std::min(known, end - begin);
    if (!std::equal(h_.list_values.begin() + begin, h_.list_values.begin() + begin + common,
                    h_.list_values.begin() + shown.begin))
      bad_list(op, "it and another list read are no prefixes of each other");
    if (end - begin <= known) return;
    shown.begin = begin;
    for (std::int64_t i = begin + known; i < end; ++i) {
      budget_.poll();
      const std::int32_t value = h_.list_values[idx(i)];
      const std::int32_t writer = element_writer(key, value);
      if (writer < 0) bad_list(op, "an element of no transaction that may be included");
      const bool same = !shown.elements.empty() && shown.elements.back().writer == writer;
      if (!same && !shown.elements.empty() && !complete(key, shown.elements.back()))
        bad_list(op, "another's element between those of one transaction");
      const std::int32_t index = same ? shown.elements.back().index + 1 : 0;
      if (made(key, writer, index) != value) bad_list(op, "not the order in which the transaction appended");
      shown.elements.push_back({writer, index});
      add(writer, work);
    }
  }

  // The value of the writer's append number `index` to the key, or kUnknownValue if it made fewer.
  std::int32_t made(std::int32_t key, std::int32_t writer, std::int32_t index) {
    const auto& appends = appends_of(key, writer);
    return idx(index) < appends.size() ? h_.op_value[idx(appends[idx(index)])] : kUnknownValue;
  }
  bool complete(std::int32_t key, const Element& e) { return appends_of(key, e.writer).size() == idx(e.index) + 1; }

  // The operations with which `writer` appended to `key`, in order; the last answer is kept: blocks are asked in turn.
  const std::vector<std::int64_t>& appends_of(std::int32_t key, std::int32_t writer) {
    if (cached_key_ == key && cached_writer_ == writer) return cached_;
    cached_key_ = key;
    cached_writer_ = writer;
    cached_.clear();
    const auto collect = [&](std::int32_t t) {
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op)
        if (kind(op) == OpKind::append && h_.op_ok[idx(op)] && h_.op_key[idx(op)] == key) cached_.push_back(op);
    };
    if (writer < n_) {
      collect(writer);
    } else {
      for (std::int32_t t = 0; t < n_; ++t)
        if (status(t) == Status::initial) collect(t);
    }
    return cached_;
  }
  std::int32_t cached_key_ = -1, cached_writer_ = -1;
  std::vector<std::int64_t> cached_;

  // How a list read of `t` ends: with its own appends so far, else at the end of another's appends.
  void check_end(std::int32_t t, std::int64_t op, std::int32_t own, std::int64_t size) {
    const std::int32_t key = h_.op_key[idx(op)];
    if (own > 0) {
      if (size < own) bad_list(op, "not what its transaction appended");
      const Element& e = shown_[idx(key)].elements[idx(size - 1)];
      if (e.writer != t || e.index != own - 1) bad_list(op, "not what its transaction appended");
      return;
    }
    if (size == 0) return;
    const auto& elements = shown_[idx(key)].elements;
    if (elements[idx(size - 1)].writer != t && !complete(key, elements[idx(size - 1)]))
      bad_list(op, "it ends inside another transaction's appends");
    if (find_last(t, key) >= 0 && std::any_of(elements.begin(), elements.begin() + size,
                                          [&](const Element& e) { return e.writer == t; }))
      bad_list(op, "it shows an element that its transaction appends later");
  }

  // --- version orders ---

  void read_orders() {
    const auto keys = idx(h_.n_keys());
    // The included writers of each key, with the places of their writes in last_.
    std::vector<std::int64_t> start(keys + 1, 0);
    const auto each = [&](auto&& visit) {
      for (std::int32_t t = 0; t < n_; ++t)
        if (choice_.included[idx(t)])
          for (std::int64_t i = last_start_[idx(t)]; i < last_start_[idx(t) + 1]; ++i)
            visit(t, i, idx(last_[idx(i)].key));
    };
    each([&](std::int32_t, std::int64_t, std::size_t key) { ++start[key + 1]; });
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<std::pair<std::int32_t, std::int64_t>> writers(idx(start.back()));
    std::vector<std::int64_t> at(start.begin(), start.end() - 1);
    each([&](std::int32_t t, std::int64_t i, std::size_t key) { writers[idx(at[key]++)] = {t, i}; });

    struct Write {
      std::int32_t key = -1;
      std::int64_t place = -1;
    };
    std::vector<Write> write(idx(n_));  // of the key at hand, by transaction
    choice_.key_start.assign(keys + 1, 0);
    choice_.order.reserve(order_txn_.size());
    for (std::size_t key = 0; key < keys; ++key) {
      for (std::int64_t i = start[key]; i < start[key + 1]; ++i)
        write[idx(writers[idx(i)].first)] = {static_cast<std::int32_t>(key), writers[idx(i)].second};
      for (std::int64_t i = order_start_[key]; i < order_start_[key + 1]; ++i) {
        budget_.poll();
        const std::int32_t t = order_txn_[idx(i)];
        if (t < 0 || t >= n_ || !choice_.included[idx(t)]) continue;
        if (write[idx(t)].key != static_cast<std::int32_t>(key)) no_permutation(key);
        std::int32_t& position = last_[idx(write[idx(t)].place)].position;
        if (position >= 0) no_permutation(key);
        position = static_cast<std::int32_t>(static_cast<std::int64_t>(choice_.order.size()) - choice_.key_start[key]);
        choice_.order.push_back(t);
      }
      choice_.key_start[key + 1] = static_cast<std::int64_t>(choice_.order.size());
      if (choice_.key_start[key + 1] - choice_.key_start[key] != start[key + 1] - start[key]) no_permutation(key);
    }
  }

  [[noreturn]] static void no_permutation(std::size_t key) {
    reject("the order of key " + str(static_cast<std::int64_t>(key)) + " is no permutation of its included writers");
  }

  void check_lists() {
    for (std::size_t key = 0; key < shown_.size(); ++key) {
      std::int64_t at = 0;
      std::int32_t before = n_;  // a leading T0 is in no order
      for (const Element& e : shown_[key].elements) {
        if (e.writer != before) contains(static_cast<std::int32_t>(key), at++, e.writer);
        before = e.writer;
      }
    }
    for (const std::int64_t op : list_reads_) {
      const std::int32_t key = h_.op_key[idx(op)];
      const auto [begin, end] = list_range(op);
      std::int64_t at = 0;
      std::int32_t before = n_;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int32_t writer = element_writer(key, h_.list_values[idx(i)]);
        if (writer < 0 || writer == before) continue;
        contains(key, at++, writer);
        before = writer;
      }
    }
  }

  void contains(std::int32_t key, std::int64_t at, std::int32_t writer) const {
    const std::int64_t start = choice_.key_start[idx(key)];
    if (start + at >= choice_.key_start[idx(key) + 1] || choice_.order[idx(start + at)] != writer)
      reject("the order of key " + str(key) + " is not the one that list reads show");
  }

  // Places in last_ become positions in orders.
  void place_reads() {
    const auto place = [&](std::int32_t& write) {
      if (write >= 0) write = last_[idx(write)].position;
    };
    for (ExternalRead& r : choice_.reads) {
      place(r.source);
      place(r.own);
    }
  }
};

}  // namespace

Choice read_choice(const History& history, std::span<const std::int32_t> source,
                   std::span<const std::int64_t> order_start, std::span<const std::int32_t> order_txn,
                   bool judges_reads, Budget& budget) {
  return ChoiceReader(history, source, order_start, order_txn, judges_reads, budget).read();
}

}  // namespace isolang::certify
