// The total order of an annealing run as each key sees it: what reads and writes the key, by
// position.
//
// The cost of a total order is the number of reads that do not see their value, and of locks that
// are broken. A node that moves changes, on each of its keys, only what lies between its old and
// its new place, and the reads up to the next write. A move is mostly a short one, so each key
// keeps its entries in one sorted array, each node knows where its entries are, and each entry the
// value that it finds: a move that passes nothing on a key costs two comparisons.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/hard/total_order.hpp"

namespace isolang {

class KeyOrders {
 public:
  static constexpr double kFirst = -1.0;  // the position of T0

  explicit KeyOrders(const TotalOrder& total_order);

  double position(Node v) const { return position_[v]; }
  // The difference to the cost if the node, which is in the total order, moved there; and the move.
  std::int32_t change(Node v, double to) const;
  void move(Node v, double to);
  // Of a node that is not in the total order.
  void set_position(Node v, double to) { position_[v] = to; }
  // Onto the total order, and off it: the difference to the cost of its keys.
  std::int32_t enter(Node v);
  std::int32_t leave(Node v);

  // Moments as given, and the nodes of all `present` transactions in the total order.
  void build(std::vector<double> positions, const std::vector<std::uint8_t>& present);
  std::int64_t cost() const;  // counted anew

  // A read that does not see its value, the write that it sees instead (-1: T0's), and since when
  // that is there.
  struct Unsatisfied {
    std::int32_t read;
    Node reader, blocker;
    double since;
  };
  // Touches, by these nodes, of reads that are not satisfied now; later `still` tells whether one
  // is and why.
  void find_unsatisfied(std::span<const Node> nodes, std::vector<std::int32_t>& touches) const;
  bool still(std::int32_t touch, Unsatisfied& found) const;

 private:
  // What a node does on one key. Its entry reads, or writes, or reads and then writes.
  struct Touch {
    std::int32_t key;
    Node node;
    std::int32_t read, write;        // codes, see below; kNone
    std::int32_t first_read, reads;  // into touched_reads_
    std::int32_t writer = -1;        // its write
    std::int32_t guarded = -1;       // the touch of the write whose lock it takes
    bool in_order() const { return read != kNone || write != kNone; }
  };
  // A code is the class of the value (total_order.hpp). On a key with reads that make finer
  // distinctions, that of a write is the writer, and that of a touch with reads its complement:
  // sees() is asked.
  struct Entry {
    double at;
    std::int32_t touch, read, write, in;  // in: the code of the write before it
    bool writes() const { return write != kNone; }
  };
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();

  std::int32_t misses(std::int32_t read, std::int32_t found) const {
    if (read >= 0) return read != found;
    return read == kNone ? 0 : misses_slowly(~read, found);
  }
  std::int32_t misses_slowly(std::int32_t touch, std::int32_t writer) const;
  void set_touches();
  void set_codes();
  std::int32_t code_of_unread() const {
    return static_cast<std::int32_t>(total_order_.problem.writer_txn.size());
  }
  std::int32_t later(const Touch& touch, const Entry* own, double to) const;
  std::int32_t earlier(const Touch& touch, const Entry* own, double to) const;
  std::int32_t locks(const Touch& touch, const Entry* own, double to) const;
  std::int32_t guard(const Touch& touch, double to) const;
  void shift(std::int32_t touch, double to);
  std::int64_t cost_of(std::int32_t key) const;
  void find_values(std::int32_t key, std::size_t from);
  double opened(const Entry& write) const {
    if (write.touch < 0) return kFirst;
    return position(
        total_order_.read_node(total_order_.graph.transaction_of(touches_[write.touch].node)));
  }

  const TotalOrder& total_order_;
  std::vector<double> position_;           // per node
  std::vector<std::int32_t> touch_start_;  // per node, into touches_
  std::vector<Touch> touches_;
  std::vector<std::int32_t> place_;  // per touch: of its entry, or -1
  std::vector<std::int32_t> touched_reads_;
  std::vector<std::vector<Entry>> keys_;  // T0's write first, a write at the end of time last
  std::vector<std::int32_t> first_code_;  // per key: of T0's write
};

}  // namespace isolang
