// Reads a witness and checks it against the history: which transactions are included, whether each external read may
// have its chosen source, whether reads agree with their own transaction, and whether the version orders are orders of
// the included writers and contain the orders shown by list reads. It makes one pass over the included transactions and
// never enumerates the candidates of a read.
#include "certify/choice.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "certify/list_reads.hpp"
#include "certify/set_read.hpp"
#include "certify/stated_versions.hpp"
#include "certify/write_index.hpp"
#include "core/index.hpp"
#include "core/prefetch.hpp"

namespace isolang::certify {
namespace {

constexpr std::int32_t kNoSource = -1;
std::string str(std::int64_t i) { return std::to_string(i); }
[[noreturn]] void reject(std::string why) { throw Rejected{std::move(why)}; }

void check_shapes(const History& history, std::span<const std::int32_t> source,
                  std::span<const std::int64_t> order_start,
                  std::span<const std::int32_t> order_txn) {
  if (static_cast<std::int64_t>(source.size()) != history.operations())
    reject("source has " + str(static_cast<std::int64_t>(source.size())) +
           " entries (expected one per operation: " + str(history.operations()) + ")");
  if (order_start.size() != idx(history.n_keys()) + 1 || order_start.front() != 0 ||
      order_start.back() != static_cast<std::int64_t>(order_txn.size()))
    reject("order_start does not fit the keys and order_txn");
  for (std::size_t k = 0; k + 1 < order_start.size(); ++k)
    if (order_start[k] > order_start[k + 1])
      reject("order_start decreases at key " + str(static_cast<std::int64_t>(k)));
}

class ChoiceReader {
 public:
  ChoiceReader(const History& history, std::span<const std::int32_t> source,
               std::span<const std::int64_t> order_start, std::span<const std::int32_t> order_txn,
               bool judges_reads, bool operations, Budget& budget)
      : h_(history),
        n_(history.transactions()),
        source_(source),
        order_start_(order_start),
        order_txn_(order_txn),
        judges_reads_(judges_reads),
        operations_(operations),
        budget_(budget),
        writes_(history, budget),
        lists_(history, writes_, budget) {}

  Choice read() {
    check_versions(h_, budget_);
    include();
    read_orders();
    lists_.check_orders(choice_);
    place_reads();
    return std::move(choice_);
  }

 private:
  const History& h_;
  const std::int32_t n_;
  std::span<const std::int32_t> source_;
  std::span<const std::int64_t> order_start_;
  std::span<const std::int32_t> order_txn_;
  const bool judges_reads_, operations_;
  Budget& budget_;
  WriteIndex writes_;
  ListReads lists_;
  Choice choice_;
  // For each key: the last write so far by the transaction being read, that transaction's number, and how many appends
  // it has made to the key so far.
  std::vector<std::int64_t> last_own_;
  std::vector<std::int32_t> own_txn_, own_count_;
  std::vector<std::int32_t> initial_;  // for each key: the value of T0, according to the reads that name its version

  // --- inclusion, and the reads of included transactions ---

  void include() {
    choice_.included.assign(idx(n_), 0);
    last_own_.assign(idx(h_.n_keys()), -1);
    own_txn_.assign(idx(h_.n_keys()), -1);
    own_count_.assign(idx(h_.n_keys()), 0);
    choice_.reads.reserve(
        idx(std::count_if(source_.begin(), source_.end(), [](std::int32_t u) { return u >= 0; })));
    std::vector<std::int32_t> work;
    for (std::int32_t t = 0; t < n_; ++t)
      if (writes_.status(t) == Status::committed) choice_.included[t] = 1;
    for (std::int32_t t = 0; t < n_; ++t) {
      prefetch_sources(t);
      if (writes_.status(t) != Status::committed) continue;
      read_transaction(t, work);
      while (!work.empty()) {
        const std::int32_t u = work.back();
        work.pop_back();
        read_transaction(u, work);
      }
    }
    // An operation of an excluded transaction must have no source, because a source would imply that the transaction is
    // included.
    for (std::int32_t t = 0; t < n_; ++t) {
      if (choice_.included[t]) continue;
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) no_source(op);
    }
  }

