// The last value of each key left by the cuts of a stream. For a list key, these are the length of the list and a hash
// of all elements in their order (docs/routes.md, Cuts of a stream).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/history.hpp"
#include "core/index.hpp"
#include "readers/predicate.hpp"
#include "watch/row_index.hpp"

namespace isolang::watch {

// A list, represented by its length and two hash chains over its elements: each link is the hash of the previous link
// and one element.
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

// The last value of a key. A key without an entry has no value: no transaction wrote it, or the last writer deleted it.
struct Last {
  bool list = false;
  AtomKind kind = AtomKind::nil;  // the kind of a single value; a row whose value is nil reads as none
  std::int64_t number = 0;        // as in Atoms, except for texts: see `text`
  std::string_view text;          // a view into the LastValues, or into the bytes that were read
  Prefix prefix;                  // the list, if the key has one
};

// The name of a key, or a scalar: its kind, and its number or text.
struct Scalar {
  AtomKind kind = AtomKind::nil;
  std::int64_t number = 0;
  std::string_view text;
};

// The value stored by an index for a row: a number, or a text after a mark. If the value of the column cannot be
// compared, the text has no mark.
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
  // Sets `found` to the entry of this key. Returns false if the key has no entry.
  bool find(const Atoms& keys, std::int32_t atom, Last& found) const;

  // Returns the number of each key of a history, or -1 for a key that this object does not have. The look-ups run side
  // by side, because the entries of many keys are in distant memory.
  std::vector<std::int32_t> numbers_of(const History& history) const;
  // Finds the entry of the key with this number.
  bool find(std::int32_t number, Last& found) const;

  // Returns the numbers of the keys that have a single value and for which a predicate is true or cannot be decided,
  // ascending. The numbers are valid until the next change. The cost is proportional to the number of rows that an
  // index of the column does not exclude.
  std::vector<std::int32_t> rows_of(const predicates::Predicate& predicate);
  std::int32_t intern_key(Atoms& into, std::int32_t key) const;  // interns such a number as an atom of a history

  // Reads entries from bytes, and adds those for which one of the predicates is true or cannot be decided, and whose
  // keys this object does not have yet.
  void take_matching(std::string_view entries, const std::vector<predicates::Predicate>& some);

  // Returns the values that a part leaves, as bytes: the last value of each key in the part's version order. `part` is
  // a history made by open_window.
  std::string left_by(const History& part, std::span<const std::int64_t> order_start,
                      std::span<const std::int32_t> order_txn) const;
  // Applies bytes returned by left_by(), and returns the bytes that undo the change. Throws std::invalid_argument if
  // the bytes are not valid.
  std::string replace(std::string_view change);

  // Returns the entries in these bytes whose keys some reads of a history concern.
  static LastValues of_reads(std::string_view entries, const History& window, std::span<const std::int64_t> reads);

  // Each key has a number less than numbers(). entries() returns the entries of some of the keys as bytes that
  // `replace` takes, including removed keys if they are kept.
  std::int64_t numbers() const { return static_cast<std::int64_t>(items_.size()); }
  std::string entries(std::int64_t first, std::int64_t count) const;

  // Returns the bytes of each key and of its entry, for a caller that keeps some of them on disk.
  using Records = std::vector<std::pair<std::string, std::string>>;
  Records records(std::int64_t first, std::int64_t count) const;
  void clear();  // removes all entries
  std::vector<std::string> missing(const History& history) const;  // the keys of the history that are unknown here
  // Whether records() also returns removed keys. A caller that keeps entries on disk needs the removed keys; otherwise,
  // it would read the old entries again.
  bool keep_removed = false;
  std::int64_t memory() const;  // approximate, in bytes

 private:
  friend std::string entries_with(std::string_view entries, std::string_view change);
  struct Entry {
    bool here = false, list = false;
    AtomKind kind = AtomKind::nil;
    std::uint32_t size = 0;                // length of the text
    std::int64_t number = 0;               // or the length of the list
    std::uint64_t first = 0, second = 0;   // the hashes of the list
    std::unique_ptr<char[]> text;          // set if the kind has a text
    std::string_view view() const { return {text.get(), size}; }
  };
  struct Key {
    AtomKind kind = AtomKind::nil;
    std::int64_t number = 0;       // or the length of the text
    std::unique_ptr<char[]> text;  // set if the kind has a text
    Scalar scalar() const;
  };
  // A key and its entry, in one cache line.
  struct alignas(64) Item {
    Key key;
    Entry entry;
  };
  static_assert(sizeof(Item) == 64);
  // The items by number. They do not move while their number grows, because moving them would temporarily need memory
  // for both copies.
  class Items {
   public:
    std::size_t size() const { return size_; }
    Item& operator[](std::size_t i) { return blocks_[i / kBlock][i % kBlock]; }
    const Item& operator[](std::size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
    Item& add();

   private:
    static constexpr std::size_t kBlock = 1024;
    std::vector<std::unique_ptr<Item[]>> blocks_;
    std::size_t size_ = 0;
  };
  void set(std::int32_t key, Entry&& entry);
  void put(std::int32_t key, const Last& last);
  const Entry& entry(std::int32_t key) const { return items_[idx(key)].entry; }
  bool is_row(std::int32_t key) const { return entry(key).here && !entry(key).list; }
  std::string key_text(std::int32_t key) const;    // canonical text
  std::string value_text(std::int32_t key) const;  // canonical text of a row
  void read(std::int32_t key, Last& last) const;
  // Returns the slot that holds the number of the key, or the empty slot for it.
  std::size_t slot(const Scalar& name, std::uint64_t hash) const;
  std::int32_t find_key(const Scalar& name) const;
  std::int32_t key_of(const Scalar& name, std::uint64_t hash);
  void prefetch_slot(std::uint64_t hash) const;
  void prefetch_item(std::uint64_t hash) const;
  void compact();
  // Calls visit(the name of the key, whether it has a value, its entry) for a range of keys, by their numbers.
  template <typename Visit>
  void each(std::int64_t first, std::int64_t count, const Visit& visit) const;

  Items items_;
  std::vector<std::int32_t> slots_ = std::vector<std::int32_t>(1024, -1);  // a hash table of numbers, open addressing
  std::int64_t text_bytes_ = 0;  // bytes of the texts of keys and entries, including overhead
  RowIndex rows_;
  std::int64_t live_ = 0;
};

// Returns the entries in these bytes, with the values that `change` contains for some of their keys.
std::string entries_with(std::string_view entries, std::string_view change);

std::string marked(std::string_view text);

// Returns, for each entry in these bytes, the value that an index of the column stores for it, or nothing if the entry
// is not a row of the table. If `column` is empty, the result only distinguishes rows of the table from other entries.
std::vector<std::optional<Cell>> cells_of(std::string_view entries, std::string_view table,
                                          std::string_view column);

}  // namespace isolang::watch
