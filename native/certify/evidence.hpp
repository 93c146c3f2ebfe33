// The facts of a history. They are queried one by one, because a refutation's steps mention few of the history's
// operations.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "certify/certify.hpp"

namespace isolang::certify {

// The kinds of intrinsic anomalies, numbered as in certificates.
enum class Kind : std::uint8_t {
  thin_air_read = 0,
  aborted_read,
  intermediate_read,
  future_read,
  not_own_write,
  not_last_own_write,
  incompatible_order,
  duplicate_element,
  split_append,
  two_values,
  contradicting_versions,
};

class Evidence {
 public:
  Evidence(const History& history, Budget& budget);

  std::int32_t t0() const { return n_; }
  bool live(std::int64_t t) const;     // whether the transaction may be included
  bool certain(std::int64_t t) const;  // whether the transaction is T0 or committed
  // Returns whether (a, b) is a pair of a relation between transactions, or nothing if histories do not determine the
  // relation.
  std::optional<bool> given(int relation, std::int64_t a, std::int64_t b) const;
  bool so(std::int64_t a, std::int64_t b) const;
  bool rt(std::int64_t a, std::int64_t b) const;
  // Returns whether a and b access a common key for which has(key) is true, each as a writer or a reader, as `by`
  // requires.
  template <typename Has>
  bool share_key(std::int64_t a, std::int64_t b, const Filtered& by, const Has& has) {
    if (b < 0 || b >= n_) return false;
    const auto accesses = [&](std::int64_t t, std::int32_t key, bool reader) {
      return reader ? reads_key(t, key) : writes_key(t, key);
    };
    for (std::int64_t op = h_.op_start[b]; op < h_.op_start[b + 1]; ++op) {
      const std::int32_t key = h_.op_key[op];
      if (has(key) && accesses(b, key, by.to_reader) && accesses(a, key, by.from_reader)) return true;
    }
    return false;
  }
  // Returns whether the transaction accesses a key for which has(key) is true. T0 writes every key.
  template <typename Has>
  bool accesses_key(std::int64_t t, bool reader, const Has& has) {
    if (t < 0 || t >= n_) return t == n_ && !reader;
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
      if (const std::int32_t key = h_.op_key[op];
          has(key) && (reader ? reads_key(t, key) : writes_key(t, key)))
        return true;
    return false;
  }
  const History& history() const { return h_; }
  // The next three functions compare the times of external reads' statements and of COMMITs.
  bool committed_before(std::int64_t t, std::int64_t op);
  bool answered_before(std::int64_t op, std::int64_t later);
  bool committed_after(std::int64_t op, std::int64_t t);
  // Returns whether the transaction's last write of the key is in an earlier statement than `later`.
  bool writes_before(std::int64_t txn, std::int32_t key, std::int64_t later) const;
  bool one_statement(std::int64_t op, std::int64_t other) const {
    const std::int32_t statement = h_.statement_of(op);
    return op == other || (statement >= 0 && statement == h_.statement_of(other));
  }

  // Returns whether the transaction has an external read for which holds(op) is true.
  template <typename Holds>
  bool has_external_read(std::int64_t t, const Holds& holds) {
    if (t < 0 || t >= n_) return false;
    for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
      if (is_external(op) && holds(op)) return true;
    return false;
  }

  bool is_read(std::int64_t op);  // whether the read has a known result and its transaction may be included
  bool is_operation(std::int64_t op) const { return op >= 0 && op < h_.operations(); }
  bool of_transaction(std::int64_t op, std::int64_t t) const;
  std::int32_t txn_of(
      std::int64_t op) const;  // T0 for the operations of a declared initial transaction
  std::int32_t key_of(std::int64_t op) const { return h_.op_key[op]; }
  bool is_key(std::int64_t key) const { return key >= 0 && key < h_.n_keys(); }
  bool writes_key(std::int64_t t,
                  std::int32_t key) const;  // whether t writes the key and may be included; T0 writes every key

  bool writes(std::int64_t t) const;  // whether the transaction writes some key and may be included
  bool reads(std::int64_t t);         // whether the transaction has an external read and may be included
  bool reads_key(std::int64_t t, std::int32_t key);

