// `open_window` copies the operations of a window, gives each key the value left by the last cut, and removes from list
// reads the elements that were cut. For predicate reads, it adds the rows that the window's transactions do not access.
#include "watch/open_window.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/implicit.hpp"
#include "core/index.hpp"
#include "readers/predicate.hpp"
#include "readers/predicates.hpp"

namespace isolang::watch {
namespace {

// The largest number of set-reads made for one window.
constexpr std::int64_t kMaxSetReadsOfWindow = 100'000;
constexpr std::string_view kWhole = " cannot be watched; hint: isocheck check judges the whole history";

class WindowBuilder {
 public:
  WindowBuilder(const History& raw, LastValues& last)
      : raw_(raw), last_(last), window_{raw, {}}, keys_(idx(raw.n_keys())) {}

  Window run() {
    History& h = window_.history;
    for (std::int32_t v = 0; v < raw_.values.size(); ++v)
      if (raw_.values.kind(v) == AtomKind::string && raw_.values.text(v) == kNothing)
        throw NotWatched{-1, 0, "the value that stands for no element here" + std::string(kWhole)};
    h.op_begin.clear(), h.op_end.clear(), h.commit_begin.clear(), h.commit_end.clear();
    h.statement_sent.clear(), h.statement_answered.clear();
    h.txn_group.clear();
    h.initial_value.assign(idx(h.n_keys()), kNil);
    h.initial_alone.clear();
    for (const std::string& text : predicates_of(raw_)) predicates_.push_back(predicates::parse_predicate(text));
    sort_keys();
    add_rows();
    h.list_start.assign(1, 0);
    h.list_values.clear();
    for (std::int32_t t = 0; t < raw_.transactions(); ++t)
      for (std::int64_t op = raw_.op_start[t]; op < raw_.op_start[t + 1]; ++op) operation(t, op);
    if (!predicates_.empty()) lower();
    return std::move(window_);
  }

 private:
  struct Key {
    bool list = false, single = false;
    std::int32_t txn = 0;  // the first transaction that shows whether the key is a list
    Prefix prefix;
  };

  std::int32_t nothing() {
    if (nothing_ < 0) nothing_ = window_.history.values.intern_text(AtomKind::string, kNothing);
    return nothing_;
  }

  // Adds the rows left by the last cut that no transaction of the window touches and for which a predicate is true or
  // cannot be judged. Predicate reads do not concern other rows.
  void add_rows() {
    History& h = window_.history;
    std::set<std::int32_t> rows;
    for (const auto& predicate : predicates_)
      for (const std::int32_t row : last_.rows_of(predicate)) rows.insert(row);
    Last last;
    for (const std::int32_t row : rows) {
      const std::int32_t atom = last_.intern_key(h.key_atoms, row);
      const std::int32_t key = h.key_of(atom);
      if (key < raw_.n_keys()) continue;
      last_.find(h.key_atoms, atom, last);
      begin_with(key, last);
    }
  }

  void begin_with(std::int32_t key, const Last& last) {
    History& h = window_.history;
    if (last.kind == AtomKind::nil) {
      // The initial version of a key is either no row or a row with a value. It cannot be a row that is nil.
      if (!predicates_.empty()) throw NotWatched{key, 0, "a row that is nil, beside predicate reads," + std::string(kWhole)};
      return;
    }
    const std::int32_t value = last.kind >= AtomKind::string ? h.values.intern_text(last.kind, last.text)
                               : last.kind == AtomKind::integer
                                   ? h.values.intern_integer(last.number)
                                   : h.values.intern_natural(static_cast<std::uint64_t>(last.number));
    h.set_initial_value(key, value, true);
  }

  void lower() {
    try {
      lower_predicates(window_.history, kMaxSetReadsOfWindow);
    } catch (const PredicateError& error) {
      throw NotWatched{-1, static_cast<std::int32_t>(error.txn), error.what};
    }
    // The witness for a window must have a source for each set-read, so no set-read may stay
    // implicit.
    if (is_implicit(window_.history))
      throw NotWatched{-1, 0,
                       "the predicate reads of one window miss rows more than " + std::to_string(kMaxSetReadsOfWindow) +
                           " times (expected fewer); hint: a shorter --round"};
  }

