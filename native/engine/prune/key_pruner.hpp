// Prunes one key: draws all conclusions about the order of its writers and the sources of its reads that the clocks
// allow.
//
// A pass only reads the data that all keys share, and changes only the data of its key (the pairs
// of its writers, the candidates and sources of its reads). Its other results are added to
// Findings. Several threads, each with a KeyPruner, therefore reach the same result as one thread.
// If keys depend on each other (Pruner::one_by_one_), one thread prunes them all.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/bits.hpp"
#include "core/growing.hpp"
#include "engine/graph/starts.hpp"
#include "engine/prune/pruner.hpp"

namespace isolang {

struct Findings {
  Growing<Edge> edges;
  std::int64_t gained = 0, forced_orders = 0, eliminated_sources = 0;
  // The contradiction found, if any; see Pruner.
  std::optional<Impossible> closed;
  std::int32_t read_without_candidates = -1;
};

// Returns true if the steps of every automaton compose: if the pairs (a, b) and (b, c) are settled,
// then (a, c) is settled, too. SOUND BECAUSE a -ww-> b -ww-> c implies a -ww-> c, and r -rw-> b
// -ww-> c implies r -rw-> c for each reader r of a; if r is b itself, b -ww-> c does.
bool orders_compose(const EventGraph& graph);

class KeyPruner {
 public:
  explicit KeyPruner(Pruner& pruner);

  // Returns false on a contradiction. With `every_read`, also prunes reads for which nothing has
  // changed.
  bool prune(std::int32_t key, bool every_read, Budget& budget, Findings& findings);
  // Prefetches the data that prune() will need for later keys, beginning with the next key.
  void fetch(std::span<const std::int32_t> keys) const;
  // Adds each pair of the key's writers to `pairs`, see Pruner::Pairs.
  void list_pairs(std::int32_t key, Budget& budget, Pruner::Pairs& pairs);

  struct OnChain {  // a node of writers_[at]
    Clocks::Mark mark;
    std::size_t at;
  };

 private:
  struct Seen {
    std::int32_t writer;
    Edge closing;  // lacks its source
    std::optional<Edge> back;
  };
  // For each target of a ww or rw step, the marks of the key's writers. If check < 0, these are
  // marks of their version nodes.
  struct Target {
    std::int32_t check, state;
    bool at_write;  // the target of a ww step that leads to the write
    std::vector<Clocks::Mark> marks;
  };
  struct Row {
    std::int32_t check, state;
    std::size_t target;
    Pairs pairs;  // the pairs to which the row applies
  };
  // A node with the sources of the edges that were just added to it. If there are more than a few
  // sources, they have raised the row of the node in cover_rows_, and `sources` is kMaxSources + 1.
  struct Covered {
    static constexpr std::size_t kMaxSources = 2;
    Node node;
    std::size_t sources = 0;
    std::array<Node, kMaxSources> source{};
  };

  // Returns the first open reads of the key, up to a limit. The next two functions also visit only
  // as many items.
  std::span<const std::int32_t> open_reads(std::int32_t key) const;
  template <typename Visit>
  void each_reader(std::int32_t key, Visit visit) const;
  template <typename Visit>
  void each_node(std::int32_t key, Visit visit) const;
  void load(std::int32_t key);
  std::size_t target_of(std::int32_t check, std::int32_t state, bool at_write = false);
  Node node_of(std::int32_t check, std::int32_t state, std::int32_t writer) const;
  Node node_of(const Target& target, std::int32_t writer) const;

  bool prune_orders();
  bool close_behind_initial(std::int32_t initial);
  void order_by_chains();
  void find_chains();
  static std::uint64_t reaching(const std::int32_t* row, const std::vector<Clocks::Mark>& marks,
                                std::size_t word);
  void find_starts(std::int32_t writer);
  // Returns the first position in writers_ with a node that may reach a node of this rank. A node
  // of higher rank cannot.
  std::size_t first_before(std::int32_t rank) const;
  // Returns the bits of writers_[first] and later writers in this word of a row. `first` is in the
  // word or before it.
  std::uint64_t writers_from(std::size_t first, std::size_t word) const;
  void mark_forced(std::int32_t after);
  // Marks the predecessors of writers_[self]. kWords is the number of words of a row, or 0 if the
  // number is not known at compile time.
  template <std::size_t kWords>
  void mark_latest_forced(std::size_t self);
  bool reached_only_as_reader(std::int32_t after, std::size_t at) const;
  template <std::size_t kWords>
  void order_behind(std::size_t self);
  void order_behind(std::vector<std::size_t>& latest, std::int32_t after, bool initial_too);
  void add_order(std::int32_t before, std::int32_t after);
  void load_settled();
  void note_unsettled();
  bool keep_unless_implied(const Edge& edge);
  // Returns the reason why the order "a before b" is impossible; nothing if it is possible.
  std::optional<Edge> closing_order(std::int32_t a,
                                    std::int32_t b) const;
  bool impossible_order(std::int32_t a, std::int32_t b) const {
    return closing_order(a, b).has_value();
  }
  bool is_forced(std::int32_t writer) const { return has_bit(forced_, pairs_.place(writer)); }

  bool prune_read(std::int32_t read);
  void find_seen(std::int32_t read);
  const Seen* overwritten_by(std::int32_t candidate);

  Pruner& pruner_;
  const EventGraph& graph_;
  const Clocks& clocks_;
  WriterPairs& pairs_;
  Budget* budget_ = nullptr;  // this and the next three belong to the current call
  Findings* findings_ = nullptr;
  std::int32_t key_ = -1;
  std::span<const std::int32_t> writers_;  // the latest first

  std::vector<Target> targets_;
  std::vector<Row> ww_rows_, rw_rows_;
  bool orders_compose_;  // see orders_compose

  // The start nodes of the edges that would order the current writer before another writer, and
  // those of the current read's edges.
  Starts starts_, reader_;
  // For each of writers_, the lowest rank of this writer and the writers before it in writers_.
  std::vector<std::int32_t> lowest_;
  // One bit for each of writers_. For forced_ and hidden_, see mark_forced and mark_latest_forced.
  // behind_ contains the writers that precede the current writer.
  std::vector<std::uint64_t> forced_, hidden_, behind_;
  std::vector<std::uint64_t>
      settled_;  // as WriterPairs::precede: pairs whose edges are all known or implied
  // For a key without rows: its writers, as positions in writers_, along the clock chains that
  // contain their version nodes (a writer on no chain is a chain by itself), and the chain and
  // position of each writer. strands_ contains, for each target, the chains that its nodes are on.
  std::vector<std::size_t> chain_start_, on_chains_, chain_, place_on_chains_;
  struct Strand {
    std::size_t target;
    std::vector<OnChain> nodes;
  };
  std::vector<Strand> strands_;
  std::vector<Covered> covered_;  // nodes of the current writer
  std::vector<std::int32_t> cover_rows_;
  // For the current read: the writers that it has certainly not missed, and a bit for each writer
  // that precedes one of these.
  std::vector<Seen> seen_;
  std::vector<std::uint64_t> overwritten_;
  std::vector<Pruner::ReturnPath> return_paths_;
};

}  // namespace isolang
