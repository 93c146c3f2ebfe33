// What the searches of the hard region have in common: what they know, and how they take turns.
//
// All of them need an event graph that is one total order of reads and writes (total_order.hpp). To
// add one: implement HardSearch, and give it a line in hard_searches().
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/budget.hpp"
#include "engine/hard/chains.hpp"
#include "engine/hard/portfolio.hpp"
#include "engine/hard/total_order.hpp"

namespace isolang {

// One history of the hard region.
struct HardRegion {
  // Returns nothing where the event graph does not give a total order of reads and writes.
  static std::unique_ptr<HardRegion> of(const Pruner& pruner);

  // What certainly comes before what, added to `total_order`; and `chains`, for searches that need
  // them.
  void find_precedences(Budget& budget);

  TotalOrder total_order;
  double load;
  std::vector<Node>
      linearization{};  // to start from, near to a model; none if there is nothing to guess it from
  std::optional<Chains> chains{};  // of what must happen in order; none if they are too large
  bool impossible = false;         // the necessary precedences have a cycle: no model exists
};

class HardSearch {
 public:
  virtual ~HardSearch() = default;

  // True: there is an answer, see `outcome`. A turn is of `share` times the usual work.
  virtual bool take_turn(double share) = 0;
  // A short turn before all others, for what shows at once.
  virtual bool begin() { return false; }
  // Goes on until it has an answer or gives up.
  virtual bool run_out() = 0;
  // Whether it could still prove that no model exists.
  virtual bool may_refute() const { return false; }

  // What CDCL may start from.
  struct Offer {
    bool soon = false;              // there is none yet, but there will be in a turn or two
    std::span<const Node> order{};  // of all nodes of transactions
    std::int64_t wrong = std::numeric_limits<std::int64_t>::max();  // how much contradicts it
  };
  virtual Offer offer() const { return {}; }

  virtual void note(const Note& note) const = 0;

  Outcome outcome;
};

struct HardSearchKind {
  const char* name;
  const char* phase;  // what it does, for progress and timeouts
  std::unique_ptr<HardSearch> (*make)(const HardRegion& region, std::uint64_t seed,
                                      std::size_t max_bytes, Budget& budget);
};

// In the order of their turns.
std::span<const HardSearchKind> hard_searches();

}  // namespace isolang
