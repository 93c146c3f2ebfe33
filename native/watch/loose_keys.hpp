// The keys whose last writers may have committed in an order other than the one guessed by the cuts. docs/routes.md,
// Exchanges, proves which properties a different order of these writers preserves.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/history.hpp"
#include "watch/last_values.hpp"

namespace isolang::watch {

class LooseKeys {
 public:
  // Adds the next part. A key of this part is loose if several transactions of the part write it. A key of an earlier
  // part stays loose only if this part does not access the key, or only appends to it. A part with predicate reads
  // leaves no loose keys, because such a read may concern every row left by an earlier part.
  void add(const History& part, std::span<const std::int64_t> order_start, std::int64_t number);
  void forget(std::int64_t from);  // forgets the parts with this number or a larger one
  std::int64_t size() const { return std::ssize(parts_of_); }

  // Reads of a window, each with the number of a part that may explain it. If several parts may
  // explain a read, the read occurs several times.
  struct Reads {
    std::vector<std::int64_t> op;
    std::vector<std::int64_t> part;
  };
  // Returns the reads of loose keys that return neither the last value nor a value written by the window. `window`
  // contains the transactions as they are in the log.
  Reads unexplained(const History& window, const LastValues& last) const;

 private:
  // Most keys of a history are not loose. This filter shows cheaply that a key is not loose, without building its name
  // and without a look-up in the map. It may contain names that are no longer in the map.
  class Filter {
   public:
    void take(const std::string& name);
    bool may_have(const Atoms& atoms, std::int32_t atom) const;

   private:
    static constexpr std::size_t kBits = 1 << 18;
    static std::size_t place(AtomKind kind, std::int64_t number, std::string_view text);
    std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(kBits / 64);
  };
  Filter filter_;
  // For the name of each loose key, the parts that may exchange the order of the key's writers,
  // ascending.
  std::unordered_map<std::string, std::vector<std::int64_t>> parts_of_;
};

// The version orders of a part under which some reads of a window read the last version, and the keys of the part that
// these reads concern, ascending. If the part has no such order, `order` is empty.
struct Exchanged {
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> keys;
};
// For a register, the writer of the value that was read comes last. For a list, the writers come in the order of the
// elements. `last` contains the values of these keys before the part.
Exchanged exchanged(const History& part, std::span<const std::int64_t> order_start,
                    std::span<const std::int32_t> order_txn, const History& window,
                    std::span<const std::int64_t> reads, const LastValues& last);

}  // namespace isolang::watch
