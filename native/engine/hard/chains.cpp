// `Chains::of` divides sessions into chains, numbers the values, and gives each event the events of
// other chains that must precede it, as far as the known edges show this.
#include "engine/hard/chains.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "core/index.hpp"

namespace isolang {
namespace {

constexpr std::size_t kMaxChains = 512,
                      kMaxTable = std::size_t{1} << 26;  // 64 Mi cells: rows of counts, clocks
constexpr std::size_t kMaxCell = std::numeric_limits<std::int16_t>::max();

}  // namespace

std::optional<Chains> Chains::of(const TotalOrder& total_order, Budget& budget) {
  for (std::int32_t t = 0; t < total_order.problem.n; ++t)
    if (total_order.usable(t) && total_order.optional(t)) return std::nullopt;
  Chains chains(total_order);
  std::vector<std::vector<Node>> nodes;
  chains.set_chains(nodes);
  if (nodes.empty() || nodes.size() > kMaxChains || !chains.set_values()) return std::nullopt;
  chains.set_events(nodes);
  const std::size_t events = chains.events.size();
  if (events > kMaxCell || chains.values() > kMaxCell || events * chains.values() * 3 > kMaxTable)
    return std::nullopt;
  if (!chains.set_known_needs(budget)) return std::nullopt;
  return chains;
}

// Divides sessions into chains. A chain continues as long as the known edges order the events of
// the session, and otherwise a new chain begins.
void Chains::set_chains(std::vector<std::vector<Node>>& nodes) const {
  const Problem& p = total_order.problem;
  std::vector<std::int32_t> chain_of_session(idx(p.sessions), -1);
  for (std::int32_t t = 0; t < p.n; ++t) {
    if (!total_order.usable(t)) continue;
    std::int32_t& chain = chain_of_session[p.session[t]];
    if (chain < 0 ||
        !total_order.pruner.clocks.reaches(nodes[chain].back(), total_order.read_node(t))) {
      chain = static_cast<std::int32_t>(nodes.size());
      nodes.emplace_back();
    }
    nodes[chain].push_back(total_order.read_node(t));
    if (total_order.apart()) nodes[chain].push_back(total_order.write_node(t));
  }
}

// Numbers the values. Writers of one class write one value. If a key has reads that make finer
// distinctions than classes, each of its writers has a separate value.
bool Chains::set_values() {
  const Problem& p = total_order.problem;
  fine.assign(idx(p.keys), 0);
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (total_order.read_class(r) < 0) fine[p.read_key[r]] = 1;
  writer_value_.resize(p.writer_txn.size());
  std::int32_t values = 0;
  std::vector<std::int32_t> classes;
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const std::int32_t first = p.key_start[key], last = p.key_start[key + 1];
    value_start.push_back(values);
    classes.clear();
    for (std::int32_t w = first; w < last; ++w) {
      const std::int32_t c = fine[key] ? w : total_order.writer_class(w);
      auto at = std::ranges::find(classes, c);
      if (at == classes.end()) at = classes.insert(at, c);
      writer_value_[w] = values + static_cast<std::int32_t>(at - classes.begin());
    }
    values += static_cast<std::int32_t>(classes.size());
    first_value.push_back(first < last ? writer_value_[first] : -1);
  }
  value_start.push_back(values);
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t key = p.read_key[r];
    match_start_.push_back(static_cast<std::int64_t>(match.size()));
    const auto row = match.size();
    match.resize(row + idx(value_start[key + 1] - value_start[key]), 0);
    if (match.size() > kMaxTable) return false;
    for (std::int32_t w = p.key_start[key]; w < p.key_start[key + 1]; ++w)
      if (total_order.sees(r, w)) match[row + idx(writer_value_[w] - value_start[key])] = 1;
  }
  return true;
}

