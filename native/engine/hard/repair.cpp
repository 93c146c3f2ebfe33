// Each round holds all transactions that are not released, searches with these edges, and releases
// the transactions at the ends of the held stretches in the refutation. The rounds end with a
// model, when a search gives up, or when too many transactions are released.
#include "engine/hard/repair.hpp"

#include <limits>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {
constexpr std::int64_t kNoConflictLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kConflictsPerRound = 3000;  // number of conflicts
// Up to this many conflicts, the transactions in all conflicts are released. If there are more
// conflicts, only the transactions in the core are released.
constexpr std::int64_t kEarlyConflicts = 40;
constexpr double kMaxReleased = 0.75;  // the share of the transactions that may be released

}  // namespace

Repair repair(std::optional<Search>& search, const Pruner& pruner, Budget& budget,
              std::uint64_t seed, std::size_t max_bytes, const std::vector<std::int32_t>& rank) {
  Repair result;
  const std::int32_t n = pruner.graph.problem.n;
  std::vector<std::uint8_t> held(idx(n), 1);
  const auto release = [&](const std::vector<std::int32_t>& transactions) {
    const std::int64_t before = result.released;
    for (const std::int32_t t : transactions)
      result.released += std::exchange(held[t], std::uint8_t{0});
    return result.released > before;
  };
  search.emplace(pruner, budget, seed, max_bytes, Search::Start{rank, {}});
  Cdcl::Result found = search->run({0, kNoConflictLimit, 0, 0});  // finds the contradictions
  release(search->wanted_transactions());
  while (found != Cdcl::Result::satisfiable && static_cast<double>(result.released) < kMaxReleased * n) {
    ++result.rounds;
    search.emplace(pruner, budget, seed, max_bytes, Search::Start{rank, held});
    found = search->run({kConflictsPerRound, kNoConflictLimit});
    if (found == Cdcl::Result::gave_up) break;
    if (found == Cdcl::Result::unsatisfiable &&
        !release(search->held_in_the_way(search->sat().conflicts <= kEarlyConflicts)))
      break;
  }
  result.succeeded = found == Cdcl::Result::satisfiable;
  return result;
}

}  // namespace isolang
