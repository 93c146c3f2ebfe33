// The total order of an annealing run, for each key: the reads and writes of the key, by position.
//
// The cost of a total order is the number of reads that do not see their value, plus the number of
// broken locks. When a node moves, the only changes on each of its keys are between its old and its
// new position, and in the reads up to the next write. Most moves are short. Each key therefore
// keeps its entries in one sorted array, each node knows the positions of its entries, and each
// entry knows the value that it finds. A move that passes no entries of a key costs two
// comparisons.
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
  // Returns the change in cost if the node, which must be in the total order, moved to `to`. `move`
  // makes the move.
  std::int32_t change(Node v, double to) const;
  void move(Node v, double to);
  // Sets the position of a node that is not in the total order.
  void set_position(Node v, double to) { position_[v] = to; }
  // Inserts a node into the total order, or removes it. Both functions return the change in the
  // cost of the node's keys.
  std::int32_t enter(Node v);
  std::int32_t leave(Node v);

  // Sets the given positions, and puts the nodes of all `present` transactions into the total
  // order.
  void build(std::vector<double> positions, const std::vector<std::uint8_t>& present);
  std::int64_t cost() const;  // computes the cost from scratch

  // A read that does not see its value, the write that it sees instead (-1 for that of T0), and the
  // position of this write.
  struct Unsatisfied {
    std::int32_t read;
    Node reader, blocker;
    double since;
  };
  // Lists the touches of these nodes with unsatisfied reads. `is_unsatisfied` later tests whether a touch is
  // still unsatisfied, and returns why.
  void find_unsatisfied(std::span<const Node> nodes, std::vector<std::int32_t>& touches) const;
  bool is_unsatisfied(std::int32_t touch, Unsatisfied& found) const;

 private:
  // The operations of a node on one key. Its entry reads, or writes, or reads and then writes.
  struct Touch {
    std::int32_t key;
    Node node;
    std::int32_t read, write;        // codes, see below, or kNone
    std::int32_t first_read, reads;  // into touched_reads_
    std::int32_t writer = -1;        // its write, a writer index
    std::int32_t guarded = -1;       // the touch of the write whose lock the node takes
    bool in_order() const { return read != kNone || write != kNone; }
  };
  // A code is the class of the value (total_order.hpp). If the reads of a key distinguish more than
  // classes, the code of a write is the writer, and the code of a touch with reads is its
  // complement, for which sees() decides.
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
  std::vector<std::int32_t> place_;  // per touch, the position of its entry, or -1
  std::vector<std::int32_t> touched_reads_;
  // The entries of each key by position. The first entry is the write of T0, and the last entry is
  // a write at the end of time.
  std::vector<std::vector<Entry>> keys_;
  std::vector<std::int32_t> first_code_;  // per key, the code of the write of T0
};

}  // namespace isolang
