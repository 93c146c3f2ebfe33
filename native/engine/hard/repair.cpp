// Each round holds all transactions that are not released, searches with these edges, and releases
// the transactions at the ends of the held stretches in the refutation. If the search takes too long,
// too few transactions are released for a short one, so the round releases those in all conflicts.
// The rounds end with a model, with a refutation that needs no held transaction, when too many
// searches have taken too long, or when too many transactions are released.
#include "engine/hard/repair.hpp"

#include <limits>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {
constexpr std::int64_t kNoConflictLimit = std::numeric_limits<std::int64_t>::max();
// Up to this many conflicts, the transactions in all conflicts are released. If there are more
// conflicts, only the transactions in the core are released.
constexpr std::int64_t kEarlyConflicts = 40;
constexpr double kMaxReleased = 0.75;  // the share of the transactions that may be released

}  // namespace

Repair repair(std::optional<Search>& search, const Pruner& pruner, Budget& budget,
              std::uint64_t seed, std::size_t max_bytes, const std::vector<std::int32_t>& rank,
              const RepairEffort& effort) {
  Repair done;
  const std::int32_t n = pruner.graph.problem.n;
  std::vector<std::uint8_t> held(idx(n), 1);
  const auto release = [&](const std::vector<std::int32_t>& transactions) {
    const std::int64_t before = done.released;
    for (const std::int32_t t : transactions)
      done.released += std::exchange(held[t], std::uint8_t{0});
    return done.released > before;
  };
  std::int32_t long_rounds = effort.long_rounds;
  search.emplace(pruner, budget, seed, max_bytes, Search::Start{rank, {}});
  done.result = search->run({0, kNoConflictLimit, 0, 0});  // finds the contradictions
  release(search->wanted_transactions());
  while (done.result != Cdcl::Result::satisfiable &&
         static_cast<double>(done.released) < kMaxReleased * n) {
    ++done.rounds;
    search.emplace(pruner, budget, seed, max_bytes, Search::Start{rank, held});
    done.result = search->run({effort.conflicts, kNoConflictLimit});
    const bool gave_up = done.result == Cdcl::Result::gave_up;
    if (gave_up && (search->full() || long_rounds-- == 0)) break;
    if (done.result == Cdcl::Result::satisfiable) break;
    // mutant: held-refutation
    if (!gave_up && search->held_in_the_way(false).empty()) return done;
    if (!release(search->held_in_the_way(gave_up || search->sat().conflicts <= kEarlyConflicts)))
      break;
  }
  if (done.result == Cdcl::Result::unsatisfiable) done.result = Cdcl::Result::gave_up;
  return done;
}

}  // namespace isolang
