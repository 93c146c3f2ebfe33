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
constexpr std::size_t kOutliers = 200;    // of so many reads one may contradict it over a larger distance

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
  // A check that allows cycles of its own leans on others that forbid them; that is not proved of edges that no
  // relation has. Real time makes chains by itself.
  if (std::ranges::all_of(automata_, [](const Automaton& m) {
        return m.judges && !m.forbids_ways_back() && m.so_repeatable && m.of(Relation::rt).empty();
      }))
    guess_line();
}

namespace {

// How far the line is from an order in which each read sees what it saw.
class Line {
 public:
  Line(const Problem& problem, const std::vector<std::int32_t>& line) : p_(problem), place_(idx(problem.n + 1), -1) {
    for (std::size_t i = 0; i < line.size(); ++i) place_[idx(line[i])] = static_cast<std::int32_t>(i);
    const auto writers = static_cast<std::int32_t>(p_.writer_txn.size());
    for (std::int32_t key = 0; key < p_.keys; ++key) {
      const auto first = static_cast<std::ptrdiff_t>(places_.size());
      for (std::int32_t w = p_.key_start[idx(key)]; w < p_.key_start[idx(key) + 1]; ++w)
        if (const std::int32_t at = place_[idx(p_.writer_txn[idx(w)])]; at >= 0) places_.push_back(at);
      std::sort(places_.begin() + first, places_.end());
      start_.push_back(static_cast<std::size_t>(first));
    }
    start_.push_back(places_.size());
    place_.back() = -2 * (writers + static_cast<std::int32_t>(line.size()));  // T0: far before all
  }

  std::int32_t place(std::int32_t txn) const { return place_[idx(txn)]; }

  // Two transactions have to change places over so many others, for this source at least.
  std::int32_t distance(std::int32_t read, std::int32_t source) const {
    const std::int32_t reader = place(p_.read_txn[idx(read)]), writer = place(p_.writer_txn[idx(source)]);
    if (writer > reader) return writer - reader;
    // A writer between the two comes before the one or after the other: the one in the middle has the longest way.
    const std::size_t key = idx(p_.read_key[idx(read)]);
    const auto first = places_.begin() + static_cast<std::ptrdiff_t>(start_[key]);
    const auto last = places_.begin() + static_cast<std::ptrdiff_t>(start_[key + 1]);
    const auto middle = std::lower_bound(first, last, writer + (reader - writer) / 2);
    std::int32_t most = 0;
    if (middle != last && *middle < reader) most = reader - *middle;
    if (middle != first && middle[-1] > writer) most = std::max(most, middle[-1] - writer);
    return most;
  }

  std::int32_t distance(std::int32_t read) const {
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    for (auto i = p_.candidate_start[idx(read)]; i < p_.candidate_start[idx(read) + 1] && least > 0; ++i)
      least = std::min(least, distance(read, p_.candidate[static_cast<std::size_t>(i)]));
    return least;
  }

 private:
  const Problem& p_;
  std::vector<std::int32_t> place_;   // per transaction, -1: not on the line
  std::vector<std::int32_t> places_;  // of the writers of each key, ascending
  std::vector<std::size_t> start_;
};

}  // namespace

void Hints::guess_line() {
  const Problem& p = problem_;
  if (p.sessions <= kFewerChains * kLeastWindow) return;
  std::vector<std::int32_t> line;
  for (std::int32_t t = 0; t < p.n; ++t)
    if (p.inclusion[idx(t)] == static_cast<std::uint8_t>(Inclusion::in) && p.unfinished[idx(t)] == 0) line.push_back(t);
  if (p.has_time) std::ranges::stable_sort(line, {}, [&](std::int32_t t) { return p.end[idx(t)]; });
  const Line fit(p, line);
  std::vector<std::pair<std::int32_t, std::int32_t>> distances;  // and the read
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (fit.place(p.read_txn[idx(r)]) >= 0) distances.emplace_back(fit.distance(r), r);
  if (distances.empty()) return;
  const auto usual = distances.end() - 1 - static_cast<std::ptrdiff_t>(distances.size() / kOutliers);
  std::ranges::nth_element(distances, usual);
  std::int64_t window = kLeastWindow;
  while (window < kMargin * usual->first) window *= 2;
  if (window > kMostWindow || window * kFewerChains >= p.sessions) return;
  given_.window = static_cast<std::int32_t>(window);
  given_.line = std::move(line);
  for (const auto& [distance, read] : distances)
    if (distance >= window) isolate(p.read_txn[idx(read)]);
}

// The two ends of each stretch of session order become sessions of their own: the read at fault is often one of them,
// and the next refutation would otherwise only come in by its other side. On the line a transaction alone precedes
// none.
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
