// `TotalOrder::of` tests whether the checks have the required form, and derives the nodes, classes
// of reads and writers, and known edges of the total order from the pruned graph.
#include "engine/hard/total_order.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/index.hpp"

namespace isolang {
std::optional<TotalOrder> TotalOrder::of(const Pruner& pruner) {
  const EventGraph& g = pruner.graph;
  if (g.automata.size() != 1) return std::nullopt;
  const Automaton& m = g.automata[0];
  if (m.forbids_return_paths() || !m.places_are_transactions() || m.tests() || m.splits())
    return std::nullopt;
  const auto &wr = m.of(Relation::wr), &rw = m.of(Relation::rw), &ww = m.of(Relation::ww);
  if (wr.size() != 1 || rw.size() != 1 || ww.empty()) return std::nullopt;
  const auto [w, r] = wr[0];
  if (rw[0] != Automaton::Step{r, w}) return std::nullopt;
  if (w != r && std::ranges::find(m.epsilon, Automaton::Step{r, w}) == m.epsilon.end())
    return std::nullopt;
  TotalOrder total_order(pruner);
  total_order.read_state = r;
  total_order.write_state = w;
  for (const auto& [from, to] : ww) {
    if (from != w || (to != w && to != r)) return std::nullopt;
    total_order.locks |= to != w;
  }
  const Problem& p = g.problem;
  total_order.usable_.resize(p.inclusion.size());
  for (std::int32_t t = 0; t < p.n; ++t)
    total_order.usable_[t] = p.inclusion[t] != static_cast<std::uint8_t>(Inclusion::out) &&
                             !std::ranges::binary_search(p.impossible, t);
  total_order.set_classes();
  total_order.set_edges();
  return total_order;
}

bool TotalOrder::is_candidate(std::int32_t read, std::int32_t writer) const {
  return std::ranges::any_of(problem.candidates(read),
                             [&](std::size_t i) { return problem.candidate[i] == writer; });
}

// Sets the classes of reads and writers. Reads with the same first candidate form a class if their
// candidates are exactly the writers of the class. The reader itself does not matter, because it
// writes after the read.
void TotalOrder::set_classes() {
  const Problem& p = problem;
  writer_class_.assign(p.writer_txn.size(), -1);
  read_class_.assign(idx(p.reads()), -1);
  const auto candidates = [&](std::int32_t r) {
    return std::span(p.candidate)
        .subspan(idx(p.candidate_start[r]), idx(p.candidate_start[r + 1] - p.candidate_start[r]));
  };
  std::vector<std::int32_t> size;
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    std::int32_t c = -1;
    for (const std::int32_t w : candidates(r)) c = std::max(c, writer_class_[w]);
    if (c < 0) {
      c = static_cast<std::int32_t>(size.size());
      size.push_back(0);
    }
    for (const std::int32_t w : candidates(r))
      if (writer_class_[w] < 0) {
        writer_class_[w] = c;
        ++size[c];
      }
  }
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const auto list = candidates(r);
    if (list.empty()) continue;
    const std::int32_t c = writer_class_[list[0]], own = pruner.own_writer[r];
    std::int32_t count =
        own >= 0 && writer_class_[own] == c && std::ranges::find(list, own) == list.end();
    for (const std::int32_t w : list) count += writer_class_[w] == c;
    const bool pure =
        std::ranges::all_of(list, [&](std::int32_t w) { return writer_class_[w] == c; });
    if (pure && count == size[c]) read_class_[r] = c;
  }
}

void TotalOrder::set_edges() {
  const Problem& p = problem;
  const auto same = [](std::size_t i) { return static_cast<std::int32_t>(i); };
  reads = group_by(p.n + 1, p.read_txn.size(), [&](std::size_t r) { return p.read_txn[r]; }, same);
  writes =
      group_by(p.n + 1, p.writer_txn.size(), [&](std::size_t w) { return p.writer_txn[w]; }, same);
  std::vector<std::pair<Node, Node>> pairs;
  const auto stands = [&](Node v) {
    const std::int32_t txn = graph.transaction_of(v);
    // No version nodes belong here, because the write nodes order versions.
    return txn < 0 ? graph.check_of(v) >= 0 : usable(txn);
  };
  for (const Edge& e : graph.edges)
    if (stands(e.from) && stands(e.to)) pairs.emplace_back(e.from, e.to);
  precede(std::move(pairs));
}

