// Direct checks: a single rw must not close a way back of one pair. Then no clocks are needed: the ways back that lead to a
// read are among its transaction's other reads and the writers before it in its session, which takes time linear in the
// reads but for transactions of many reads (AWDIT: Møldrup, Pavlogiannis et al., PLDI 2025, who show the bound for RC
// and RA).
#include <algorithm>

#include "engine/prune.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void Pruner::find_session_writers() {
  const Problem& p = graph.problem;
  session_writer_.assign(idx(p.reads()), -1);
  session_before_.assign(p.writer_txn.size(), -1);
  reads_by_txn_ = group_by(
      p.n + 1, idx(p.reads()), [&](std::size_t r) { return p.read_txn[r]; },
      [](std::size_t r) { return static_cast<std::int32_t>(r); });
  const auto by_session = group_by(
      p.sessions, idx(p.n), [&](std::size_t t) { return p.session[t]; }, [](std::size_t t) { return static_cast<std::int32_t>(t); });
  std::vector<std::int32_t> last(idx(p.keys), -1), session_of(idx(p.keys), -1);
  for (std::int32_t session = 0; session < p.sessions; ++session)
    for (const std::int32_t t : by_session.of(session)) {
      if (p.inclusion[idx(t)] == static_cast<std::uint8_t>(Inclusion::out)) continue;
      const auto before = [&](std::int32_t key) { return session_of[idx(key)] == session ? last[idx(key)] : -1; };
      for (const std::int32_t r : reads_by_txn_.of(t)) session_writer_[idx(r)] = before(p.read_key[idx(r)]);
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
  if (session_writer_.empty()) return true;
  const Problem& p = graph.problem;
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t a = source[idx(r)];
    if (a < 0) continue;
    budget_.poll();
    direct_ways_back(r, [&](std::int32_t other) { return source[idx(other)]; }, ways_back_);
    for (auto& [b, closing, back] : ways_back_) {
      if (b == a || p.writer_txn[idx(b)] == p.read_txn[idx(r)]) continue;
      closing.a = a;
      if (initial(a)) {
        closed = because(closing, back);
        return false;
      }
      const auto pair = static_cast<std::uint64_t>(b) << 32 | static_cast<std::uint32_t>(a);
      if (!ordered_behind_.insert(pair).second) continue;
      orders.push_back({b, a, static_cast<std::uint32_t>(graph.edges.size()), because(closing, back)});
      graph.ww_edges(b, a, [&](const Edge& e) { graph.edges.push_back(e); });
      ++forced_orders;
    }
  }
  return true;
}

}  // namespace isolang
