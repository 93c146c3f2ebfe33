// Pruning of version orders: a writer precedes another of its key where the reverse would close a cycle of known edges.
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/key_pruner.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// "a before b" is impossible if one of its edges goes against a known path.
std::optional<Edge> KeyPruner::closing_order(std::int32_t a, std::int32_t b) const {
  std::optional<Edge> found;
  const auto test = [&](const Edge& e) {
    if (!found && clocks_.reaches(e.to, e.from) && (e.relation == Relation::rw || graph_.judges(e.from))) found = e;
  };
  graph_.ww_edges(a, b, test);
  if (found) return found;
  for (const std::int32_t r : pruner_.readers_.of(a)) {
    graph_.rw_closings(r, a, b, test);
    if (found) return found;
  }
  return found;
}

// One bit for each of 64 marks: whether what it marks reaches what the row was raised by.
std::uint64_t KeyPruner::reaching(const std::int32_t* row, const std::vector<Clocks::Mark>& marks, std::size_t word) {
  const Clocks::Mark* const mark = marks.data() + word * 64;
  const std::size_t count = std::min<std::size_t>(64, marks.size() - word * 64);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits |= std::uint64_t{row[mark[i].column] >= mark[i].position} << i;
  return bits;
}

// The nodes from which edges of "`writer` before another" start, each with its target.
void KeyPruner::find_starts(std::int32_t writer) {
  starts_.begin(targets_.size());
  for (const Row& row : ww_rows_) starts_.add(row.target, node_of(row.check, row.state, writer));
  for (const std::int32_t r : pruner_.readers_.of(writer))
    for (const Row& row : rw_rows_)
      starts_.add(row.target, graph_.node(idx(row.check), graph_.problem.read_txn[idx(r)], row.state));
}

// Bit i of forced_: writers_[i] precedes `after`, because the reverse order would close a cycle.
void KeyPruner::mark_forced(std::int32_t after) {
  find_starts(after);
  std::ranges::fill(forced_, 0);
  for (std::size_t t = 0; t < targets_.size(); ++t)
    for (std::size_t word = 0; word < forced_.size(); ++word)
      forced_[word] |= reaching(starts_.row(t), targets_[t].marks, word);
  const auto clear = [&](std::int32_t writer) { forced_[pairs_.place(writer) / 64] &= ~pairs_.bit(writer); };
  clear(after);
  // rw leaves out the reader itself: a writer that has read from `after` may owe its mark to its own row.
  for (const std::int32_t r : pruner_.readers_.of(after))
    if (const std::int32_t w = pruner_.own_writer[idx(r)]; w >= 0 && is_forced(w) && !impossible_order(after, w))
      clear(w);
}

// The same without those that precede one of the others and have all their edges: their pairs with `after` are settled
// by those of the others. The latest come first, so that nearly all are left out; and nothing of a higher rank than all
// starts reaches one.
template <std::size_t kWords>
void KeyPruner::mark_latest_forced(std::size_t self) {
  const std::int32_t after = writers_[self];
  find_starts(after);
  const std::size_t words = kWords > 0 ? kWords : forced_.size();
  const std::uint64_t* const settled = settled_.data();
  std::uint64_t *const forced = forced_.data(), *const hidden = hidden_.data();
  std::fill_n(forced, words, 0);
  std::fill_n(hidden, words, 0);
  hidden[self / 64] |= std::uint64_t{1} << (self % 64);
  const auto readers = pruner_.readers_.of(after);
  const auto may_owe_it_to_itself = [&](std::int32_t w) {
    return std::ranges::any_of(readers, [&](std::int32_t r) { return pruner_.own_writer[idx(r)] == w; }) &&
           !impossible_order(after, w);
  };
  const std::size_t first = first_before(starts_.top());
  for (std::size_t word = first / 64; word < words; ++word) {
    std::uint64_t left = writers_from(first, word) & ~hidden[word];
    while (left != 0) {
      const auto bit_number = static_cast<std::size_t>(std::countr_zero(left));
      const std::size_t at = word * 64 + bit_number;
      left &= left - 1;
      const bool reached = starts_.reached([&](std::size_t t) { return targets_[t].marks[at]; });
      if (!reached || may_owe_it_to_itself(writers_[at])) continue;
      forced[word] |= std::uint64_t{1} << bit_number;
      for (std::size_t k = word; k < words; ++k) hidden[k] |= settled[at * words + k];
      left &= ~hidden[word];
    }
  }
}

// Adds an edge to one of the nodes of the writer at hand, unless the clocks or the edges just added to that node imply
// it.
bool KeyPruner::keep_unless_implied(const Edge& e) {
  if (clocks_.reaches(e.from, e.to)) return false;
  auto cover = std::ranges::find(covered_, e.to, &Covered::node);
  if (cover == covered_.end()) cover = covered_.insert(cover, {e.to});
  if (cover->sources < Covered::kFew) {
    const auto sources = std::span(cover->source).first(cover->sources);
    if (std::ranges::any_of(sources, [&](Node v) { return clocks_.reaches(e.from, v); })) return false;
    cover->source[cover->sources++] = e.from;
    findings_->edges.push_back(e);
    return true;
  }
  const std::size_t columns = clocks_.columns();
  if (cover_rows_.size() < covered_.size() * columns) cover_rows_.resize(covered_.size() * columns);
  const auto at = static_cast<std::size_t>(cover - covered_.begin());
  const auto row = std::span(cover_rows_).subspan(at * columns, columns);
  if (cover->sources == Covered::kFew) {
    std::ranges::fill(row, -1);
    for (const Node v : cover->source) clocks_.raise(row, v);
    ++cover->sources;
  }
  const Clocks::Mark mark = clocks_.mark(e.from);
  if (row[idx(mark.column)] >= mark.position) return false;
  clocks_.raise(row, e.from);
  findings_->edges.push_back(e);
  return true;
}