void TotalOrder::precede(std::vector<std::pair<Node, Node>> more) {
  if (!after.start.empty())
    for (Node v = 0; v < graph.nodes(); ++v)
      for (const Node u : after.of(v)) more.emplace_back(v, u);
  std::ranges::sort(more);
  more.erase(std::ranges::unique(more).begin(), more.end());
  Adjacency in = group_by(
      graph.nodes(), more.size(), [&](std::size_t i) { return more[i].second; },
      [&](std::size_t i) { return more[i].first; });
  after = group_by(
      graph.nodes(), more.size(), [&](std::size_t i) { return more[i].first; },
      [&](std::size_t i) { return more[i].second; });
  before = std::move(in);  // if memory runs out before this, neither list has changed
}

std::optional<Model> TotalOrder::model(const std::vector<std::int32_t>& place,
                                       const std::vector<std::uint8_t>& present) const {
  const Problem& p = problem;
  for (Node v = 0; v < graph.nodes(); ++v)
    for (const Node u : after.of(v))
      if (place[v] >= place[u]) return std::nullopt;
  const auto here = [&](std::int32_t txn) { return txn == p.n || present[txn]; };
  std::vector<std::int32_t> writers(p.writer_txn.size());
  const auto where = [&](std::int32_t w) {
    const std::int32_t txn = p.writer_txn[w];
    return txn == p.n ? -1 : place[write_node(txn)];
  };
  Model m;
  m.source.assign(idx(p.reads()), -1);
  m.order_start.push_back(0);
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const std::int32_t first = p.key_start[key], last = p.key_start[key + 1];
    std::int32_t count = first;
    for (std::int32_t w = first; w < last; ++w)
      if (here(p.writer_txn[w])) writers[count++] = w;
    std::sort(writers.begin() + first, writers.begin() + count,
              [&](std::int32_t a, std::int32_t b) { return where(a) < where(b); });
    for (std::int32_t i = first; i < count; ++i)
      if (const std::int32_t w = writers[i], txn = p.writer_txn[w]; txn != p.n) {
        m.order_txn.push_back(txn);
        if (locks && i > first && where(writers[i - 1]) > place[read_node(txn)])
          return std::nullopt;
      }
    // Excluded writers come last, because the order does not constrain them.
    for (std::int32_t w = first; w < last; ++w)
      if (!here(p.writer_txn[w])) {
        m.order_txn.push_back(p.writer_txn[w]);
        writers[count++] = w;
      }
    m.order_start.push_back(static_cast<std::int64_t>(m.order_txn.size()));
  }
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t txn = p.read_txn[r], key = p.read_key[r];
    if (!here(txn)) continue;
    const auto first = writers.begin() + p.key_start[key],
               last = writers.begin() + p.key_start[key + 1];
    auto next = std::partition_point(first, last, [&](std::int32_t w) {
      return here(p.writer_txn[w]) && where(w) < place[read_node(txn)];
    });
    if (next == first || !is_candidate(r, *--next)) return std::nullopt;
    m.source[r] = *next;
  }
  keep_included(m, problem);
  return m;
}

double TotalOrder::load(const Problem& p) {
  double demand = 0;
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const auto candidates = static_cast<double>(p.candidate_start[r + 1] - p.candidate_start[r]);
    const auto key = idx(p.read_key[r]);
    const auto writers = static_cast<double>(p.key_start[key + 1] - p.key_start[key]);
    if (candidates > 0) demand += std::log(std::max(1.0, writers / candidates));
  }
  std::vector<double> length(idx(p.sessions), 0);
  double total = 0, freedom = 0;
  for (std::int32_t t = 0; t < p.n; ++t)
    if (p.inclusion[t] != static_cast<std::uint8_t>(Inclusion::out)) {
      ++length[p.session[t]];
      ++total;
    }
  // The logarithm of the multinomial coefficient, by Stirling's formula, because the standard
  // library's log-gamma sets a global variable for the sign.
  const auto log_factorial = [](double n) {
    return n < 2 ? 0.0
                 : n * std::log(n) - n + 0.5 * std::log(2 * 3.141592653589793 * n) + 1 / (12 * n);
  };
  freedom = log_factorial(total);
  for (const double n : length) freedom -= log_factorial(n);
  return freedom > 0 ? demand / freedom : 0;
}

}  // namespace isolang
