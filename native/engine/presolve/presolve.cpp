// `Presolve` chooses the assumed orders. `doubt` returns false if a refutation uses no assumed order
// and thus refutes the checks themselves. Otherwise `end_round` withdraws the assumed orders around
// the refutation: it isolates transactions in session order, and forgets times.
#include "engine/presolve/presolve.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

constexpr std::int32_t kMinWindow = 64;
constexpr std::int32_t kMaxWindow = 256;
// The assumed order must reduce the number of chains, compared with the number of sessions, by at least this factor.
constexpr std::int32_t kMinChainGain = 4;
constexpr int kShortSession = 16;  // number of transactions
constexpr std::int64_t kMargin =
    4;  // times the distance over which reads contradict the total order
constexpr std::size_t kReadsPerOutlier =
    200;  // one of this many reads may contradict the total order over a larger distance
// Times are useful if on average at most one of this many transactions runs at any moment.
constexpr double kMaxSimultaneous = 4;

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

void add_real_time(std::vector<Automaton>& automata) {
  for (Automaton& m : automata) {
    m.steps[idx(Relation::rt)] = m.of(Relation::so);
    m.rt_is_assumed = true;
  }
}

Presolve::Presolve(const Problem& problem, const std::vector<Automaton>& automata, Orders orders)
    : problem_(problem), automata_(automata), of_sessions_(add_sessions(automata_)) {
  given_.breaks.assign(idx(problem.n), 0);
  doubtful_.assign(idx(problem.n) + 1, 0);
  // A check that allows some cycles relies on other checks to forbid them. This has not been proved
  // for edges that belong to no relation.
  const auto only_forbids = [](const Automaton& m) {
    return m.judges && !m.forbids_return_paths() && m.places_are_transactions() &&
           !m.of(Relation::so).empty() &&
           m.of(Relation::rt).empty();  // real time already yields chains
  };
  if (!std::ranges::all_of(automata_, only_forbids)) return;
  if (orders == Orders::of_the_history) {
    if (std::ranges::all_of(automata_, &Automaton::so_repeatable)) guess_order();
  } else if (problem.has_time && std::ranges::any_of(automata_, [](const Automaton& m) {
               return !m.of(Relation::rw).empty();
             })) {
    adopt_times();
    if (!given_.times.begin.empty()) add_real_time(automata_);
  }
}

namespace {

// Measures how far the times of the transactions are from times at which each read sees what it
// returned.
class Fit {
 public:
  // A transaction with unknown times begins before all others and ends after all others.
  Fit(const Problem& problem, const Times& times) : p_(problem), times_(times) {
    const auto known = [&](std::int32_t w) {
      const std::int32_t t = p_.writer_txn[w];
      return t != p_.n && times_.begin[t] != kTimeUnknownBegin && times_.end[t] != kTimeUnknownEnd;
    };
    for (std::int32_t key = 0; key < p_.keys; ++key) {
      const auto first = static_cast<std::ptrdiff_t>(writers_.size());
      start_.push_back(writers_.size());
      for (std::int32_t w = p_.key_start[key]; w < p_.key_start[key + 1]; ++w)
        if (known(w)) writers_.push_back(p_.writer_txn[w]);
      std::ranges::sort(writers_.begin() + first, writers_.end(), {},
                        [&](std::int32_t t) { return times_.end[t]; });
    }
    start_.push_back(writers_.size());
  }

  // Returns the span of time over which the reader, the source and the writers between them would
  // have to change places.
  std::int64_t distance(std::int32_t read) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const std::size_t i : p_.candidates(read))
      if (least > 0) least = std::min(least, distance(read, p_.writer_txn[p_.candidate[i]]));
    return least;
  }

 private:
  // Returns the time between two moments, each of which may be infinite.
  static std::int64_t between(std::int64_t from, std::int64_t to) {
    std::int64_t length = 0;
    if (from >= to) return 0;
    return __builtin_sub_overflow(to, from, &length) ? std::numeric_limits<std::int64_t>::max()
                                                     : length;
  }
  std::int64_t distance(std::int32_t read, std::int32_t source) const {
    const std::int32_t reader = p_.read_txn[read];
    const bool initial = source == p_.n;
    if (!initial && times_.begin[source] > times_.end[reader])
      return between(times_.end[reader], times_.begin[source]);
    // A writer between the two has to move before the source or after the reader. The writer in the
    // middle has the longest way to go.
    const std::int64_t until = times_.begin[reader];
    const std::int64_t since = initial ? kTimeUnknownBegin : times_.end[source];
    const std::size_t key = idx(p_.read_key[read]);
    const auto first = writers_.begin() + static_cast<std::ptrdiff_t>(start_[key]);
    const auto last = writers_.begin() + static_cast<std::ptrdiff_t>(start_[key + 1]);
    const auto way = [&](std::int32_t other) {
      if (other == reader || other == source) return std::int64_t{0};
      const std::int64_t to_reader = between(times_.end[other], until);
      return initial ? to_reader : std::min(to_reader, between(since, times_.begin[other]));
    };
    const std::int64_t middle = initial ? kTimeUnknownBegin : since / 2 + until / 2;
    const auto at = std::ranges::lower_bound(first, last, middle, {},
                                             [&](std::int32_t t) { return times_.end[t]; });
    std::int64_t most = 0;
    for (auto i = at - std::min<std::ptrdiff_t>(kWritersAround, at - first);
         i != last && i < at + kWritersAround; ++i)
      most = std::max(most, way(*i));
    return most;
  }
  static constexpr std::ptrdiff_t kWritersAround = 2;  // number of writers on either side of the middle

  const Problem& p_;
  const Times& times_;
  std::vector<std::int32_t> writers_;  // per key, sorted by their ends
  std::vector<std::size_t> start_;
};