bool KeyPruner::prune_orders() {
  const bool restless = std::exchange(pruner_.restless_[idx(key_)], std::uint8_t{0}) != 0;
  if (writers_.size() < 2) return true;
  load_settled();
  // The earliest writer first, so that what precedes the predecessors of the next ones is settled already.
  for (std::size_t self = writers_.size(); self-- > 0;) {
    const std::int32_t after = writers_[self];
    if (pruner_.initial(after)) {
      // T0 precedes every writer: no way may lead back to its readers.
      if (!graph_.forbids_ways_back || pruner_.readers_.of(after).empty()) continue;
      mark_forced(after);
      const auto closed_by = std::ranges::find_if(writers_, [&](std::int32_t w) { return is_forced(w); });
      if (closed_by == writers_.end()) continue;
      findings_->closed = pruner_.because(*closing_order(after, *closed_by));
      return false;
    }
    // SOUND BECAUSE it only leaves out what would be found a second time: if the reverse of a known order is
    // impossible, then because a known path goes against one of its edges, and the edges of the known order close a
    // cycle with it. Not so where a way back may close between writers whose order is known.
    const bool ordered = pairs_.open(after) == 0 && !graph_.forbids_ways_back;
    if (!restless && (ordered || pruner_.is_quiet_writer(after))) continue;
    if (ordered && pairs_.is_settled(key_, after)) continue;
    budget_->poll();
    const bool latest = orders_compose_ && !settled_.empty();
    if (latest && forced_.size() == 1) {  // nearly every key
      mark_latest_forced<1>(self);
      order_behind<1>(self);
      continue;
    }
    if (latest)
      mark_latest_forced<0>(self);
    else
      mark_forced(after);
    order_behind<0>(self);
  }
  note_unsettled();
  return true;
}

void KeyPruner::load_settled() {
  const auto precede = pairs_.precede(key_);
  const std::span<const std::uint64_t> unsettled = pairs_.unsettled(key_);
  settled_.resize(precede.size());
  for (std::size_t i = 0; i < precede.size(); i += unsettled.size())
    for (std::size_t k = 0; k < unsettled.size(); ++k) settled_[i + k] = precede[i + k] & ~unsettled[k];
}

void KeyPruner::note_unsettled() {
  const auto precede = pairs_.precede(key_);
  const auto unsettled = pairs_.unsettled(key_);
  for (std::size_t k = 0; k < unsettled.size(); ++k) {
    std::uint64_t word = 0;
    for (std::size_t i = k; i < precede.size(); i += unsettled.size()) word |= precede[i] & ~settled_[i];
    unsettled[k] = word;
  }
}

// Adds the edges of "`before` before `after`" for all forced ones.
template <std::size_t kWords>
void KeyPruner::order_behind(std::size_t self) {
  const std::int32_t after = writers_[self];
  const std::size_t words = kWords > 0 ? kWords : forced_.size(), known = findings_->edges.size();
  const bool settles = kWords > 0 || !settled_.empty(), composes = kWords > 0 || orders_compose_;
  std::uint64_t *const forced = forced_.data(), *const behind = behind_.data(), *const settled = settled_.data();
  const std::size_t initial = pairs_.place(graph_.problem.key_start[idx(key_)]);
  forced[initial / 64] |= std::uint64_t{1} << (initial % 64);
  covered_.clear();
  std::fill_n(behind, words, 0);
  // The latest predecessors first, so that the edges of most earlier ones are implied by those already kept.
  for (std::size_t word = 0; word < words; ++word)
    while (const std::uint64_t left = forced[word] & ~behind[word]) {
      const std::size_t at = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      const std::uint64_t bit = left & -left;
      behind[word] |= bit;
      if (settles) {
        for (std::size_t k = 0; k < words && composes; ++k) behind[k] |= settled[at * words + k];
        if ((settled[self * words + word] & bit) != 0) continue;
      }
      const std::int32_t before = writers_[at];
      bool fresh = false;
      const auto add = [&](const Edge& e) { fresh |= keep_unless_implied(e); };
      graph_.ww_edges(before, after, add);
      for (const std::int32_t r : pruner_.readers_.of(before)) graph_.rw_edges(r, before, after, add);
      findings_->forced_orders += static_cast<std::int64_t>(fresh);
    }
  if (settles) {
    for (std::size_t k = 0; k < words; ++k) settled[self * words + k] |= behind[k];
    pairs_.note(key_, after, behind_);
  }
  findings_->gained += static_cast<std::int64_t>(findings_->edges.size() - known);
}

void KeyPruner::list_pairs(std::int32_t key, Budget& budget, Pruner::Pairs& pairs) {
  load(key);
  std::vector<std::vector<std::uint64_t>> precede;  // per place j: forced_ of writers_[j]
  for (const std::int32_t writer : writers_) {
    budget.poll();
    mark_forced(writer);
    precede.push_back(forced_);
  }
  const auto has = [&](std::size_t j, std::size_t i) { return (precede[j][i / 64] >> (i % 64) & 1) != 0; };
  for (std::size_t i = 0; i < writers_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (pruner_.initial(writers_[i]) || pruner_.initial(writers_[j])) continue;
      const bool up = has(j, i), down = has(i, j);
      auto& list = up || down ? pairs.settled : pairs.open;
      const bool i_first = up || (!down && writers_[i] < writers_[j]);
      list.push_back(writers_[i_first ? i : j]);
      list.push_back(writers_[i_first ? j : i]);
    }
}

}  // namespace isolang
