// Each round holds all transactions that are not released, searches with these edges, and releases
// the transactions at the ends of the held stretches in the refutation. A search that gives up may
// do so because too few transactions can move, so those in all of its conflicts are released. The
// rounds end with a model, with a refutation that needs no held transaction, or when they have taken
// too many conflicts or have released too many transactions.
#include "engine/search/repair.hpp"

#include <limits>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {
constexpr std::int64_t kNoConflictLimit = std::numeric_limits<std::int64_t>::max();
// Up to this many conflicts, the transactions in all conflicts are released. If there are more
// conflicts, only the transactions in the core are released, unless there are fewer than kFew.
constexpr std::int64_t kEarlyConflicts = 40, kFew = 4;
constexpr double kMaxReleased = 0.75;  // the share of the transactions that may be released

}  // namespace

Repair repair(std::optional<Search>& search, const Pruner& pruner, Budget& budget,
              std::uint64_t seed, std::size_t max_bytes, const std::vector<std::int32_t>& rank,
              const RepairEffort& effort) {
  Repair done;
  const std::int32_t n = pruner.graph.problem.n;
  std::vector<std::uint8_t> held(idx(n), 1);
  const auto release = [&](const std::vector<std::int32_t>& transactions) {
    for (const std::int32_t t : transactions)
      done.released += std::exchange(held[t], std::uint8_t{0});
  };
  std::int64_t conflicts = 0;  // in all rounds so far
  search.emplace(pruner, budget, seed, max_bytes, Search::Start{rank, {}});
  done.result = search->run({0, kNoConflictLimit, 0, 0});  // finds the contradictions
  release(search->wanted_transactions());
  while (done.result != Cdcl::Result::satisfiable &&
         static_cast<double>(done.released) < kMaxReleased * n) {
    ++done.rounds;
    search.emplace(pruner, budget, seed, max_bytes, Search::Start{rank, held});
    done.result = search->run({effort.round, kNoConflictLimit});
    conflicts += search->sat().conflicts;
    if (done.result == Cdcl::Result::satisfiable) break;
    const bool gave_up = done.result == Cdcl::Result::gave_up;
    // mutant: held-refutation
    if (!gave_up && search->held_in_the_way(false).empty()) return done;
    if (gave_up && (conflicts >= effort.total || search->full())) break;
    const std::int64_t before = done.released;
    if (!gave_up) release(search->held_in_the_way(false));
    if (gave_up || search->sat().conflicts <= kEarlyConflicts || done.released < before + kFew)
      release(search->held_in_the_way(true));
    if (done.released == before) break;
  }
  // The last refutation needs transactions to be held.
  if (done.result == Cdcl::Result::unsatisfiable) done.result = Cdcl::Result::gave_up;
  return done;
}

}  // namespace isolang