// The greatest distance of a read from its source, except for a few outliers; and the distance of
// each read.
struct Distances {
  std::int64_t usual = 0;
  std::vector<std::pair<std::int64_t, std::int32_t>> reads;  // distance and read
};
Distances distances(const Problem& p, const Times& times) {
  const Fit fit(p, times);
  Distances found;
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (const std::int32_t t = p.read_txn[r];
        times.begin[t] != kTimeUnknownBegin && times.end[t] != kTimeUnknownEnd)
      found.reads.emplace_back(fit.distance(r), r);
  if (found.reads.empty()) return found;
  const auto usual =
      found.reads.end() - 1 - static_cast<std::ptrdiff_t>(found.reads.size() / kReadsPerOutlier);
  std::ranges::nth_element(found.reads, usual);
  found.usual = usual->first;
  return found;
}

bool certain(const Problem& p, std::int32_t txn) {
  return p.inclusion[txn] == static_cast<std::uint8_t>(Inclusion::in) && p.unfinished[txn] == 0;
}

// Returns the greatest number of sessions that have begun and not ended at the same place in the
// order. A client continues as another session after an unknown outcome, so there may be many more
// sessions in all. Unless sessions are short, the reads soon show that a session follows those that
// ended before it began, and then the clocks let it continue their chains.
std::int32_t simultaneous_sessions(const Problem& p, const std::vector<std::int32_t>& order) {
  if (p.sessions > p.n / kShortSession) return p.sessions;
  std::vector<std::int32_t> left(idx(p.sessions), 0), all;
  for (const std::int32_t t : order) ++left[p.session[t]];
  all = left;
  std::int32_t open = 0, most = 0;
  for (const std::int32_t t : order) {
    const auto session = idx(p.session[t]);
    open += static_cast<std::int32_t>(left[session] == all[session]);
    most = std::max(most, open);
    open -= static_cast<std::int32_t>(--left[session] == 0);
  }
  return most;
}

}  // namespace

void Presolve::guess_order() {
  const Problem& p = problem_;
  if (p.sessions <= kMinChainGain * kMinWindow) return;
  std::vector<std::int32_t> order;
  for (std::int32_t t = 0; t < p.n; ++t)
    if (certain(p, t)) order.push_back(t);
  if (p.has_time) std::ranges::stable_sort(order, {}, [&](std::int32_t t) { return p.end[t]; });
  const std::int32_t sessions = simultaneous_sessions(p, order);
  if (sessions <= kMinChainGain * kMinWindow) return;
  Times places{std::vector(idx(p.n), kTimeUnknownBegin), std::vector(idx(p.n), kTimeUnknownEnd)};
  for (std::size_t i = 0; i < order.size(); ++i)
    places.begin[order[i]] = places.end[order[i]] = static_cast<std::int64_t>(i);
  const auto [usual, reads] = distances(p, places);
  if (reads.empty()) return;
  std::int64_t window = kMinWindow;
  while (window <= kMaxWindow && window < kMargin * usual) window *= 2;
  if (window > kMaxWindow || window * kMinChainGain >= sessions) return;
  given_.window = static_cast<std::int32_t>(window);
  given_.order = std::move(order);
  std::vector<std::uint8_t> outliers(idx(p.n) + 1, 0);
  for (const auto& [distance, read] : reads)
    if (distance >= window) outliers[p.read_txn[read]] = 1;
  isolate(outliers);
}