  // Finds the keys that hold lists, and the value left by the last cut for each key.
  void sort_keys() {
    for (std::int32_t t = 0; t < raw_.transactions(); ++t) {
      for (std::int64_t op = raw_.op_start[t]; op < raw_.op_start[t + 1]; ++op) {
        Key& key = keys_[idx(raw_.op_key[op])];
        const OpKind kind = raw_.kind(op);
        const bool open = !key.list && !key.single;
        if (kind == OpKind::append || kind == OpKind::read_list) key.list = true;
        if (kind == OpKind::write) key.single = true;
        if (open) key.txn = t;
        if (key.list && key.single) mixed(raw_.op_key[op], t);
      }
    }
    Last last;
    const std::vector<std::int32_t> numbers = last_.numbers_of(raw_);
    for (std::int32_t k = 0; k < raw_.n_keys(); ++k) {
      Key& key = keys_[idx(k)];
      const bool here = last_.find(numbers[idx(k)], last);
      if (here && last.list) {
        if (key.single) mixed(k, key.txn);
        key.list = true;
        key.prefix = last.prefix;
      } else if (here && key.list) {
        mixed(k, key.txn);
      }
      if (here && !last.list) begin_with(k, last);
    }
  }

  [[noreturn]] static void mixed(std::int32_t key, std::int32_t txn) {
    throw NotWatched{key, txn, "used as a list and as a register (expected one of the two)"};
  }

  void operation(std::int32_t t, std::int64_t op) {
    History& h = window_.history;
    std::int32_t& value = h.op_value[op];
    if (raw_.op_source[op] != kSourceByValue)
      throw NotWatched{raw_.op_key[op], t, "a read that names the write that it reads from" + std::string(kWhole)};
    if (value == kUnknownValue) return;
    const Key& key = keys_[idx(raw_.op_key[op])];
    switch (raw_.kind(op)) {
      case OpKind::append:
      case OpKind::write:
        return;
      case OpKind::read:
        if (key.list && key.prefix.length > 0) {
          h.op_kind[op] = static_cast<std::uint8_t>(OpKind::read_list);
          value = list(t, op, 0, 0, key.prefix);
        }
        return;
      case OpKind::read_list:
        value = list(t, op, raw_.list_start[value], raw_.list_start[value + 1], key.prefix);
        return;
      case OpKind::read_one_of:
      case OpKind::read_none_of: {
        if (key.list) throw NotWatched{raw_.op_key[op], t, "a compare-and-set of a list" + std::string(kWhole)};
        const std::int64_t begin = raw_.list_start[value], end = raw_.list_start[value + 1];
        h.list_values.insert(h.list_values.end(), raw_.list_values.begin() + begin,
                             raw_.list_values.begin() + end);
        value = listed();
        return;
      }
    }
  }

  // Returns the elements of the list that follow the elements of the last cut. If the list does not begin with the
  // elements of the last cut, the result is a list with one element that no transaction appended.
  std::int32_t list(std::int32_t t, std::int64_t op, std::int64_t begin, std::int64_t end,
                    const Prefix& prefix) {
    History& h = window_.history;
    Prefix read;
    for (; begin < end && read.length < prefix.length; ++begin)
      extend(read, element(raw_.list_values[begin]));
    if (read == prefix) {
      h.list_values.insert(h.list_values.end(), raw_.list_values.begin() + begin,
                           raw_.list_values.begin() + end);
    } else {
      h.list_values.push_back(nothing());
      const bool counts = raw_.op_ok[op] != 0 &&
                          static_cast<Status>(raw_.txn_status[t]) == Status::committed;
      if (counts && (window_.stale.empty() || window_.stale.back() != t)) window_.stale.push_back(t);
    }
    return listed();
  }

  std::int32_t listed() {
    History& h = window_.history;
    h.list_start.push_back(static_cast<std::int64_t>(h.list_values.size()));
    return static_cast<std::int32_t>(h.list_start.size()) - 2;
  }

  ElementHash element(std::int32_t atom) {
    if (hashes_.empty()) hashes_.resize(idx(raw_.values.size()));
    auto& known = hashes_[idx(atom)];
    if (!known) known = hash_of(raw_.values, atom);
    return *known;
  }

  const History& raw_;
  LastValues& last_;
  Window window_;
  std::vector<Key> keys_;
  std::vector<std::optional<ElementHash>> hashes_;
  std::vector<predicates::Predicate> predicates_;
  std::int32_t nothing_ = -1;
};

}  // namespace

std::vector<std::string> predicates_of(const History& raw) {
  std::set<std::int32_t> numbers;
  for (std::size_t s = 0; s < raw.statement_start.size(); ++s)
    if (raw.statement_known[s] == 1 && raw.statement_predicate[s] != kJudged) numbers.insert(raw.statement_predicate[s]);
  std::vector<std::string> texts;
  for (const std::int32_t p : numbers) texts.push_back(raw.predicates[idx(p)]);
  return texts;
}

Window open_window(const History& raw, LastValues& last) { return WindowBuilder(raw, last).run(); }

}  // namespace isolang::watch
