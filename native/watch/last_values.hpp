// What the cuts of a stream have left: the last value of each key, or of its list the length and a
// hash of all elements in their order (docs/routes.md, Cuts of a stream).
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/history.hpp"
#include "readers/predicate.hpp"
#include "watch/row_index.hpp"

namespace isolang::watch {

// A list, by its length and two chains over its elements: each link is the hash of the link before
// and of one element.
struct Prefix {
  std::int64_t length = 0;
  std::uint64_t first = 0, second = 0;
  bool operator==(const Prefix&) const = default;
};

struct ElementHash {
  std::uint64_t first, second;
};
ElementHash hash_of(const Atoms& atoms, std::int32_t atom);
void extend(Prefix& prefix, ElementHash element);

// A key without an entry has no value: no transaction wrote it, or the last writer deleted it.
struct Last {
  bool list = false;
  AtomKind kind = AtomKind::nil;  // of a single value; nil: a row that is nil, which reads as none
  std::int64_t number = 0;        // as Atoms has it, but of texts: see text_of
  std::string text;
  Prefix prefix;  // of a list
};

// What an index has of a row, by itself: a number, or a text behind a mark; no mark, either, where the
// column cannot be compared.
struct Cell {
  bool is_number = false;
  double number = 0;
  std::string text;
};

class LastValues {
 public:
  LastValues() = default;
  LastValues(LastValues&&) = default;
  LastValues& operator=(LastValues&&) = default;
  std::int64_t size() const { return live_; }
  // Whether there is an entry for this key of a history; fills it in.
  bool find(const Atoms& keys, std::int32_t atom, Last& found) const;

  // The keys with a single value of which a predicate is true, or cannot be judged; by numbers that
  // hold until the next change, ascending. Costs what an index of the column does not exclude.
  std::vector<std::int32_t> rows_of(const predicates::Predicate& predicate);
  std::int32_t intern_key(Atoms& into, std::int32_t key) const;  // such a number as an atom of a history

  // The same for entries as bytes, which are elsewhere: takes over those that one of the predicates is
  // true of, or cannot be judged of, and whose key is new here.
  void take_matching(std::string_view entries, const std::vector<predicates::Predicate>& some);

  // What a part leaves, as bytes: the last value that its order has of each key. `part` is a history
  // of open_window.
  std::string left_by(const History& part, std::span<const std::int64_t> order_start,
                      std::span<const std::int32_t> order_txn) const;
  // Takes over what those bytes say; returns the bytes that undo it. Throws std::invalid_argument for
  // bytes that are none of these.
  std::string replace(std::string_view change);

  // Keys have numbers below this. Of some of them the entries, as bytes that `replace` takes; where
  // removed ones are kept, these too.
  std::int64_t numbers() const { return std::ssize(keys_); }
  std::string entries(std::int64_t first, std::int64_t count) const;

  // For those who keep a part of it on disk: the bytes of each key and those of its entry.
  using Records = std::vector<std::pair<std::string, std::string>>;
  Records records(std::int64_t first, std::int64_t count) const;
  void clear();  // nothing is left
  std::vector<std::string> missing(const History& history) const;  // of its keys those that are new
  // As records, also of keys that are not known here, since what is on disk would come back.
  bool keep_removed = false;
  std::int64_t memory() const;  // bytes, about

 private:
  struct Entry {
    bool here = false, list = false;
    AtomKind kind = AtomKind::nil;
    std::uint32_t size = 0;  // of the text
    std::int64_t number = 0;
    Prefix prefix;
    std::unique_ptr<char[]> text;  // if its kind has one
    std::string_view view() const { return {text.get(), size}; }
  };
  void set(std::int32_t key, Entry&& entry);
  void put(std::int32_t key, const Last& last);
  bool is_row(std::int32_t key) const { return entries_[static_cast<std::size_t>(key)].here && !entries_[static_cast<std::size_t>(key)].list; }
  std::string key_text(std::int32_t key) const;    // canonical
  std::string value_text(std::int32_t key) const;  // of a row, canonical
  void read(std::int32_t key, Last& last) const;
  struct Key {
    AtomKind kind;
    std::int64_t number;
    const std::string* text;  // into others_: behind one byte, the kind
  };
  std::int32_t find_key(AtomKind kind, std::int64_t number, std::string_view text) const;
  std::int32_t find_key(const Atoms& from, std::int32_t atom) const;
  std::int32_t key_of(AtomKind kind, std::int64_t number, std::string_view text);
  void compact();
  // Calls visit(key, whether it has a value, its entry) for some keys, by their numbers.
  template <typename Visit>
  void each(std::int64_t first, std::int64_t count, const Visit& visit) const;

  Atoms integers_;
  std::vector<std::int32_t> of_integer_;  // by atom of integers_
  std::unordered_map<std::string, std::int32_t> others_;  // kind, and number or text
  // Of each key; these do not move while they grow, which would need the room of both for a while.
  std::deque<Key> keys_;
  std::deque<Entry> entries_;
  std::int64_t text_bytes_ = 0;  // of entries and of others_, with the overhead of each
  RowIndex rows_;
  std::int64_t live_ = 0;
};

std::string marked(std::string_view text);

// Of each of the entries that are these bytes what an index of a column has of it; nothing where it is
// no row of the table. With no column it only tells rows of the table apart from others.
std::vector<std::optional<Cell>> cells_of(std::string_view entries, std::string_view table,
                                          std::string_view column);

}  // namespace isolang::watch
