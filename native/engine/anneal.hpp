// Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) on the line itself: every node has a moment, the
// cost is the number of reads that do not see their value and of locks that are broken, and a move puts one node, or one
// transaction, anywhere between its neighbours among the known edges. A line without cost is a model.
//
// One move in five is about a read that is not satisfied: its reader goes elsewhere, or a writer of its value comes.
//
// Only what is near matters: a write that comes or goes changes the reads up to the next write of its key, and the lock
// of that write. So each key keeps its reads and writes sorted by moment, and a move is judged by two short scans a key.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/timeline.hpp"

namespace isolang {

class Annealing {
 public:
  Annealing(const Timeline& line, Budget& budget, std::uint64_t seed);

  // So many moves. True: a line without cost is found, see model().
  bool run(std::int64_t moves);
  std::optional<Model> model() const;

  std::int64_t moves = 0, cost = 0, best = 0;
  std::int32_t coolings = 0;  // runs of the cooling schedule that ended without success

 private:
  struct Entry {  // on the line of one key
    double moment;
    std::int32_t item;  // a writer, or ~read; reads of a transaction before its write
    bool write() const { return item >= 0; }
  };
  // What a node does on one key.
  struct Touch {
    std::int32_t key;
    std::int32_t first_read, reads;  // into touched_reads_
    std::int32_t writer = -1;        // its write
    std::int32_t guarded = -1;       // the write whose lock it takes
  };

  std::int32_t mismatch(std::int32_t read, std::int32_t writer) const { return !line_.sees(read, writer); }
  // The cost with the node at this moment, less the cost without it; and of it, the locks that a read node takes.
  std::int32_t change(Node v, double moment) const { return seen(v, moment) + guarded(v, moment); }
  std::int32_t seen(Node v, double moment) const;
  std::int32_t guarded(Node v, double moment) const;
  double locked(std::int32_t writer) const;  // since when its keys are its own
  void take(Node v);
  void put(Node v, double moment);
  void shift(Node v, double moment) {
    take(v);
    put(v, moment);
  }
  bool accepts(std::int32_t difference);
  void step();
  void move_node(Node v);
  void move_to(Node v, double moment);
  void mend();                     // a move that may satisfy a read
  void find_unsatisfied();
  void move_transaction(std::int32_t txn);
  void toggle(std::int32_t txn);
  void evenly();  // moments become 0, 1, 2, …
  void cool();
  double below(Node v) const;
  double above(Node v) const;
  double between(double low, double high);
  std::uint64_t random();
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>((random() >> 32) * count >> 32); }
  std::int64_t count_cost() const;

  const Timeline& line_;
  Budget& budget_;
  std::uint64_t state_;
  std::vector<double> moment_;                // per node
  std::vector<std::uint8_t> present_;         // per transaction
  std::vector<Node> movable_;
  std::vector<std::int32_t> txn_of_;          // per movable node
  std::vector<std::int32_t> optional_;
  std::vector<std::int32_t> unsatisfied_;     // reads, as of the last look at all
  std::vector<std::vector<Entry>> keys_;
  std::vector<std::int32_t> touch_start_;     // per node, into touches_
  std::vector<Touch> touches_;
  std::vector<std::int32_t> touched_reads_;
  std::int64_t sweeps_ = 1000, sweep_ = 0, in_sweep_ = 0;
  double temperature_ = 0;
  std::array<std::uint64_t, 32> threshold_{};  // of accepting a cost that rises by so much
};

}  // namespace isolang
