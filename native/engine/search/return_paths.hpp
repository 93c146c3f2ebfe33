// Tests whether a complete choice closes a return path that a single rw must not close (irreflexive
// phi ; rw).
//
// Such a check is not acyclicity, because a product cycle of two rw pairs is allowed. The search
// therefore keeps these rw pairs out of its graph, and asks here once it has chosen everything. The
// return paths are walks in the product of the choice. This product has no cycle, because other
// checks forbid the loops of the automaton and the choice satisfies these checks.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/prune/pruner.hpp"

namespace isolang {

class ReturnPaths {
 public:
  ReturnPaths(const Pruner& pruner, Budget& budget);

  struct Choice {
    const std::vector<std::int32_t>& source;   // per read: a writer, or -1
    const std::vector<std::int32_t>& writers;  // by key, in version order
    const std::vector<std::int32_t>& place;    // of each writer in `writers`
    const std::vector<std::uint8_t>& in;       // per transaction
  };
  // Returns the violations found: for each, the edges of the return path, then the rw that closes
  // it. `changed` marks the transactions whose reads may have changed since the last call, see
  // `Search`. The call clears the mark of each transaction for which it found no violation.
  std::vector<std::vector<Edge>> closed(const Choice& choice, std::vector<std::uint8_t>& changed);

 private:
  void build(const Choice& choice);
  void find_suspects(const Choice& choice);
  void add_overwrites(const Choice& choice);
  std::vector<Edge> path(Node from, Node to);
  void direct(const Choice& choice, std::int32_t read, std::vector<std::vector<Edge>>& found);
  void by_product(const Choice& choice, std::int32_t read, std::vector<std::vector<Edge>>& found);
  void shorten(const Choice& choice, std::size_t check, std::int32_t start,
               std::vector<Edge>& walk);
  bool is_open_set_read(std::int32_t read) const;
  void add_other_sources(std::size_t check, std::int32_t start,
                         std::vector<std::vector<Edge>>& found);
  void to_source(const Choice& choice, std::int32_t read, std::vector<std::vector<Edge>>& found);
  void components(const Choice& choice, std::size_t check, std::vector<std::vector<Edge>>& found);

  const Pruner& pruner_;
  const EventGraph& graph_;
  Budget& budget_;
  bool product_ = false, direct_ = false, components_ = false;
  std::vector<std::int32_t> local_;      // node of the event graph -> node of the product, or -1
  std::vector<std::uint8_t> by_next_;    // per check: the next writer leads on to all later writers
  std::vector<std::uint8_t> immediate_;  // per check: immediate pairs of ww suffice
  std::vector<std::uint8_t> suspect_;    // per read: a return path through the product may close
  std::int32_t nodes_ = 0;
  std::vector<Edge> facts_, edges_;
  std::vector<std::int32_t> rank_, via_;
  Adjacency outgoing_;
  Clocks clocks_;
  std::vector<Pruner::ReturnPath> ways_;
};

}  // namespace isolang
