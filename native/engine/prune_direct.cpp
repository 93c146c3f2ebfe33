// Direct checks: a single rw must not close a way back of one pair. Then no clocks are needed: the ways back that lead
// to a read are among its transaction's other reads and the writers before it in its session, which takes time linear
// in the reads but for transactions of many reads (AWDIT: Møldrup, Pavlogiannis et al., PLDI 2025, who show the bound
// for RC and RA).
#include <utility>

#include "engine/prune.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::size_t kWide = 4;  // writes for each read: looking for a read's key among them is then less work

}  // namespace

void Pruner::find_session_writers() {
  const Problem& p = graph.problem;
  resolved_txn_.assign(idx(p.n), 0);
  last_read_.assign(idx(p.keys), {-1, -1});
  read_before_.assign(idx(p.reads()), -1);
  session_writer_.assign(idx(p.reads()), -1);
  session_before_.assign(p.writer_txn.size(), -1);
  const auto by_session = group_by(
      p.sessions, idx(p.n), [&](std::size_t t) { return p.session[t]; },
      [](std::size_t t) { return static_cast<std::int32_t>(t); });
  std::vector<std::int32_t> last(idx(p.keys), -1), session_of(idx(p.keys), -1);
  for (std::int32_t session = 0; session < p.sessions; ++session)
    for (const std::int32_t t : by_session.of(session)) {
      if (p.inclusion[idx(t)] == static_cast<std::uint8_t>(Inclusion::out)) continue;
      const auto before = [&](std::int32_t key) { return session_of[idx(key)] == session ? last[idx(key)] : -1; };
      for (const std::int32_t r : reads_of(t)) session_writer_[idx(r)] = before(p.read_key[idx(r)]);
      if (p.unfinished[idx(t)] != 0) continue;  // it precedes nothing
      for (const std::int32_t w : writers_by_txn_.of(t)) {
        const std::int32_t key = key_of_[idx(w)];
        session_before_[idx(w)] = before(key);
        last[idx(key)] = w;
        session_of[idx(key)] = session;
      }
    }
}

// For each read with a known source, the writers with a known way back to it precede that source.
bool Pruner::prune_direct() {
  if (!direct_) return true;
  for (std::int32_t t = 0; t < graph.problem.n; ++t)
    if (std::exchange(resolved_txn_[idx(t)], std::uint8_t{0}) != 0 && !prune_direct(t)) return false;
  return true;
}

bool Pruner::prune_direct(std::int32_t txn) {
  const Problem& p = graph.problem;
  budget_.poll();
  for (const std::int32_t r : reads_of(txn)) last_read_[idx(p.read_key[idx(r)])] = {-1, txn};
  for (const std::int32_t r : reads_of(txn))
    read_before_[idx(r)] = std::exchange(last_read_[idx(p.read_key[idx(r)])].first, r);
  for (std::size_t c = 0; c < graph.automata.size(); ++c) {
    const Automaton& m = graph.automata[c];
    if (!m.direct()) continue;
    const Node here = graph.label(c, txn);
    const auto order = [&](std::int32_t r, std::int32_t b, Relation relation, std::int32_t other, std::int32_t seen) {
      const Node there = graph.label(c, p.writer_txn[idx(b)]);
      return order_behind_source(b, {here, there, Relation::rw, r, source[idx(r)], b},
                                 {there, here, relation, other, seen, -1});
    };
    for (const std::int32_t other : reads_of(txn)) {
      const std::int32_t seen = source[idx(other)];
      if (m.back_so && seen >= 0)
        for (std::int32_t b = session_writer_[idx(other)]; b >= 0; b = session_before_[idx(b)]) {
          if (!order(other, b, Relation::so, -1, -1)) return false;
          if (graph.sessions_order_versions) break;  // those before it precede it
        }
      if (seen < 0 || initial(seen) || !(m.back_wr || m.back_earlier_wr)) continue;
      // What `other` saw, the transaction's reads of the same writer's keys saw, or something later.
      const auto binds = [&](std::int32_t r) {
        return source[idx(r)] >= 0 && r != other && (m.back_wr || p.read_op[idx(other)] <= p.read_op[idx(r)]);
      };
      const auto written = writers_by_txn_.of(p.writer_txn[idx(seen)]);
      if (written.size() > kWide * reads_of(txn).size()) {  // such as one that fills a table
        for (const std::int32_t r : reads_of(txn)) {
          const std::int32_t b = write_of(p.writer_txn[idx(seen)], p.read_key[idx(r)]);
          if (b >= 0 && binds(r) && !order(r, b, Relation::wr, other, seen)) return false;
        }
        continue;
      }
      for (const std::int32_t b : written) {
        const auto [last, of] = last_read_[idx(key_of_[idx(b)])];
        for (std::int32_t r = of == txn ? last : -1; r >= 0; r = read_before_[idx(r)])
          if (binds(r) && !order(r, b, Relation::wr, other, seen)) return false;
      }
    }
  }
  return true;
}

// `closing` is the rw pair from a read to the writer, `back` the way from there.
bool Pruner::order_behind_source(std::int32_t writer, Edge closing, const Edge& back) {
  const Problem& p = graph.problem;
  const std::int32_t a = closing.a;
  if (writer == a || p.writer_txn[idx(writer)] == p.read_txn[idx(closing.read)]) return true;
  if (initial(a)) {
    closed = because(closing, back);
    return false;
  }
  const auto pair = static_cast<std::uint64_t>(writer) << 32 | static_cast<std::uint32_t>(a);
  if (!ordered_behind_.insert(pair).second) return true;
  orders.push_back({writer, a, static_cast<std::uint32_t>(graph.edges.size()), because(closing, back)});
  graph.ww_edges(writer, a, [&](const Edge& e) { graph.edges.push_back(e); });
  ++forced_orders;
  return true;
}

}  // namespace isolang
