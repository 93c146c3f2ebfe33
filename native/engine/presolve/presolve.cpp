#include "engine/presolve/presolve.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/index.hpp"

namespace isolang {
namespace {

constexpr std::int32_t kLeastWindow = 64;
constexpr std::int32_t kMostWindow = 256;
constexpr std::int32_t kFewerChains = 4;  // than sessions, by this factor, or there is no gain
constexpr std::int64_t kMargin =
    4;  // times the distance over which reads contradict the total order
constexpr std::size_t kOutliers =
    200;  // of so many reads one may contradict it over a larger distance

}  // namespace

bool add_sessions(std::vector<Automaton>& automata) {
  bool stronger = false;
  for (Automaton& m : automata) {
    auto& so = m.steps[idx(Relation::so)];
    if (!so.empty()) continue;
    so = m.of(m.of(Relation::init).empty() ? Relation::wr : Relation::init);
    if (so.empty()) continue;
    m.so_repeatable = m.repeats(Relation::so);
    m.so_is_assumed = stronger = true;
  }
  return stronger;
}

Presolve::Presolve(const Problem& problem, const std::vector<Automaton>& automata)
    : problem_(problem), automata_(automata), of_sessions_(add_sessions(automata_)) {
  given_.breaks.assign(idx(problem.n), 0);
  // A check that allows cycles of its own leans on others that forbid them; that is not proved of
  // edges that no relation has. Real time makes chains by itself.
  if (std::ranges::all_of(automata_, [](const Automaton& m) {
        return m.judges && !m.forbids_return_paths() && m.so_repeatable &&
               m.of(Relation::rt).empty();
      }))
    guess_order();
}

namespace {

// How far the total order is from an order in which each read sees what it saw.
class Fit {
 public:
  Fit(const Problem& problem, const std::vector<std::int32_t>& order)
      : p_(problem), place_(idx(problem.n + 1), -1) {
    for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<std::int32_t>(i);
    const auto writers = static_cast<std::int32_t>(p_.writer_txn.size());
    for (std::int32_t key = 0; key < p_.keys; ++key) {
      const auto first = static_cast<std::ptrdiff_t>(places_.size());
      for (std::int32_t w = p_.key_start[key]; w < p_.key_start[key + 1]; ++w)
        if (const std::int32_t at = place_[p_.writer_txn[w]]; at >= 0) places_.push_back(at);
      std::sort(places_.begin() + first, places_.end());
      start_.push_back(idx(first));
    }
    start_.push_back(places_.size());
    place_.back() = -2 * (writers + static_cast<std::int32_t>(order.size()));  // T0: far before all
  }

  std::int32_t place(std::int32_t txn) const { return place_[txn]; }

  // Two transactions have to change places over so many others, for this source at least.
  std::int32_t distance(std::int32_t read, std::int32_t source) const {
    const std::int32_t reader = place(p_.read_txn[read]), writer = place(p_.writer_txn[source]);
    if (writer > reader) return writer - reader;
    // A writer between the two comes before the one or after the other: the one in the middle has
    // the longest way.
    const std::size_t key = idx(p_.read_key[read]);
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
    for (auto i = p_.candidate_start[read]; i < p_.candidate_start[read + 1] && least > 0; ++i)
      least = std::min(least, distance(read, p_.candidate[i]));
    return least;
  }

 private:
  const Problem& p_;
  std::vector<std::int32_t> place_;   // per transaction, -1: not in the total order
  std::vector<std::int32_t> places_;  // of the writers of each key, ascending
  std::vector<std::size_t> start_;
};

}  // namespace

void Presolve::guess_order() {
  const Problem& p = problem_;
  if (p.sessions <= kFewerChains * kLeastWindow) return;
  std::vector<std::int32_t> order;
  for (std::int32_t t = 0; t < p.n; ++t)
    if (p.inclusion[t] == static_cast<std::uint8_t>(Inclusion::in) && p.unfinished[t] == 0)
      order.push_back(t);
  if (p.has_time) std::ranges::stable_sort(order, {}, [&](std::int32_t t) { return p.end[t]; });
  const Fit fit(p, order);
  std::vector<std::pair<std::int32_t, std::int32_t>> distances;  // and the read
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (fit.place(p.read_txn[r]) >= 0) distances.emplace_back(fit.distance(r), r);
  if (distances.empty()) return;
  const auto usual =
      distances.end() - 1 - static_cast<std::ptrdiff_t>(distances.size() / kOutliers);
  std::ranges::nth_element(distances, usual);
  std::int64_t window = kLeastWindow;
  while (window < kMargin * usual->first) window *= 2;
  if (window > kMostWindow || window * kFewerChains >= p.sessions) return;
  given_.window = static_cast<std::int32_t>(window);
  given_.order = std::move(order);
  for (const auto& [distance, read] : distances)
    if (distance >= window) isolate(p.read_txn[read]);
}

// The two ends of each stretch of session order become sessions of their own: the read at fault is
// often one of them, and the next refutation would otherwise only come in by its other side. On the
// total order a transaction alone precedes none.
void Presolve::isolate(std::int32_t txn) {
  // mutant: assumption-stays
  given_.breaks[txn] = 1;
  if (!of_sessions_) return;
  for (std::int32_t next = txn + 1; next < problem_.n; ++next)
    if (problem_.session[next] == problem_.session[txn]) {
      given_.breaks[next] = 1;
      break;
    }
}

bool Presolve::blame(const std::vector<ProofStep>& refutation) {
  bool leans = false;
  for (const ProofStep& step : refutation) {
    if (step.kind != ProofStep::Kind::cycle) continue;
    for (const ProofEdge& e : step.edges) {
      if (e.relation != Relation::so || e.from == problem_.n) continue;
      const bool demanded = !automata_[step.check].so_is_assumed &&
                            problem_.session[e.from] == problem_.session[e.to] && e.from < e.to;
      // mutant: leans-on-assumption
      if (demanded) continue;
      leans = true;
      isolate(e.from);
      isolate(e.to);
    }
  }
  return leans;
}

}  // namespace isolang
