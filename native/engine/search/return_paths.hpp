// Tests whether a complete choice closes a return path that a single rw must not close (irreflexive
// phi ; rw).
//
// Such a check is not acyclicity, because a product cycle of two rw pairs is allowed. The search
// therefore keeps these rw pairs out of its graph, and runs this test once it has made all choices.
// The return paths are walks in the product of the choice. This product has no cycle, because other
// checks forbid the loops of the automaton and the choice satisfies these checks.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/graph/many_walks.hpp"
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
  // Returns the violations found. Each consists of the edges of the return path, followed by the rw
  // that closes it, or of this rw alone if all edges of the path are known. `changed` marks the
  // transactions whose reads may have changed since the last call, see `Search`. The call clears the
  // mark of each transaction for which it finds no violation.
  std::vector<std::vector<Edge>> closed(const Choice& choice, std::vector<std::uint8_t>& changed);

 private:
  // A walk that must not exist: from the start of writer `writers[place]` to the read, or from the
  // read to its source (then place is -1).
  struct Suspect {
    PairOfPlaces pair;  // by rank_
    std::int32_t read, check, place, start;
    Node from, to;
  };

  void build(const Choice& choice);
  Adjacency wishes(const Choice& choice) const;
  template <typename Visit>
  void each_start(const Choice& choice, std::int32_t place, Visit visit) const;
  std::int32_t suspects_end(const Choice& choice, std::int32_t read) const;
  void note_lowest(const Choice& choice, std::int32_t key);
  void renew(const Choice& choice);
  void find_suspects(const Choice& choice);
  void add_overwrites(const Choice& choice);
  template <typename Reached>
  std::vector<Edge> path(const PairOfPlaces& pair, Reached reached);
  void by_product(const Choice& choice, std::vector<std::vector<Edge>>& found);
  template <typename Visit>
  void each_suspect(const Choice& choice, std::int32_t read, Visit visit) const;
  static std::vector<PairOfPlaces> pairs_of(const std::vector<Suspect>& suspects);
  void add_closed(const Suspect& one, std::vector<Suspect>& closed) const;
  void add_violations(const Choice& choice, const std::vector<Suspect>& closed,
                      std::vector<std::vector<Edge>>& found);
  void direct(const Choice& choice, std::int32_t read, std::vector<std::vector<Edge>>& found);
  void shorten(const Choice& choice, std::size_t check, std::int32_t start,
               std::vector<Edge>& walk);
  bool is_open_set_read(std::int32_t read) const;
  void add_other_sources(std::size_t check, std::int32_t start,
                         std::vector<std::vector<Edge>>& found);
  void components(const Choice& choice, std::size_t check, std::vector<std::vector<Edge>>& found);

  const Pruner& pruner_;
  const EventGraph& graph_;
  Budget& budget_;
  std::size_t max_found_;  // violations per call
  bool product_ = false, direct_ = false, components_ = false;
  std::vector<std::int32_t> local_;      // node of the event graph -> node of the product, or -1
  std::vector<std::uint8_t> by_next_;    // per check: the next writer leads on to all later writers
  std::vector<std::uint8_t> immediate_;  // per check: immediate pairs of ww suffice
  std::vector<std::uint8_t> suspect_;    // per read: a return path through the product may close
  std::vector<std::int32_t> lowest_;  // per position of a writer: the lowest rank from there on
  // True if every choice has the same product, because no walk uses version orders and each read
  // has one source. Then each call after the first call examines only keys whose order has changed.
  bool fixed_ = false;
  std::vector<std::int32_t> looked_at_;    // the writers of the last call; empty if it left some out
  std::vector<std::uint8_t> changed_key_;  // per key: 1 if its reads must be examined
  std::int32_t nodes_ = 0;
  std::vector<Edge> facts_, edges_;
  std::vector<std::int32_t> order_, rank_, via_;
  // The successors of each rank, as ranks; and the edges that lead to each rank, see path().
  Adjacency successors_, incoming_;
  std::vector<Pruner::ReturnPath> ways_;
};

}  // namespace isolang
