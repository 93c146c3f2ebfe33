// `take_unwritten_for_initial` collects, for each key, the values that were read but written by no transaction, chooses
// one by the rule in the header, and makes it the initial value. The elements that a list began with are removed from
// all reads of the list.
#include "readers/before.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "core/index.hpp"
#include "core/versions.hpp"

namespace isolang {
namespace {

constexpr std::int32_t kNoRead = -1;  // no read has been noted

bool has_status(const History& h, std::int32_t t, Status status) {
  return h.txn_status[t] == static_cast<std::uint8_t>(status);
}

std::span<const std::int32_t> elements(const History& h, std::int64_t op) {
  if (h.kind(op) == OpKind::read) return {};  // nil of a list key is the empty list
  const auto list = idx(h.op_value[op]);
  return {h.list_values.begin() + h.list_start[list],
          h.list_values.begin() + h.list_start[list + 1]};
}

bool reads_list(const History& h, std::int64_t op) {
  const OpKind kind = h.kind(op);
  return h.op_value[op] != kUnknownValue &&
         (kind == OpKind::read_list || (kind == OpKind::read && h.op_value[op] == kNil));
}

// Returns, for each key, whether it holds a list.
std::vector<std::uint8_t> list_keys(const History& h) {
  std::vector<std::uint8_t> found(idx(h.n_keys()), 0);
  for (std::int64_t op = 0; op < h.operations(); ++op)
    if (h.kind(op) == OpKind::append ||
        (h.kind(op) == OpKind::read_list && reads_list(h, op) && !elements(h, op).empty()))
      found[h.op_key[op]] = 1;
  return found;
}

// Returns the keys whose initial value is stated by a declared initial transaction, including deleted ones.
std::vector<std::uint8_t> declared_keys(const History& h) {
  std::vector<std::uint8_t> found(idx(h.n_keys()), 0);
  for (std::int32_t t = 0; t < h.transactions(); ++t)
    if (has_status(h, t, Status::initial))
      for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op)
        if (h.kind(op) == OpKind::write && h.op_ok[op] != 0) found[h.op_key[op]] = 1;
  return found;
}

// The values written to each key, including those of failed and aborted writes.
class Written {
 public:
  explicit Written(const History& h) {
    for (std::int64_t op = 0; op < h.operations(); ++op)
      if (is_write(h.kind(op))) all_.push_back(slot(h.op_key[op], h.as_read(h.op_value[op])));
    std::ranges::sort(all_);
  }
  bool has(std::int32_t key, std::int32_t value) const {
    return std::ranges::binary_search(all_, slot(key, value));
  }

 private:
  static std::uint64_t slot(std::int32_t key, std::int32_t value) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) << 32) |
           static_cast<std::uint32_t>(value);
  }
  std::vector<std::uint64_t> all_;
};

// The evidence from the reads of one key about its value before the history.
struct ShownValue {
  std::int64_t op = kNoRead;     // the read that decides
  std::int64_t other = kNoRead;  // a read of another value, if the outcomes of both reads are unknown
  std::int64_t nil = kNoRead;    // a read of nil, which a delete may also explain
  bool certain = false;
};

class Search {
 public:
  explicit Search(const History& h) : h_(h), written_(h), is_list_(list_keys(h)), told_(idx(h.n_keys())) {}

