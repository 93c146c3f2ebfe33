// Pruning of reads with several candidate sources: a candidate is struck out if its wr edge closes a cycle, or if
// another writer that the reader cannot have missed is known to follow it.
#include <bit>
#include <functional>
#include <span>

#include "engine/key_pruner.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// The latest writers that certainly precede the reader in the sense of rw (it cannot have missed them): an earlier one
// that precedes one of these tells nothing more. `overwritten_` gets what precedes them.
void KeyPruner::find_seen(std::int32_t r) {
  seen_.clear();
  overwritten_.assign((writers_.size() + 63) / 64, 0);
  const auto see = [&](const Seen& seen) {
    seen_.push_back(seen);
    const auto known = pairs_.precede(key_);
    if (known.empty()) mark_forced(seen.writer);
    const std::span<const std::uint64_t> row =
        known.empty() ? forced_ : known.subspan(pairs_.place(seen.writer) * overwritten_.size(), overwritten_.size());
    std::ranges::transform(overwritten_, row, overwritten_.begin(), std::bit_or());
  };
  pruner_.direct_ways_back(r, [&](std::int32_t other) { return pruner_.source[idx(other)]; }, ways_back_);
  for (const auto& [b, rw, back] : ways_back_) see({b, rw, back});
  reader_.begin(targets_.size());
  for (const Row& row : rw_rows_)
    reader_.add(row.target, graph_.node(idx(row.check), graph_.problem.read_txn[idx(r)], row.state));
  const std::size_t first = first_before(reader_.top());
  for (std::size_t word = first / 64; word < overwritten_.size(); ++word) {
    std::uint64_t left = writers_from(first, word);
    for (; (left &= ~overwritten_[word]) != 0; left &= left - 1) {  // the latest first
      const std::size_t at = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (!reader_.reached([&](std::size_t t) { return targets_[t].marks[at]; })) continue;
      const std::int32_t b = writers_[at];
      if (pruner_.initial(b) || b == pruner_.own_writer[idx(r)]) continue;
      std::optional<Edge> closing;
      graph_.rw_closings(r, -1, b, [&](const Edge& e) {
        if (!closing && clocks_.reaches(e.to, e.from)) closing = e;
      });
      if (closing) see({b, *closing, std::nullopt});
    }
  }
}

// The seen writer that follows this candidate, or none.
const KeyPruner::Seen* KeyPruner::overwritten_by(std::int32_t a) {
  const bool first = pruner_.initial(a);
  if (seen_.empty() || (!first && (overwritten_[pairs_.place(a) / 64] & pairs_.bit(a)) == 0)) return nullptr;
  for (const Seen& seen : seen_) {
    if (seen.writer == a) continue;
    if (first) return &seen;
    if (impossible_order(seen.writer, a)) return &seen;
  }
  return nullptr;
}

bool KeyPruner::prune_read(std::int32_t r) {
  const Problem& p = graph_.problem;
  find_seen(r);
  std::int32_t left = 0, only = -1;
  for (const std::size_t i : p.candidates(r)) {
    if (!pruner_.alive[i]) continue;
    budget_->poll();
    const std::int32_t a = p.candidate[i];
    const Seen* const seen = overwritten_by(a);
    bool closes = false;
    if (seen == nullptr)
      graph_.wr_edges(r, a, [&](const Edge& e) {
        closes = closes || (clocks_.reaches(e.to, e.from) && graph_.judges(e.from));
      });
    if (!closes && seen == nullptr) {
      ++left;
      only = a;
      continue;
    }
    pruner_.alive[i] = 0;
    ++findings_->struck_sources;
    ++findings_->gained;
    pruner_.struck_in[i] = static_cast<std::uint8_t>(pruner_.passes);
    pruner_.struck_by[i] = closes ? Pruner::kClosesCycle : seen->writer;
    if (closes || !seen->back) continue;
    pruner_.struck_by[i] = Pruner::kReason - static_cast<std::int32_t>(pruner_.reasons.size());
    Edge closing = seen->closing;
    closing.a = a;
    pruner_.reasons.push_back(pruner_.because(closing, seen->back));
  }
  if (!pruner_.included_reader(r)) return true;  // without a source its transaction is out: a clause of the search
  if (left == 0) {
    findings_->orphan = r;
    return false;
  }
  if (left == 1) {
    pruner_.resolve(r, only, findings_->edges);
    ++findings_->gained;
  }
  return true;
}

}  // namespace isolang
