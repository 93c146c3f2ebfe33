#include "engine/solve.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>

namespace isolang {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

// Reads that the problem merged are found again by what they saw.
std::vector<std::int32_t> sources_by_operation(const History& h, const Problem& p, const Model& model) {
  const auto idx = [](auto i) { return static_cast<std::size_t>(i); };
  const auto is_read = [&](std::int64_t op) {
    return h.op_kind[idx(op)] == static_cast<std::uint8_t>(OpKind::read) ||
           h.op_kind[idx(op)] == static_cast<std::uint8_t>(OpKind::read_list);
  };
  const auto list = [&](std::int64_t op) {
    const auto l = idx(h.op_value[idx(op)]);
    return std::span(h.list_values).subspan(idx(h.list_start[l]), idx(h.list_start[l + 1] - h.list_start[l]));
  };
  const auto saw_the_same = [&](std::int64_t a, std::int64_t b) {
    if (h.op_kind[idx(a)] != h.op_kind[idx(b)] || h.op_source[idx(a)] != h.op_source[idx(b)]) return false;
    if (h.op_value[idx(a)] == h.op_value[idx(b)]) return true;
    if (h.op_kind[idx(a)] != static_cast<std::uint8_t>(OpKind::read_list)) return false;
    const auto x = list(a), y = list(b);
    return x.empty() == y.empty() && (x.empty() || x.back() == y.back());
  };
  std::vector<std::int32_t> source(h.op_kind.size(), -1);
  std::vector<std::int32_t> written;  // keys that the transaction has written so far
  for (std::int32_t r = 0; r < p.reads();) {
    const std::int32_t txn = p.read_txn[idx(r)];
    std::int32_t end = r;
    while (end < p.reads() && p.read_txn[idx(end)] == txn) ++end;
    written.clear();
    for (std::int64_t op = h.op_start[idx(txn)]; op < h.op_start[idx(txn) + 1]; ++op) {
      const std::int32_t key = h.op_key[idx(op)];
      if (h.op_ok[idx(op)] == 0) continue;
      if (!is_read(op)) {
        written.push_back(key);
        continue;
      }
      if (h.op_value[idx(op)] == kUnknownValue || std::ranges::find(written, key) != written.end()) continue;
      for (std::int32_t i = r; i < end; ++i)
        if (p.read_key[idx(i)] == key && model.source[idx(i)] >= 0 && saw_the_same(p.read_op[idx(i)], op))
          source[idx(op)] = p.writer_txn[idx(model.source[idx(i)])];
    }
    r = end;
  }
  return source;
}

namespace {

constexpr std::int64_t kTrialConflicts = 2000;

// The same checks with session order wherever only T0 is ordered first. What meets these meets the original ones, for so
// contains init and every edge of the weaker product is an edge of the stronger.
std::optional<std::vector<Automaton>> with_sessions(std::vector<Automaton> automata) {
  bool stronger = false;
  for (Automaton& m : automata) {
    auto& so = m.steps[static_cast<std::size_t>(Relation::so)];
    auto& init = m.steps[static_cast<std::size_t>(Relation::init)];
    if (init.empty() || !so.empty()) continue;
    so.swap(init);
    m.so_repeatable = m.repeats(Relation::so);
    stronger = true;
  }
  if (!stronger) return std::nullopt;
  return automata;
}

class Attempt {
 public:
  Attempt(const Problem& problem, const std::vector<Automaton>& automata, std::uint64_t seed, std::size_t max_clock_bytes,
          std::int64_t max_conflicts, Budget& budget, Solution& solution)
      : solution_(solution) {
    budget.phase = "building the event graph";
    EventGraph graph(problem, automata);
    note("nodes", graph.nodes());
    note("edges_known", graph.edges.size());
    note("seconds_graph", watch_.lap());
    budget.phase = "pruning";
    Pruner pruner(graph, budget, max_clock_bytes);
    const bool open = pruner.run();
    note("edges_after_pruning", graph.edges.size());
    note("chains", pruner.clocks.chains());
    note("prune_passes", pruner.passes);
    note("orders_forced", pruner.forced_orders);
    note("sources_struck", pruner.struck_sources);
    note("seconds_prune", watch_.lap());
    const bool refute = max_conflicts == std::numeric_limits<std::int64_t>::max();
    if (!open) {
      if (refute) solution.refutation = Refuter(pruner, budget).from_pruning();
      note("seconds_refute", watch_.lap());
      return;
    }
    budget.phase = "searching";
    Search search(pruner, budget, seed);
    const Cdcl::Result result = search.run(max_conflicts);
    note("variables", search.sat().variables());
    note("decisions", search.sat().decisions);
    note("conflicts", search.sat().conflicts);
    note("restarts", search.sat().restarts);
    note("rounds", search.rounds);
    note("seconds_search", watch_.lap());
    if (result == Cdcl::Result::satisfiable) solution.model = search.model();
    if (result == Cdcl::Result::unsatisfiable && refute) solution.refutation = Refuter(pruner, budget).from_search(search);
    note("seconds_refute", watch_.lap());
  }

 private:
  template <typename T>
  void note(const char* name, T value) {
    for (auto& [known, sum] : solution_.statistics)
      if (known == name) {  // a second attempt: times add up, sizes are the last one's
        sum = known.starts_with("seconds") ? sum + static_cast<double>(value) : static_cast<double>(value);
        return;
      }
    solution_.statistics.emplace_back(name, static_cast<double>(value));
  }
  Solution& solution_;
  Stopwatch watch_;
};

}  // namespace

Solution solve(const Problem& problem, const std::vector<Automaton>& automata, std::uint64_t seed,
               std::size_t max_clock_bytes, Budget& budget) {
  Solution solution;
  // Without session order the clocks know little and the search is long; but most real histories also have a model that
  // respects sessions, and looking for that one first costs little.
  if (const auto stronger = with_sessions(automata))
    Attempt(problem, *stronger, seed, max_clock_bytes, kTrialConflicts, budget, solution);
  if (!solution.model)
    Attempt(problem, automata, seed, max_clock_bytes, std::numeric_limits<std::int64_t>::max(), budget, solution);
  return solution;
}

}  // namespace isolang
