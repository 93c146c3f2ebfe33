// Pruning of reads with several candidate sources: a candidate is struck out if its wr edge closes a cycle, or if another
// writer that the reader cannot have missed is known to follow it.
#include "engine/prune.hpp"

#include <span>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// The latest writers that certainly precede the reader in the sense of rw (it cannot have missed them): an earlier one
// that precedes one of these tells nothing more. `combined_` gets what precedes them.
void Pruner::find_seen(std::int32_t r) {
  const Problem& p = graph.problem;
  seen_.clear();
  combined_.assign(targets_.size() * clocks.columns(), -1);
  direct_ways_back(r, [&](std::int32_t other) { return source[idx(other)]; }, ways_back_);
  for (const auto& [b, rw, back] : ways_back_) {
    seen_.push_back({b, rw, back});
    raise_by(b);
  }
  const std::size_t columns = clocks.columns();
  reader_rows_.assign(rw_rows_.size() * columns, -1);
  for (std::size_t k = 0; k < rw_rows_.size(); ++k)
    clocks.raise(std::span(reader_rows_).subspan(k * columns, columns),
                 graph.node(idx(rw_rows_[k].check), p.read_txn[idx(r)], rw_rows_[k].state));
  const auto precedes = [&](std::size_t i) {
    for (std::size_t k = 0; k < rw_rows_.size(); ++k) {
      const Clocks::Mark mark = targets_[rw_rows_[k].target].marks[i];
      if (reader_rows_[k * columns + idx(mark.column)] >= mark.position) return true;
    }
    return false;
  };
  const auto covered = [&](std::int32_t b) {
    for (const Row& row : ww_rows_) {
      const Clocks::Mark mark = clocks.mark(node_of(row.check, row.state, b));
      if (combined_[row.target * clocks.columns() + idx(mark.column)] < mark.position) return false;
    }
    return !ww_rows_.empty();
  };
  for (std::size_t i = 0; i < writers_.size(); ++i) {  // the latest first
    const std::int32_t b = writers_[i];
    if (initial(b) || b == own_writer[idx(r)] || !precedes(i) || covered(b)) continue;
    std::optional<Edge> closing;
    graph.rw_closings(r, -1, b, [&](const Edge& e) {
      if (!closing && clocks.reaches(e.to, e.from)) closing = e;
    });
    if (!closing) continue;
    seen_.push_back({b, *closing, std::nullopt});
    raise_by(b);
  }
}

// The seen writer that follows this candidate, or none.
const Pruner::Seen* Pruner::overwritten_by(std::int32_t a) {
  const std::int32_t first = graph.problem.key_start[idx(key_of_[idx(a)])];
  const auto possible = [&] {
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      const Clocks::Mark mark = targets_[t].marks[idx(local_[idx(a - first)])];
      if (combined_[t * clocks.columns() + idx(mark.column)] >= mark.position) return true;
    }
    return false;
  };
  if (seen_.empty() || (!initial(a) && !possible())) return nullptr;
  for (const Seen& seen : seen_) {
    if (seen.writer == a) continue;
    if (initial(a)) return &seen;
    if (const auto reverse = closing_order(seen.writer, a)) {
      orders.push_back({a, seen.writer, because(*reverse)});
      return &seen;
    }
  }
  return nullptr;
}

bool Pruner::prune_read(std::int32_t r) {
  const Problem& p = graph.problem;
  find_seen(r);
  std::int32_t left = 0, only = -1;
  for (auto i = static_cast<std::size_t>(p.candidate_start[idx(r)]);
       i < static_cast<std::size_t>(p.candidate_start[idx(r) + 1]); ++i) {
    if (!alive[i]) continue;
    budget_.poll();
    const std::int32_t a = p.candidate[i];
    std::optional<Edge> closing, back;
    graph.wr_edges(r, a, [&](const Edge& e) {
      if (!closing && clocks.reaches(e.to, e.from) && graph.judges(e.from)) closing = e;
    });
    if (!closing) {
      if (const Seen* const seen = overwritten_by(a)) {
        closing = seen->closing;
        closing->a = a;
        back = seen->back;
      }
    }
    if (!closing) {
      ++left;
      only = a;
      continue;
    }
    alive[i] = 0;
    ++struck_sources;
    ++gained_;
    struck.push_back({r, a, static_cast<std::int32_t>(reasons.size())});
    reasons.push_back(because(*closing, back));
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