// Adopts the recorded times, stretched as far as the reads require. Adopts none if the stretched
// times would then order almost nothing.
void Presolve::adopt_times() {
  const Problem& p = problem_;
  Times& times = given_.times = {{p.begin.begin(), p.begin.begin() + p.n},
                                 {p.end.begin(), p.end.begin() + p.n}};
  std::vector<std::int64_t> latest(idx(p.sessions), kTimeUnknownBegin);
  for (std::int32_t t = 0; t < p.n; ++t) {
    if (!certain(p, t)) times.end[t] = kTimeUnknownEnd;
    std::int64_t& begun = latest[p.session[t]];
    if (times.end[t] < begun) forget_times(t);  // its times contradict the order of its session
    begun = std::max(begun, times.begin[t]);
  }
  const auto [usual, reads] = distances(p, times);
  for (const auto& [distance, read] : reads)
    if (distance > usual) forget_times(p.read_txn[read]);
  stretch_times(usual / 2 + usual % 2);
  times_fit_ = usual == 0;
  std::int64_t first = kTimeUnknownEnd, last = kTimeUnknownBegin;
  double lasting = 0;
  std::vector<std::int64_t> durations;
  for (std::int32_t t = 0; t < p.n; ++t) {
    if (times.begin[t] == kTimeUnknownBegin || times.end[t] == kTimeUnknownEnd) continue;
    first = std::min(first, times.begin[t]);
    last = std::max(last, times.end[t]);
    durations.push_back(times.end[t] - times.begin[t]);
    lasting += static_cast<double>(durations.back());
  }
  if (durations.empty() || lasting * kMaxSimultaneous > static_cast<double>(last - first) *
                                                   static_cast<double>(durations.size())) {
    times = {};
    return;
  }
  std::ranges::nth_element(durations,
                           durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2));
  margin_ = std::max<std::int64_t>(1, durations[durations.size() / 2]);
}

void Presolve::forget_times(std::int32_t txn) {
  given_.times.begin[txn] = kTimeUnknownBegin;
  given_.times.end[txn] = kTimeUnknownEnd;
}

void Presolve::stretch_times(std::int64_t margin) {
  for (std::int64_t& begin : given_.times.begin)
    if (__builtin_sub_overflow(begin, margin, &begin)) begin = kTimeUnknownBegin;
  for (std::int64_t& end : given_.times.end)
    if (__builtin_add_overflow(end, margin, &end)) end = kTimeUnknownEnd;
}

// Turns each end of a stretch of session order into a separate session. The wrong read is often one
// of these ends, and if only one end were isolated, the next refutation would use the other end. In
// the total order, an isolated transaction precedes no other transaction.
void Presolve::isolate(const std::vector<std::uint8_t>& txns) {
  std::vector<std::uint8_t> behind(idx(problem_.sessions), 0);
  for (std::int32_t t = 0; t < problem_.n; ++t) {
    std::uint8_t& after = behind[problem_.session[t]];
    // mutant: assumption-stays
    given_.breaks[t] |= static_cast<std::uint8_t>(txns[t] | (of_sessions_ ? after : 0));
    after = txns[t];
  }
}

bool Presolve::doubt(const std::vector<ProofStep>& refutation) {
  bool leans = false;
  for (const ProofStep& step : refutation) {
    if (step.kind != ProofStep::Kind::cycle) continue;
    for (const ProofEdge& e : step.edges) {
      const auto suspect = [&] {
        for (const std::int32_t t : {e.from, e.to})
          if (t >= 0) doubtful_[t] = 1;
      };
      if (of_time()) suspect();
      if (e.relation == Relation::rt && automata_[step.check].rt_is_assumed) {
        // mutant: leans-on-recorded-time
        leans = true;
        ++forgotten_;
      }
      if (e.relation != Relation::so || e.from == problem_.n) continue;
      const bool demanded = !automata_[step.check].so_is_assumed &&
                            problem_.session[e.from] == problem_.session[e.to] && e.from < e.to;
      // mutant: leans-on-assumption
      if (demanded) continue;
      suspect();
      leans = true;
    }
  }
  return leans;
}

void Presolve::end_round() {
  // If times are wrong, the next refutation would often be a walk that only leaves out the same
  // pair, through another transaction that reads from one of these or that one of these reads from.
  std::vector<std::uint8_t> around = doubtful_;
  for (std::int32_t r = 0; of_time() && r < problem_.reads(); ++r) {
    const auto candidates = problem_.candidates(r);
    if (candidates.size() != 1) continue;
    const std::int32_t reader = problem_.read_txn[r],
                       writer = problem_.writer_txn[problem_.candidate[candidates.front()]];
    if (writer == problem_.n) continue;
    around[writer] |= doubtful_[reader];
    around[reader] |= doubtful_[writer];
  }
  isolate(around);
  for (std::int32_t t = 0; of_time() && t < problem_.n; ++t)
    if (around[t] != 0) forget_times(t);
  std::ranges::fill(doubtful_, std::uint8_t{0});
  // If there are more conflicts than before, it is not a few transactions that are wrong by much,
  // but all transactions that are wrong by a little.
  if (forgotten_ > forgotten_before_ && forgotten_before_ > 0) {
    stretch_times(margin_);
    margin_ *= 2;
  }
  forgotten_before_ = std::exchange(forgotten_, 0);
}

}  // namespace isolang
