// What the searches for the hard region have in common: their input, and how they take turns.
//
// All of them need an event graph that is one total order of reads and writes (total_order.hpp). To
// add a search, implement HardSearch and add a line to hard_searches().
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
  // Returns null if the event graph does not give a total order of reads and writes.
  static std::unique_ptr<HardRegion> of(const Pruner& pruner);

  // Finds the necessary precedences and adds them to `total_order`. Also builds `chains`, for
  // searches that need them.
  void find_precedences(Budget& budget);

  TotalOrder total_order;
  double load;
  // An order close to a model, to start from; empty if nothing suggests an order.
  std::vector<Node> linearization{};
  std::optional<Chains> chains{};  // the events as chains; empty if there are too many
  bool impossible = false;         // the necessary precedences have a cycle, so no model exists
};

class HardSearch {
 public:
  virtual ~HardSearch() = default;

  // Takes a turn of `share` times the usual work. Returns true if there is an answer, see
  // `outcome`.
  virtual bool take_turn(double share) = 0;
  // Takes a short turn before all other turns, to find easy answers.
  virtual bool begin() { return false; }
  // Runs until it has an answer or gives up.
  virtual bool run_out() = 0;
  // Returns true if the search could still prove that no model exists.
  virtual bool may_refute() const { return false; }

  // A total order that CDCL may start from.
  struct Offer {
    bool soon = false;              // no order exists yet, but one will in a turn or two
    std::span<const Node> order{};  // of all transaction nodes
    // The number of reads and locks that contradict the order.
    std::int64_t wrong = std::numeric_limits<std::int64_t>::max();
  };
  virtual Offer offer() const { return {}; }

  virtual void note(const Note& note) const = 0;

  Outcome outcome;
};

struct HardSearchKind {
  const char* name;
  const char* phase;  // what the search is doing, for progress reports and timeouts
  std::unique_ptr<HardSearch> (*make)(const HardRegion& region, std::uint64_t seed,
                                      std::size_t max_bytes, Budget& budget);
};

// The searches, in the order of their turns.
std::span<const HardSearchKind> hard_searches();

}  // namespace isolang
