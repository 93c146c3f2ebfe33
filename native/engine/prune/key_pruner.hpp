// Pruning of one key: what the clocks tell about the orders of its writers and the sources of its
// reads.
//
// A pass only reads what all keys share, and each key has its own part of what it changes (its
// writers' pairs, its reads' candidates and sources). What it adds to that goes into Findings, so
// that several threads, each with a KeyPruner, come to what one would. Where keys do depend on each
// other (Pruner::one_by_one_), one has them all.
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
  // A contradiction, see Pruner.
  std::optional<Impossible> closed;
  std::int32_t read_without_candidates = -1;
};

class KeyPruner {
 public:
  explicit KeyPruner(Pruner& pruner);

  // False: contradiction. `every_read`: also those of which nothing has changed.
  bool prune(std::int32_t key, bool every_read, Budget& budget, Findings& findings);
  // Of the keys to come, the next one first, what prune() will look up.
  void fetch(std::span<const std::int32_t> keys) const;
  // Each pair of the key's writers, see Pruner::Pairs.
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
  // For each target of a ww or rw step the marks of the key's writers; check < 0: their version
  // nodes.
  struct Target {
    std::int32_t check, state;
    bool at_write;  // of ww that leads to the write
    std::vector<Clocks::Mark> marks;
  };
  struct Row {
    std::int32_t check, state;
    std::size_t target;
    Pairs pairs;  // those that it is a row of
  };
  // A node with the sources of the edges just added to it; if they are more than a few, they have
  // raised its row of cover_rows_, and `sources` is kMaxSources + 1.
  struct Covered {
    static constexpr std::size_t kMaxSources = 2;
    Node node;
    std::size_t sources = 0;
    std::array<Node, kMaxSources> source{};
  };

  std::span<const std::int32_t> open_reads(std::int32_t key) const;  // some, like these:
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
  // The first of writers_ of which some node may reach one of that rank: what has a higher one does
  // not.
  std::size_t first_before(std::int32_t rank) const;
  // Of a word of a row of bits those of writers_[first] and later places, `first` being in the word
  // or before it.
  std::uint64_t writers_from(std::size_t first, std::size_t word) const;
  void mark_forced(std::int32_t after);
  // Of writers_[self]. kWords: of a row of bits; 0 for as many as it takes.
  template <std::size_t kWords>
  void mark_latest_forced(std::size_t self);
  bool owes_it_to_itself(std::int32_t after, std::size_t at) const;
  template <std::size_t kWords>
  void order_behind(std::size_t self);
  void order_behind(std::vector<std::size_t>& latest, std::int32_t after, bool initial_too);
  void add_order(std::int32_t before, std::int32_t after);
  void load_settled();
  void note_unsettled();
  bool keep_unless_implied(const Edge& edge);
  std::optional<Edge> closing_order(std::int32_t a,
                                    std::int32_t b) const;  // why "a before b" is impossible
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
  Budget* budget_ = nullptr;  // of the current call, like these:
  Findings* findings_ = nullptr;
  std::int32_t key_ = -1;
  std::span<const std::int32_t> writers_;  // the latest first

  std::vector<Target> targets_;
  std::vector<Row> ww_rows_, rw_rows_;
  // The steps of every automaton compose: if the pairs (a, b) and (b, c) are settled, (a, c) is,
  // too. SOUND BECAUSE a -ww-> b -ww-> c implies a -ww-> c, and r -rw-> b -ww-> c implies r -rw-> c
  // for each reader r of a; if r is b itself, b -ww-> c does.
  bool orders_compose_ = true;

  Starts starts_, reader_;  // of edges "the current writer before another"; the current read
  std::vector<std::int32_t>
      lowest_;  // for each of writers_ the lowest rank of it and those before it
  // A bit for each of writers_: see mark_forced, mark_latest_forced; what precedes the writer at
  // hand.
  std::vector<std::uint64_t> forced_, hidden_, behind_;
  std::vector<std::uint64_t>
      settled_;  // as WriterPairs::precede: pairs whose edges are all known or implied
  // Of a key without rows. Its writers, by their places, along the chains of the clocks that their
  // version nodes are on (one that is on none is a chain by itself), and the place of each there; and for
  // each target the chains that its nodes are on.
  std::vector<std::size_t> chain_start_, on_chains_, chain_, place_on_chains_;
  struct Strand {
    std::size_t target;
    std::vector<OnChain> nodes;
  };
  std::vector<Strand> strands_;
  std::vector<Covered> covered_;  // nodes of the current writer
  std::vector<std::int32_t> cover_rows_;
  // Of the current read: what it has seen; a bit for each writer before that.
  std::vector<Seen> seen_;
  std::vector<std::uint64_t> overwritten_;
  std::vector<Pruner::ReturnPath> return_paths_;
};

}  // namespace isolang