void Chains::set_events(const std::vector<std::vector<Node>>& nodes) {
  const Problem& p = total_order.problem;
  const bool nothing_between = total_order.locks || !total_order.apart();
  for (const auto& chain : nodes) {
    start.push_back(static_cast<std::int32_t>(events.size()));
    for (const Node v : chain) {
      const std::int32_t txn = total_order.graph.transaction_of(v);
      const auto read = static_cast<std::int32_t>(reads.size()),
                 write = static_cast<std::int32_t>(writes.size());
      Event e{v, 0, 0, read, 0, write, 0, write, 0, false};
      const auto own = total_order.writes.of(txn);
      const auto writes_key = [&](std::int32_t key) {
        return std::ranges::any_of(
            own, [&](std::int32_t w) { return total_order.pruner.key_of(w) == key; });
      };
      if (v == total_order.read_node(txn))
        for (const std::int32_t r : total_order.reads.of(txn)) {
          const std::int32_t key = p.read_key[r];
          // Two reads of a key see one version, and the transaction replaces it once.
          const bool again = std::ranges::any_of(
              reads.begin() + read, reads.end(), [&](const Read& r) { return r.key == key; });
          reads.push_back({key, static_cast<std::int32_t>(match_start_[r]),
                           nothing_between && !again && writes_key(key)});
          ++e.reads;
        }
      for (const std::int32_t w : own) {
        writes.push_back({total_order.pruner.key_of(w), writer_value_[w]});
        if (v == total_order.write_node(txn)) ++e.writes;
        ++e.locks;
      }
      e.opens = v != total_order.write_node(txn);
      events.push_back(e);
    }
  }
  start.push_back(static_cast<std::int32_t>(events.size()));
}

// Finds the events of the other chains that precede each event by the known edges.
bool Chains::set_known_needs(Budget& budget) {
  const auto nodes = idx(total_order.graph.nodes());
  if (nodes * count() > kMaxTable) return false;
  std::vector<Cell> known(nodes * count(), 0), clock(events.size() * count());
  std::vector<std::int32_t> chain_of(nodes, -1), event_of(nodes, -1);
  for (std::size_t c = 0; c < count(); ++c)
    for (std::int32_t i = start[c]; i < start[c + 1]; ++i) {
      chain_of[events[i].node] = static_cast<std::int32_t>(c);
      event_of[events[i].node] = i;
    }
  for (const Node v : total_order.pruner.order) {
    Cell* const row = known.data() + idx(v) * count();
    for (const Node u : total_order.before.of(v)) {
      const Cell* const other = known.data() + idx(u) * count();
      for (std::size_t c = 0; c < count(); ++c) row[c] = std::max(row[c], other[c]);
      if (const std::int32_t c = chain_of[u]; c >= 0)
        row[c] = std::max(row[c], static_cast<Cell>(event_of[u] - start[c] + 1));
    }
    if (event_of[v] >= 0) std::copy_n(row, count(), clock.data() + idx(event_of[v]) * count());
    budget.poll();
  }
  set_needs(clock);
  return true;
}

void Chains::set_needs(const std::vector<Cell>& clock) {
  needs.clear();
  for (std::size_t c = 0; c < count(); ++c)
    for (std::int32_t i = start[c]; i < start[c + 1]; ++i) {
      Event& e = events[i];
      e.need = static_cast<std::int32_t>(needs.size());
      const Cell* const row = clock.data() + idx(i) * count();
      const Cell* const last = i > start[c] ? row - count() : nullptr;
      for (std::size_t other = 0; other < count(); ++other)
        if (other != c && row[other] > (last != nullptr ? last[other] : 0))
          needs.push_back({static_cast<std::int32_t>(other), row[other]});
      e.needs = static_cast<std::int32_t>(needs.size()) - e.need;
    }
}

std::vector<Chains::Cell> Chains::clock() const {
  std::vector<Cell> clock(events.size() * count(), 0);
  for (std::size_t c = 0; c < count(); ++c)
    for (std::int32_t i = start[c]; i < start[c + 1]; ++i) {
      Cell* const row = clock.data() + idx(i) * count();
      if (i > start[c]) std::copy_n(row - count(), count(), row);
      const Event& e = events[i];
      for (std::int32_t k = e.need; k < e.need + e.needs; ++k)
        row[needs[k].chain] = std::max(row[needs[k].chain], static_cast<Cell>(needs[k].count));
    }
  return clock;
}

std::vector<std::pair<Node, Node>> Chains::edges() const {
  const std::vector<Cell> rows = clock();
  const auto last_of = [&](const Need& n) { return idx(start[n.chain] + n.count - 1); };
  std::vector<std::pair<Node, Node>> edges;
  for (const Event& e : events) {
    const auto mine = std::span(needs).subspan(idx(e.need), idx(e.needs));
    for (const Need& n : mine)
      if (std::ranges::none_of(mine, [&](const Need& other) {
            return other.chain != n.chain &&
                   rows[last_of(other) * count() + idx(n.chain)] >= n.count;
          }))
        edges.emplace_back(events[last_of(n)].node, e.node);
  }
  return edges;
}

}  // namespace isolang
