#include "watch/open_window.hpp"

#include <optional>

#include "core/index.hpp"

namespace isolang::watch {
namespace {

class Opening {
 public:
  Opening(const History& raw, const LastValues& last)
      : raw_(raw), last_(last), window_{raw, {}}, keys_(idx(raw.n_keys())) {}

  Window run() {
    History& h = window_.history;
    if (!raw_.statement_start.empty())
      throw NotWatched{-1, raw_.statement_txn[0], "a predicate read"};
    for (std::int32_t v = 0; v < raw_.values.size(); ++v)
      if (raw_.values.kind(v) == AtomKind::string && raw_.values.text(v) == kNothing)
        throw NotWatched{-1, 0, "the value that stands for nil here"};
    h.op_begin.clear(), h.op_end.clear(), h.commit_begin.clear(), h.commit_end.clear();
    h.txn_group.clear();
    sort_keys();
    h.list_start.assign(1, 0);
    h.list_values.clear();
    for (std::int32_t t = 0; t < raw_.transactions(); ++t)
      for (std::int64_t op = raw_.op_start[t]; op < raw_.op_start[t + 1]; ++op) operation(t, op);
    h.deleted = kNoAtom;
    return std::move(window_);
  }

 private:
  struct Key {
    bool list = false, single = false;
    Prefix prefix;
  };

  std::int32_t nothing() {
    if (nothing_ < 0) nothing_ = window_.history.values.intern_text(AtomKind::string, kNothing);
    return nothing_;
  }

  // Which keys hold lists, and what the last cut left of each.
  void sort_keys() {
    for (std::int32_t t = 0; t < raw_.transactions(); ++t) {
      for (std::int64_t op = raw_.op_start[t]; op < raw_.op_start[t + 1]; ++op) {
        Key& key = keys_[idx(raw_.op_key[op])];
        const OpKind kind = raw_.kind(op);
        if (kind == OpKind::append || kind == OpKind::read_list) key.list = true;
        if (kind == OpKind::write) key.single = true;
        if (key.list && key.single) mixed(raw_.op_key[op], t);
      }
    }
    Last last;
    History& h = window_.history;
    for (std::int32_t k = 0; k < raw_.n_keys(); ++k) {
      Key& key = keys_[idx(k)];
      const bool here = last_.find(raw_.key_atoms, raw_.key_atom[idx(k)], last);
      if (here && last.list) {
        if (key.single) mixed(k, 0);
        key.list = true;
        key.prefix = last.prefix;
      } else if (here && key.list) {
        mixed(k, 0);
      }
      if (key.list)
        h.initial_value[idx(k)] = kNil;
      else if (!here || last.kind == AtomKind::nil)
        h.initial_value[idx(k)] = nothing();
      else if (last.kind >= AtomKind::string)
        h.initial_value[idx(k)] = h.values.intern_text(last.kind, last.text);
      else if (last.kind == AtomKind::integer)
        h.initial_value[idx(k)] = h.values.intern_integer(last.number);
      else
        h.initial_value[idx(k)] = h.values.intern_natural(static_cast<std::uint64_t>(last.number));
    }
  }

  [[noreturn]] static void mixed(std::int32_t key, std::int32_t txn) {
    throw NotWatched{key, txn, "lists and single values of one key"};
  }

  void operation(std::int32_t t, std::int64_t op) {
    History& h = window_.history;
    std::int32_t& value = h.op_value[op];
    if (raw_.op_source[op] != kSourceByValue)
      throw NotWatched{raw_.op_key[op], t, "a read that names the write that it reads from"};
    if (value == kUnknownValue) return;
    const Key& key = keys_[idx(raw_.op_key[op])];
    switch (raw_.kind(op)) {
      case OpKind::append:
        return;
      case OpKind::write:
        if (value == kNil || value == raw_.deleted) value = nothing();
        return;
      case OpKind::read:
        if (!key.list) {
          if (raw_.as_read(value) == kNil) value = nothing();
        } else if (key.prefix.length > 0) {
          h.op_kind[op] = static_cast<std::uint8_t>(OpKind::read_list);
          value = list(t, op, 0, 0, key.prefix);
        }
        return;
      case OpKind::read_list:
        value = list(t, op, raw_.list_start[value], raw_.list_start[value + 1], key.prefix);
        return;
      case OpKind::read_one_of:
      case OpKind::read_none_of: {
        if (key.list) throw NotWatched{raw_.op_key[op], t, "a compare-and-set of a list"};
        const std::int64_t begin = raw_.list_start[value], end = raw_.list_start[value + 1];
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int32_t atom = raw_.list_values[i];
          h.list_values.push_back(raw_.as_read(atom) == kNil ? nothing() : atom);
        }
        value = listed();
        return;
      }
    }
  }

  // The elements behind those that the last cut has; one that nobody appended if it has others.
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
  const LastValues& last_;
  Window window_;
  std::vector<Key> keys_;
  std::vector<std::optional<ElementHash>> hashes_;
  std::int32_t nothing_ = -1;
};

}  // namespace

Window open_window(const History& raw, const LastValues& last) { return Opening(raw, last).run(); }

}  // namespace isolang::watch