  void no_source(std::int64_t op) const {
    if (source_[op] != kNoSource)
      reject("operation " + str(op) + " has source " + str(source_[op]) +
             ", but is no external read of an included transaction");
  }

  // Prefetches the writes read by later transactions, because they may be anywhere in memory. Each is found through
  // another item, which is fetched first.
  void prefetch_sources(std::int32_t t) const {
    constexpr std::int32_t kAhead = 2;
    const auto each_source = [&](std::int32_t reader, auto visit) {
      if (reader >= n_) return;
      for (std::int64_t op = h_.op_start[reader]; op < h_.op_start[reader + 1]; ++op)
        if (const std::int32_t u = source_[op]; u >= 0 && u < n_) visit(u);
    };
    each_source(t + 2 * kAhead, [&](std::int32_t u) { writes_.prefetch_start(u); });
    each_source(t + kAhead, [&](std::int32_t u) { writes_.prefetch_last(u); });
  }
  void prefetch_writes(std::span<const std::int32_t> txns, std::size_t i) const {
    constexpr std::size_t kAhead = 8;
    const auto exists = [&](std::size_t at) { return at < txns.size() && txns[at] >= 0 && txns[at] < n_; };
    if (exists(i + 2 * kAhead)) writes_.prefetch_start(txns[i + 2 * kAhead]);
    if (exists(i + kAhead)) writes_.prefetch_last(txns[i + kAhead]);
  }

  void add(std::int32_t u, std::vector<std::int32_t>& work) {
    if (u < 0 || u == n_ || choice_.included[u]) return;
    choice_.included[u] = 1;
    work.push_back(u);
  }

  bool is_uninformative(std::int64_t op) const {
    return h_.op_value[op] == kUnknownValue || !h_.op_ok[op];
  }

  void read_transaction(std::int32_t t, std::vector<std::int32_t>& work) {
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) {
      budget_.poll();
      const std::int32_t key = h_.op_key[op];
      if (writes_.writes(op)) {
        no_source(op);
        if (!h_.op_ok[op]) continue;
        if (own_txn_[key] != t) {
          own_txn_[key] = t;
          own_count_[key] = 0;
        }
        ++own_count_[key];
        last_own_[key] = op;
        continue;
      }
      if (is_uninformative(op)) {
        no_source(op);
        continue;
      }
      const bool list = writes_.kind(op) == OpKind::read_list;
      const bool nil = writes_.kind(op) == OpKind::read && h_.op_value[op] == kNil;
      const bool appended = writes_.appended(key);
      const bool set = is_set_read(writes_.kind(op));
      if ((writes_.written(key) && (appended || list)) ||
          (appended && !list && (set || !nil)))
        throw NotCertified{"not certified: key " + str(key) + " is both a register and a list"};
      const bool own = own_txn_[key] == t;
      if (own) no_source(op);
      if (list || (nil && appended)) {
        read_list(t, op, own ? own_count_[key] : 0, work);
      } else if (own) {
        read_own(op, last_own_[key]);
      } else {
        read_register(t, op, work);
      }
    }
  }

  void read_own(std::int64_t op, std::int64_t last) const {
    if (!judges_reads_) return;
    const std::int64_t named =
        h_.op_source[op];  // if the read names its source, it must be the write itself, not just its value
    const bool fits = is_set_read(writes_.kind(op)) ? SetRead(h_, op).allows(h_.op_value[last])
                      : named == kSourceByValue     ? h_.op_value[op] == h_.as_read(h_.op_value[last])
                                                    : named == last && !reads_otherwise(op, h_.op_value[last]);
    if (!fits || states_another(h_, op, last))
      reject("operation " + str(op) +
             " is an intrinsic anomaly: not what its transaction wrote last");
  }

