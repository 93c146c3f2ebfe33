#include "engine/order_hints.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

constexpr std::int32_t kLeastWindow = 64;
constexpr std::int32_t kMostWindow = 256;
constexpr std::int32_t kFewerChains = 4;  // than sessions, by this factor, or there is no gain
constexpr std::int64_t kMargin = 4;       // times the distance over which reads contradict the line
constexpr std::int64_t kOutliers = 1000;  // of so many reads one may contradict it over a larger distance
constexpr std::int64_t kKnownReads = 20;  // one read for so many transactions must tell

}  // namespace

bool add_sessions(std::vector<Automaton>& automata) {
  bool stronger = false;
  for (Automaton& m : automata) {
    auto& so = m.steps[static_cast<std::size_t>(Relation::so)];
    if (!so.empty()) continue;
    so = m.of(m.of(Relation::init).empty() ? Relation::wr : Relation::init);
    if (so.empty()) continue;
    m.so_repeatable = m.repeats(Relation::so);
    m.so_is_hint = stronger = true;
  }
  return stronger;
}

Hints::Hints(const Problem& problem, const std::vector<Automaton>& automata)
    : problem_(problem), automata_(automata), of_sessions_(add_sessions(automata_)) {
  given_.breaks.assign(idx(problem.n), 0);
  // A check that allows cycles of its own leans on others that forbid them; that is not proved of edges that no relation
  // has. Real time makes chains by itself.
  if (std::ranges::all_of(automata_, [](const Automaton& m) {
        return m.judges && !m.forbids_ways_back() && m.so_repeatable && m.of(Relation::rt).empty();
      }))
    guess_line();
}

void Hints::guess_line() {
  const Problem& p = problem_;
  if (p.sessions <= kFewerChains * kLeastWindow) return;
  std::vector<std::int32_t> line;
  for (std::int32_t t = 0; t < p.n; ++t)
    if (p.inclusion[idx(t)] == static_cast<std::uint8_t>(Inclusion::in) && p.unfinished[idx(t)] == 0) line.push_back(t);
  if (p.has_time) std::ranges::stable_sort(line, {}, [&](std::int32_t t) { return p.end[idx(t)]; });
  std::vector<std::int32_t> place(idx(p.n + 1), -1);
  for (std::size_t i = 0; i < line.size(); ++i) place[idx(line[i])] = static_cast<std::int32_t>(i);
  // By how many places a read stands before the write that it certainly saw: that tells how well the line fits.
  struct Lag {
    std::int32_t places, writer, reader;
  };
  std::vector<Lag> lags;
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const auto first = static_cast<std::size_t>(p.candidate_start[idx(r)]);
    if (static_cast<std::size_t>(p.candidate_start[idx(r) + 1]) != first + 1) continue;
    const std::int32_t writer = p.writer_txn[idx(p.candidate[first])], reader = p.read_txn[idx(r)];
    if (place[idx(writer)] >= 0 && place[idx(reader)] >= 0)
      lags.push_back({std::max(0, place[idx(writer)] - place[idx(reader)]), writer, reader});
  }
  const auto known = static_cast<std::int64_t>(lags.size());
  if (known * kKnownReads < static_cast<std::int64_t>(line.size())) return;
  const auto usual = lags.begin() + (known - 1 - known / kOutliers);
  std::ranges::nth_element(lags, usual, {}, &Lag::places);
  std::int64_t window = kLeastWindow;
  while (window < kMargin * usual->places) window *= 2;
  if (window > kMostWindow || window * kFewerChains >= p.sessions) return;
  given_.window = static_cast<std::int32_t>(window);
  given_.line = std::move(line);
  for (const Lag& lag : lags)
    if (lag.places >= window) {
      isolate(lag.writer);
      isolate(lag.reader);
    }
}

// The two ends of each stretch of session order become sessions of their own: the read at fault is often one of them, and
// the next refutation would otherwise only come in by its other side. On the line a transaction alone precedes none.
void Hints::isolate(std::int32_t txn) {
  given_.breaks[idx(txn)] = 1;
  if (!of_sessions_) return;
  for (std::int32_t next = txn + 1; next < problem_.n; ++next)
    if (problem_.session[idx(next)] == problem_.session[idx(txn)]) {
      given_.breaks[idx(next)] = 1;
      break;
    }
}

bool Hints::blame(const std::vector<ProofStep>& refutation) {
  bool leans = false;
  for (const ProofStep& step : refutation) {
    if (step.kind != ProofStep::Kind::cycle) continue;
    for (const ProofEdge& e : step.edges) {
      if (e.relation != Relation::so || e.from == problem_.n) continue;
      const bool demanded = !automata_[idx(step.check)].so_is_hint &&
                            problem_.session[idx(e.from)] == problem_.session[idx(e.to)] && e.from < e.to;
      if (demanded) continue;
      leans = true;
      isolate(e.from);
      isolate(e.to);
    }
  }
  return leans;
}

}  // namespace isolang