  void run() {
    std::vector<std::int32_t> own(idx(h_.n_keys()), kNoRead);
    const std::vector<std::uint8_t> declared = declared_keys(h_);
    for (std::int32_t t = 0; t < h_.transactions(); ++t) {
      const bool certain = has_status(h_, t, Status::committed);
      if (!certain && !has_status(h_, t, Status::indeterminate)) continue;
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) {
        const std::int32_t key = h_.op_key[op];
        // mutant: declared-is-unwritten
        if (h_.op_ok[op] == 0 || h_.initial_value[key] != kNil || declared[key] != 0) continue;
        if (is_write(h_.kind(op)))
          own[key] = t;
        else if (is_list_[key] != 0 ? reads_list(h_, op) : own[key] != t)
          note(op, certain);
      }
    }
  }

  // Returns the elements of a list read that come before the first element appended by a
  // transaction.
  std::span<const std::int32_t> beginning(std::int64_t op) const {
    const auto list = elements(h_, op);
    std::size_t size = 0;
    while (size < list.size() && !written_.has(h_.op_key[op], list[size])) ++size;
    return list.first(size);
  }
  // Returns whether a read shows a value of T0, either because no transaction wrote the value or because the read names
  // T0.
  bool of_initial(std::int64_t op) const {
    if (h_.kind(op) != OpKind::read || h_.op_value[op] == kUnknownValue) return false;
    const std::int64_t source = h_.op_source[op];
    // mutant: written-value-initial
    return source == kSourceInitial ||
           (source == kSourceByValue && !written_.has(h_.op_key[op], h_.op_value[op]));
  }
  bool is_list(std::int32_t key) const { return is_list_[key] != 0; }
  const ShownValue& told(std::int32_t key) const { return told_[key]; }
  std::vector<std::int64_t> open() const {
    for (const ShownValue& told : told_) {
      if (told.op < 0 || told.certain) continue;
      if (told.other >= 0) return {told.op, told.other};
      if (told.nil >= 0 && h_.op_value[told.op] != kNil) return {told.op, told.nil};
    }
    return {};
  }

 private:
  void note(std::int64_t op, bool certain) {
    const std::int32_t key = h_.op_key[op];
    ShownValue& told = told_[key];
    if (!is_list(key) && !of_initial(op)) {
      if (h_.kind(op) == OpKind::read && h_.op_value[op] == kNil &&
          h_.op_source[op] == kSourceByValue)
        told.nil = op;
      return;
    }
    // mutant: unknown-outcome-decides
    if (told.op < 0 || (certain && !told.certain)) {
      told = {op, kNoRead, told.nil, certain};
    } else if (!told.certain && !same(op, told.op)) {
      told.other = op;
    }
  }
  bool same(std::int64_t a, std::int64_t b) const {
    return is_list(h_.op_key[a]) ? std::ranges::equal(beginning(a), beginning(b))
                                 : h_.op_value[a] == h_.op_value[b];
  }

  const History& h_;
  Written written_;
  std::vector<std::uint8_t> is_list_;
  std::vector<ShownValue> told_;
};

// Removes the elements that lists began with from all reads of these lists.
class Beginnings {
 public:
  Beginnings(History& h, std::unordered_map<std::int32_t, std::vector<std::int32_t>> of_key)
      : h_(h), of_key_(std::move(of_key)) {}

  void run() {
    const std::int32_t marker = h_.values.intern_text(AtomKind::other, kWithoutBeginning);
    for (std::int64_t op = 0; op < h_.operations(); ++op) {
      const auto found = of_key_.find(h_.op_key[op]);
      if (found == of_key_.end() || !reads_list(h_, op)) continue;
      const auto list = elements(h_, op);
      const std::vector<std::int32_t>& beginning = found->second;
      std::vector<std::int32_t> rest;
      // mutant: any-beginning
      if (list.size() < beginning.size() ||
          !std::ranges::equal(list.first(beginning.size()), beginning)) {
        rest.push_back(marker);
        rest.insert(rest.end(), list.begin(), list.end());
      } else {
        rest.assign(list.begin() + static_cast<std::ptrdiff_t>(beginning.size()), list.end());
      }
      h_.op_kind[op] = static_cast<std::uint8_t>(OpKind::read_list);
      h_.op_value[op] = h_.add_list(rest);
    }
  }

 private:
  History& h_;
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> of_key_;
};

}  // namespace

Before take_unwritten_for_initial(History& h) {
  unname_sources(h);  // sources are named again once the writes of T0 are known
  Search search(h);
  search.run();
  Before before;
  before.open = search.open();
  if (!before.open.empty()) return before;
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> lists;
  std::vector<std::int64_t> others;  // reads of other values that T0 would also have had to write
  for (std::int64_t op = 0; op < h.operations(); ++op) {
    const std::int32_t key = h.op_key[op];
    const std::int64_t told = search.told(key).op;
    if (told < 0 || search.is_list(key) || h.op_value[told] == kNil) continue;
    // mutant: several-unwritten
    if (search.of_initial(op) && h.op_value[op] != h.op_value[told]) others.push_back(op);
  }
  for (std::int32_t key = 0; key < h.n_keys(); ++key) {
    const std::int64_t op = search.told(key).op;
    if (op < 0) continue;
    if (search.is_list(key)) {
      const auto beginning = search.beginning(op);
      if (beginning.empty()) continue;
      lists.emplace(key, std::vector(beginning.begin(), beginning.end()));
      ++before.lists;
    } else if (h.op_value[op] != kNil) {
      h.set_initial_value(key, h.op_value[op], true);
      ++before.registers;
    }
  }
  for (const std::int64_t op : others) h.op_source.set(idx(op), kSourceInitial);
  if (!lists.empty()) Beginnings(h, std::move(lists)).run();
  return before;
}

void begin_list_with(History& h, std::int32_t key, std::span<const std::int32_t> atoms) {
  if (!atoms.empty()) Beginnings(h, {{key, {atoms.begin(), atoms.end()}}}).run();
}

}  // namespace isolang