  void read_register(std::int32_t t, std::int64_t op, std::vector<std::int32_t>& work) {
    const std::int32_t u = source_[op], key = h_.op_key[op];
    if (u == kNoSource) {
      if (judges_reads_ || has_candidate(t, op))
        reject("the external read " + str(op) + " has no source");
      return;
    }
    const std::int32_t write = u < 0 || u >= n_ ? -1 : writes_.find_last(u, key);
    if (u < 0 || u > n_ || !explains(t, op, u, write))
      reject("the external read " + str(op) + " cannot read from transaction " + str(u));
    if (judges_reads_ && h_.op_source[op] != kSourceByValue) check_value(op, u, write);
    choice_.reads.push_back({t, key, write, writes_.find_last(t, key)});
    if (operations_) choice_.op.push_back(op);
    if (!h_.statement_start.empty()) {
      choice_.statement.push_back(h_.statement_of(op));
      choice_.reads.back().of_predicate =
          is_set_read(h_.kind(op)) && choice_.statement.back() >= 0;
    }
    add(u, work);
  }

  bool reads_otherwise(std::int64_t op, std::int32_t value) const {
    return h_.kind(op) == OpKind::read && h_.op_value[op] != h_.as_read(value);
  }

  // Checks that all reads that name a version agree on its value. If the history allows it, nil may name the initial
  // version, whatever its value.
  void check_value(std::int64_t op, std::int32_t u, std::int32_t write) {
    const std::int32_t key = h_.op_key[op];
    if (u == n_) {
      if (h_.kind(op) != OpKind::read || (h_.op_value[op] == kNil && h_.nil_is_initial(key)))
        return;
      if (initial_.empty()) initial_ = h_.initial_value;
      if (initial_[key] == kNil) initial_[key] = h_.op_value[op];
    }
    if (reads_otherwise(op, u == n_ ? initial_[key] : writes_.last(write).value))
      reject("operation " + str(op) +
             " is an intrinsic anomaly: another value than that of the version that it names");
  }

  // Returns whether `u`, whose last write of the key is `write`, may be the source of the external register read `op`
  // of `t`.
  bool explains(std::int32_t t, std::int64_t op, std::int32_t u, std::int32_t write) {
    const std::int32_t key = h_.op_key[op], value = h_.op_value[op];
    const std::int64_t named = h_.op_source[op];
    const bool set = is_set_read(writes_.kind(op));
    if (u == n_) {
      if (set) return SetRead(h_, op).allows_initial();
      if (named == kSourceInitial) return true;
      const WriteIndex::InitialWrite* own = writes_.initial_write(key);
      if (named >= 0) return own && std::get<2>(*own) == named;
      if (named != kSourceByValue) return false;
      return (value == kNil && !writes_.vanishes(key)) || value == h_.initial_value[key] ||
             (own && std::get<1>(*own) == value);
    }
    if (u == t || !writes_.live(u) || write < 0) return false;
    const LastWrite& last = writes_.last(write);
    if (set) return SetRead(h_, op).allows(last.value);
    if (named >= 0) return h_.op_start[u] + last.at == named;
    return named == kSourceByValue && h_.as_read(last.value) == value;
  }

  // Returns whether the read has a candidate. This matters only if the specification judges no reads, because only then
  // may a read have no source.
  bool has_candidate(std::int32_t t, std::int64_t op) {
    const std::int32_t key = h_.op_key[op], value = h_.op_value[op];
    if (explains(t, op, n_, -1)) return true;
    if (is_set_read(writes_.kind(op))) {
      const SetRead read(h_, op);
      return writes_.any_written(key, t, [&](std::int32_t v) { return read.allows(v); });
    }
    const std::int64_t named = h_.op_source[op];
    if (named >= 0) {
      const auto u = static_cast<std::int32_t>(
          std::upper_bound(h_.op_start.begin(), h_.op_start.end(), named) - h_.op_start.begin() -
          1);
      return explains(t, op, u, writes_.find_last(u, key));
    }
    return named == kSourceByValue && writes_.any_written(key, t, [&](std::int32_t v) { return h_.as_read(v) == value; });
  }

