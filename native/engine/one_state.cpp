#include "engine/one_state.hpp"

namespace isolang {
namespace {

constexpr std::size_t kTests = static_cast<std::size_t>(Relation::writes);

// The steps of `m`, and the ways back of one pair that it forbids, from the one state to itself.
void add_steps(const Automaton& m, Automaton& to) {
  for (std::size_t r = 0; r < kTests; ++r)
    if (!m.steps[r].empty()) to.steps[r] = {{0, 0}};
  if (m.back_so) to.steps[static_cast<std::size_t>(Relation::so)] = {{0, 0}};
  if (m.back_wr || m.back_earlier_wr) to.steps[static_cast<std::size_t>(Relation::wr)] = {{0, 0}};
  to.so_repeatable = to.repeats(Relation::so);
}

}  // namespace

std::optional<std::vector<Automaton>> as_one_state(const std::vector<Automaton>& automata) {
  if (std::ranges::none_of(automata, &Automaton::tests)) return std::nullopt;
  std::vector<Automaton> result(1);
  for (const Automaton& m : automata) {
    add_steps(m, result[0]);
    if (!m.forbids_ways_back()) continue;
    Automaton& own = result.emplace_back();
    add_steps(m, own);
    own.back = {{0, 0}};
    own.judges = false;
  }
  return result;
}

}  // namespace isolang