  // Returns whether `op` stands for a predicate read that found no matching row of this key.
  bool of_predicate(std::int64_t op) const { return is_set_read(h_.kind(op)) && h_.in_statement(op); }
  // Returns whether `op` precedes `later` in program order. Operations of the same predicate read have no program
  // order.
  bool reads_first(std::int64_t op, std::int64_t later) const {
    const std::int32_t statement = h_.statement_of(op);
    return op < later && (statement < 0 || statement != h_.statement_of(later));
  }
  bool is_external(
      std::int64_t op);  // whether the read is external, has a known result, and its transaction may be included
  std::vector<std::int32_t> candidates(std::int64_t op);
  bool has_anomaly(std::int64_t op, std::int64_t kind);
  bool incompatible(std::int64_t op, std::int64_t other);
  // Returns whether the two reads name the initial version of the same key but report different
  // values for it.
  bool disagree(std::int64_t op, std::int64_t other);
  bool contradicts_order(std::int64_t op, std::int64_t other);

  const std::vector<std::int64_t>& indeterminate_list_reads(std::int32_t key);
  // Among the list reads of the key by committed transactions, returns the one that shows the most transactions, or -1
  // if there is no such read. Every other list read shows a part of the same order, or contradicts this read.
  std::int64_t most_informative_list(std::int32_t key);
  bool shows(std::int64_t op, std::int32_t a, std::int32_t b);
  bool forced(std::int32_t t);  // whether every choice includes this indeterminate transaction
  std::vector<std::int32_t> showing(
      std::int32_t t);  // the indeterminate transactions whose list reads show an element of t

 private:
  bool init(std::int64_t a, std::int64_t b) const;
  bool group_rt(std::int64_t a, std::int64_t b) const;
  bool done(std::int64_t a, std::int64_t b) const;
  bool late(std::int64_t a, std::int64_t b) const;
  bool locked(std::int64_t a, std::int64_t b) const;
  bool timed(std::int64_t a, std::int64_t b) const;
  struct Write {
    std::int32_t value;
    std::int64_t op;
    auto operator<=>(const Write&) const = default;
  };
  static constexpr std::int64_t kNotAsked = -2;
  struct KeyIndex {
    std::vector<Write> writes;                   // the writes, by value; including failed and aborted ones
    std::vector<std::int64_t> indeterminate_list_reads;  // list reads by indeterminate transactions
    std::vector<std::int64_t> list_reads;        // list reads by committed transactions
    std::int64_t most_informative = kNotAsked;       // the most informative one of `list_reads`
    bool written = false, appended = false;
  };

  KeyIndex& key_index(std::int32_t key);
  std::span<const Write> writes_of(std::int32_t key, std::int32_t value);
  std::vector<Write> writes_seen(std::int64_t op);
  bool vanishes(std::int32_t key);
  bool is_write(std::int64_t op) const;
  bool is_ok(std::int64_t op) const { return h_.op_ok[op] != 0; }
  std::int32_t value_of(std::int64_t op) const { return h_.op_value[op]; }
  std::int64_t raw_transaction(std::int64_t op) const;
  bool names_initial(std::int64_t op) const;
  unsigned named_otherwise(std::int64_t op) const;
  bool is_list(std::int64_t op);
  bool explains(std::int64_t write, std::int32_t key);
  std::vector<std::int64_t> own(std::int64_t op, bool before) const;
  std::vector<std::int64_t> writes_by(std::int32_t t, std::int32_t key) const;
  std::span<const std::int32_t> list_of(std::int64_t op) const;
  std::int32_t element_writer(std::int32_t key, std::int32_t value);
  std::vector<std::int32_t> shown(std::int64_t op);
  std::vector<std::int32_t> shown_order(std::int64_t op);
  unsigned anomalies(std::int64_t op);
  unsigned list_anomalies(std::int64_t op);
  unsigned against_own_appends(std::int64_t op);
  unsigned set_read_anomalies(std::int64_t op);
  unsigned why_not(std::int64_t op, std::span<const Write> writes);
  void find_forced();

  const History& h_;
  const std::int32_t n_;
  Budget& budget_;
  std::vector<std::int32_t> initial_;                // the declared initial transactions
  std::vector<std::int64_t> by_key_start_, by_key_;  // the operations, grouped by key
  std::unordered_map<std::int32_t, KeyIndex> keys_;
  std::unordered_map<std::int64_t, std::unordered_map<std::int32_t, std::int64_t>> first_shown_;
  std::vector<char> forced_;
  bool forced_known_ = false;
};

}  // namespace isolang::certify