  // Checks a list read. Before this read, its transaction has made `own` appends to the key.
  void read_list(std::int32_t t, std::int64_t op, std::int32_t own,
                 std::vector<std::int32_t>& work) {
    const std::int32_t key = h_.op_key[op];
    if (judges_reads_) {
      if (h_.op_source[op] == kSourceMissing)
        reject("operation " + str(op) + " is a thin-air read");
      for (const ListReads::Element& e : lists_.show(op)) add(e.writer, work);
      lists_.check_end(t, op, own);
    } else {
      for (const std::int32_t value : lists_.values(op))
        add(writes_.element_writer(key, value), work);
      lists_.keep(op);
    }
    if (own > 0) return;
    const std::int32_t u = source_[op];
    if (u != lists_.candidate(t, op))
      reject(u == kNoSource
                 ? "the external read " + str(op) + " has no source"
                 : "the external read " + str(op) + " cannot read from transaction " + str(u));
    if (u == kNoSource) return;
    choice_.reads.push_back(
        {t, key, u == n_ ? -1 : writes_.find_last(u, key), writes_.find_last(t, key)});
    if (operations_) choice_.op.push_back(op);
    if (!h_.statement_start.empty()) choice_.statement.push_back(-1);
  }

  // --- version orders ---

  void read_orders() {
    const auto keys = idx(h_.n_keys());
    std::vector<std::int64_t> writers(keys, 0);  // for each key, the number of its included writers
    for (std::int32_t t = 0; t < n_; ++t)
      if (choice_.included[t])
        for (std::int64_t i = writes_.begin_of(t); i < writes_.end_of(t); ++i) ++writers[writes_.last(i).key];
    choice_.key_start.assign(keys + 1, 0);
    choice_.order.reserve(order_txn_.size());
    for (std::size_t key = 0; key < keys; ++key) {
      std::int64_t before = std::numeric_limits<std::int64_t>::min();
      for (std::int64_t i = order_start_[key]; i < order_start_[key + 1]; ++i) {
        budget_.poll();
        prefetch_writes(order_txn_, idx(i));
        const std::int32_t t = order_txn_[i];
        if (t < 0 || t >= n_ || !choice_.included[t]) continue;
        const std::int32_t place = writes_.find_last(t, static_cast<std::int32_t>(key));
        if (place < 0) no_permutation(key);
        LastWrite& write = writes_.last(place);
        if (write.position >= 0) no_permutation(key);
        follow_stated(t, write.at, before);
        write.position = static_cast<std::int32_t>(static_cast<std::int64_t>(choice_.order.size()) -
                                                   choice_.key_start[key]);
        choice_.order.push_back(t);
      }
      choice_.key_start[key + 1] = static_cast<std::int64_t>(choice_.order.size());
      if (choice_.key_start[key + 1] - choice_.key_start[key] != writers[key]) no_permutation(key);
    }
  }

  // Checks that the version order contains the versions stated by committed writers in ascending order.
  void follow_stated(std::int32_t t, std::int64_t at, std::int64_t& before) const {
    const std::int64_t op = h_.op_start[t] + at;
    if (!h_.versions_ordered || h_.version(op) == kNoVersion ||
        writes_.status(t) != Status::committed)
      return;
    const std::int64_t number = h_.versions.number(h_.version(op));
    if (number < before)
      reject("the order of key " + str(h_.op_key[op]) + " is not the one that its versions state");
    before = number;
  }

  [[noreturn]] static void no_permutation(std::size_t key) {
    reject("the order of key " + str(static_cast<std::int64_t>(key)) +
           " is no permutation of its included writers");
  }

  // Replaces positions in the index with positions in the version orders.
  void place_reads() {
    const auto place = [&](std::int32_t& write) {
      if (write >= 0) write = writes_.last(write).position;
    };
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < choice_.reads.size(); ++i) {
      if (i + kAhead < choice_.reads.size()) writes_.prefetch_place(choice_.reads[i + kAhead].source);
      place(choice_.reads[i].source);
      place(choice_.reads[i].own);
    }
  }
};

}  // namespace

Choice read_choice(const History& history, std::span<const std::int32_t> source,
                   std::span<const std::int64_t> order_start,
                   std::span<const std::int32_t> order_txn, bool judges_reads, bool operations,
                   Budget& budget) {
  check_shapes(history, source, order_start, order_txn);
  return ChoiceReader(history, source, order_start, order_txn, judges_reads, operations, budget)
      .read();
}

}  // namespace isolang::certify
