// Pruning of reads with several candidate sources: a candidate is struck out if its wr edge closes a cycle, or if
// another writer that the reader cannot have missed is known to follow it.
#include <bit>
#include <functional>
#include <span>

#include "engine/prune.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// The latest writers that certainly precede the reader in the sense of rw (it cannot have missed them): an earlier one
// that precedes one of these tells nothing more. `overwritten_` gets what precedes them.
void Pruner::find_seen(std::int32_t r) {
  const Problem& p = graph.problem;
  seen_.clear();
  overwritten_.assign((writers_.size() + 63) / 64, 0);
  const auto see = [&](const Seen& seen) {
    seen_.push_back(seen);
    const auto known = precede_[idx(p.read_key[idx(r)])];
    if (known.empty()) mark_forced(seen.writer);
    const std::span<const std::uint64_t> row =
        known.empty() ? forced_ : known.subspan(place(seen.writer) * overwritten_.size(), overwritten_.size());
    std::ranges::transform(overwritten_, row, overwritten_.begin(), std::bit_or());
  };
  direct_ways_back(r, [&](std::int32_t other) { return source[idx(other)]; }, ways_back_);
  for (const auto& [b, rw, back] : ways_back_) see({b, rw, back});
  const std::size_t columns = clocks.columns();
  reader_rows_.assign(rw_rows_.size() * columns, -1);
  for (std::size_t k = 0; k < rw_rows_.size(); ++k)
    clocks.raise(std::span(reader_rows_).subspan(k * columns, columns),
                 graph.node(idx(rw_rows_[k].check), p.read_txn[idx(r)], rw_rows_[k].state));
  for (std::size_t word = 0; word < overwritten_.size(); ++word) {
    std::uint64_t left = 0;  // those that precede the reader
    for (std::size_t k = 0; k < rw_rows_.size(); ++k)
      left |= reaching(reader_rows_.data() + k * columns, targets_[rw_rows_[k].target].marks, word);
    for (; (left &= ~overwritten_[word]) != 0; left &= left - 1) {  // the latest first
      const std::int32_t b = writers_[word * 64 + static_cast<std::size_t>(std::countr_zero(left))];
      if (initial(b) || b == own_writer[idx(r)]) continue;
      std::optional<Edge> closing;
      graph.rw_closings(r, -1, b, [&](const Edge& e) {
        if (!closing && clocks.reaches(e.to, e.from)) closing = e;
      });
      if (closing) see({b, *closing, std::nullopt});
    }
  }
}

// The seen writer that follows this candidate, or none.
const Pruner::Seen* Pruner::overwritten_by(std::int32_t a) {
  if (seen_.empty() || (!initial(a) && (overwritten_[place(a) / 64] & bit(a)) == 0)) return nullptr;
  for (const Seen& seen : seen_) {
    if (seen.writer == a) continue;
    if (initial(a)) return &seen;
    if (impossible_order(seen.writer, a)) return &seen;
  }
  return nullptr;
}

bool Pruner::prune_read(std::int32_t r) {
  const Problem& p = graph.problem;
  find_seen(r);
  std::int32_t left = 0, only = -1;
  for (const std::size_t i : p.candidates(r)) {
    if (!alive[i]) continue;
    budget_.poll();
    const std::int32_t a = p.candidate[i];
    const Seen* const seen = overwritten_by(a);
    bool closes = false;
    if (seen == nullptr)
      graph.wr_edges(r, a,
                     [&](const Edge& e) { closes = closes || (clocks.reaches(e.to, e.from) && graph.judges(e.from)); });
    if (!closes && seen == nullptr) {
      ++left;
      only = a;
      continue;
    }
    alive[i] = 0;
    ++struck_sources;
    ++gained_;
    struck_in[i] = static_cast<std::uint8_t>(passes);
    struck_by[i] = closes ? kClosesCycle : seen->writer;
    if (closes || !seen->back) continue;
    struck_by[i] = kReason - static_cast<std::int32_t>(reasons.size());
    Edge closing = seen->closing;
    closing.a = a;
    reasons.push_back(because(closing, seen->back));
  }
  if (!included_reader(r)) return true;  // without a source left its transaction is out: a clause of the search
  if (left == 0) {
    orphan = r;
    return false;
  }
  if (left == 1) {
    resolve(r, only);
    ++gained_;
  }
  return true;
}

void Pruner::resolve(std::int32_t r, std::int32_t writer) {
  source[idx(r)] = writer;
  resolved_in[idx(r)] = static_cast<std::uint8_t>(passes);
  if (direct_) resolved_txn_[idx(graph.problem.read_txn[idx(r)])] = 1;
  unsettle(writer);
  graph.wr_edges(r, writer, [&](const Edge& e) { graph.edges.push_back(e); });
  const std::int32_t txn = graph.problem.writer_txn[idx(writer)];
  if (inclusion[idx(txn)] == static_cast<std::uint8_t>(Inclusion::optional)) {
    inclusion[idx(txn)] = static_cast<std::uint8_t>(Inclusion::in);
    included_by[idx(txn)] = r;
    gained_ = std::max<std::int64_t>(gained_, 1);
    every_read_ = true;  // its own reads are to be judged now
  }
}

}  // namespace isolang
