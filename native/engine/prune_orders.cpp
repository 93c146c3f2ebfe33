// Pruning of version orders: a writer precedes another of its key where the reverse would close a cycle of known edges.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "engine/prune.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }
constexpr std::size_t kAhead = 3;  // writers whose rows are fetched before they are needed

}  // namespace

// "a before b" is impossible if one of its edges goes against a known path.
std::optional<Edge> Pruner::closing_order(std::int32_t a, std::int32_t b) const {
  std::optional<Edge> found;
  const auto test = [&](const Edge& e) {
    if (!found && clocks.reaches(e.to, e.from) && (e.relation == Relation::rw || graph.judges(e.from))) found = e;
  };
  graph.ww_edges(a, b, test);
  if (found) return found;
  for (const std::int32_t r : readers_.of(a)) {
    graph.rw_closings(r, a, b, test);
    if (found) return found;
  }
  return found;
}

// The edges of all that is known to precede the writer are known or implied.
bool Pruner::is_settled(std::int32_t writer, std::int32_t key) const {
  const std::span<const std::uint64_t> settled = settled_pairs_[idx(key)], precede = precede_[idx(key)];
  const std::size_t words = words_of(key), first = place(writer) * words;
  for (std::size_t word = first; word < first + words; ++word)
    if ((precede[word] & ~settled[word]) != 0) return false;
  return true;
}

bool Pruner::settled(std::int32_t key) const {
  if (!is_decided(key)) return false;
  for (std::int32_t w = graph.problem.key_start[idx(key)]; w < graph.problem.key_start[idx(key) + 1]; ++w)
    if (!is_settled(w, key)) return false;
  return true;
}

void Pruner::unsettle(std::int32_t writer) {
  if (passes == 0) return;  // nothing is settled before the first pass, and every key is restless
  const std::int32_t key = key_of_[idx(writer)];
  restless_[idx(key)] = 1;
  const auto bits = settled_pairs_[idx(key)];
  if (bits.empty()) return;
  for (std::size_t word = place(writer) / 64; word < bits.size(); word += words_of(key)) bits[word] &= ~bit(writer);
}

// The writers in behind_ precede `after`.
void Pruner::note_behind(std::int32_t after, std::int32_t key) {
  const auto precede = precede_[idx(key)];
  const std::size_t words = words_of(key), self = place(after);
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t& known = precede[self * words + word];
    for (std::uint64_t fresh = behind_[word] & ~known; fresh != 0; fresh &= fresh - 1) {
      const std::size_t other = word * 64 + static_cast<std::size_t>(std::countr_zero(fresh));
      if ((precede[other * words + self / 64] & bit(after)) != 0) continue;
      --open_pairs_[idx(after)];
      --open_pairs_[idx(writers_[other])];
    }
    known |= behind_[word];
  }
}

Node Pruner::node_of(std::int32_t check, std::int32_t state, std::int32_t writer) const {
  return check < 0 ? graph.order_node(writer) : graph.node(idx(check), graph.problem.writer_txn[idx(writer)], state);
}

// Raises the row of a target by that of a node: what reaches one of the nodes is then one comparison away. A node that
// reaches another one has nothing to add.
void Pruner::raise(std::size_t target, Node node) {
  const auto row = std::span(combined_).subspan(target * clocks.columns(), clocks.columns());
  const Clocks::Mark mark = clocks.mark(node);
  if (row[idx(mark.column)] >= mark.position) return;
  top_ = std::max(top_, rank[idx(node)]);
  clocks.raise(row, node);
}

// One bit for each of 64 marks: whether what it marks reaches what the row was raised by.
std::uint64_t Pruner::reaching(const std::int32_t* row, const std::vector<Clocks::Mark>& marks, std::size_t word) {
  const Clocks::Mark* const mark = marks.data() + word * 64;
  const std::size_t count = std::min<std::size_t>(64, marks.size() - word * 64);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits |= std::uint64_t{row[mark[i].column] >= mark[i].position} << i;
  return bits;
}

// By the nodes from which edges of "`writer` before another" start.
void Pruner::raise_by(std::int32_t writer) {
  const Problem& p = graph.problem;
  for (const Row& row : ww_rows_)
    raise(row.target, node_of(row.check, row.state, writer));
  for (const std::int32_t r : readers_.of(writer))
    for (const Row& row : rw_rows_) raise(row.target, graph.node(idx(row.check), p.read_txn[idx(r)], row.state));
}

// The rows that raise_by will want: of a large history they are far apart.
void Pruner::prefetch_by(std::int32_t writer) const {
  for (const Row& row : ww_rows_) clocks.prefetch(node_of(row.check, row.state, writer));
  for (const std::int32_t r : readers_.of(writer))
    for (const Row& row : rw_rows_)
      clocks.prefetch(graph.node(idx(row.check), graph.problem.read_txn[idx(r)], row.state));
}

// Bit i of forced_: writers_[i] precedes `after`, because the reverse order would close a cycle. The rows that tell are
// combined first, so that there is one comparison per writer and target.
void Pruner::mark_forced(std::int32_t after) {
  combine_rows(after);
  for (std::size_t t = 0; t < targets_.size(); ++t)
    for (std::size_t word = 0; word < forced_.size(); ++word)
      forced_[word] |= reaching(combined_.data() + t * clocks.columns(), targets_[t].marks, word);
  const auto clear = [&](std::int32_t writer) { forced_[place(writer) / 64] &= ~bit(writer); };
  clear(after);
  // rw leaves out the reader itself: a writer that has read from `after` may owe its mark to its own row.
  for (const std::int32_t r : readers_.of(after))
    if (const std::int32_t own = own_writer[idx(r)]; own >= 0 && is_forced(own) && !impossible_order(after, own))
      clear(own);
}

void Pruner::combine_rows(std::int32_t after) {
  combined_.assign(targets_.size() * clocks.columns(), -1);
  top_ = -1;
  raise_by(after);
  forced_.assign((writers_.size() + 63) / 64, 0);
}

// The same without those that precede one of the others and have all their edges: their pairs with `after` are settled
// by those of the others. The latest come first, so that nearly all are left out; and nothing whose rank is beyond
// those of the rows is in them.
void Pruner::mark_latest_forced(std::int32_t after, std::span<const std::uint64_t> settled) {
  combine_rows(after);
  const std::size_t words = forced_.size(), count = writers_.size(), columns = clocks.columns();
  const auto readers = readers_.of(after);
  const auto may_owe_it_to_itself = [&](std::int32_t w) {
    return std::ranges::any_of(readers, [&](std::int32_t r) { return own_writer[idx(r)] == w; }) &&
           !impossible_order(after, w);
  };
  auto i = static_cast<std::size_t>(
      std::ranges::partition_point(lowest_, [&](std::int32_t least) { return least > top_; }) - lowest_.begin());
  hidden_.assign(words, 0);
  hidden_[place(after) / 64] |= bit(after);
  for (std::size_t word = i / 64; word < words; ++word, i = word * 64) {
    std::uint64_t left = ~hidden_[word] & (~std::uint64_t{0} << (i % 64));
    if (count - word * 64 < 64) left &= (std::uint64_t{1} << (count % 64)) - 1;
    while (left != 0) {
      const auto bit_number = static_cast<std::size_t>(std::countr_zero(left));
      const std::size_t at = word * 64 + bit_number;
      left &= left - 1;
      bool reaches = false;
      for (std::size_t t = 0; t < targets_.size(); ++t) {
        const Clocks::Mark mark = targets_[t].marks[at];
        reaches |= combined_[t * columns + idx(mark.column)] >= mark.position;
      }
      if (!reaches || may_owe_it_to_itself(writers_[at])) continue;
      forced_[word] |= std::uint64_t{1} << bit_number;
      for (std::size_t k = word; k < words; ++k) hidden_[k] |= settled[at * words + k];
      left &= ~hidden_[word];
    }
  }
}

// Adds an edge to one of the nodes of the writer at hand, unless the clocks or the edges just added to that node imply
// it: the node's row, raised by the rows of the new predecessors, answers that in one comparison.
bool Pruner::keep_unless_implied(const Edge& e) {
  if (clocks.reaches(e.from, e.to)) return false;
  const auto cover = static_cast<std::size_t>(std::ranges::find(covered_, e.to) - covered_.begin());
  const bool fresh = cover == covered_.size();
  if (fresh) covered_.push_back(e.to);
  const std::size_t columns = clocks.columns();
  if (cover_rows_.size() < covered_.size() * columns) cover_rows_.resize(covered_.size() * columns);
  const auto row = std::span(cover_rows_).subspan(cover * columns, columns);
  if (fresh) {
    std::ranges::fill(row, -1);
    clocks.raise(row, e.to);
  }
  const Clocks::Mark mark = clocks.mark(e.from);
  if (row[idx(mark.column)] >= mark.position) return false;
  clocks.raise(row, e.from);
  graph.edges.push_back(e);
  return true;
}

// By descending rank in the first pass, and so from then on: what precedes much comes last.
void Pruner::sort_writers() {
  const Problem& p = graph.problem;
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const auto first = by_rank_.begin() + p.key_start[idx(key)], last = by_rank_.begin() + p.key_start[idx(key) + 1];
    std::sort(first, last, [&](std::int32_t a, std::int32_t b) {
      return rank[idx(graph.order_node(a))] > rank[idx(graph.order_node(b))];
    });
    number_writers(key);
  }
}

void Pruner::number_writers(std::int32_t key) {
  const Problem& p = graph.problem;
  for (std::int32_t i = p.key_start[idx(key)]; i < p.key_start[idx(key) + 1]; ++i)
    place_[idx(by_rank_[idx(i)])] = i - p.key_start[idx(key)];
}

void Pruner::load(std::int32_t key) {
  const auto& starts = graph.problem.key_start;
  writers_ = {by_rank_.begin() + starts[idx(key)], by_rank_.begin() + starts[idx(key) + 1]};
  lowest_.assign(writers_.size(), std::numeric_limits<std::int32_t>::max());
  for (Target& target : targets_) {
    target.marks.resize(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      const Node node = node_of(target.check, target.state, writers_[i]);
      target.marks[i] = clocks.mark(node);
      lowest_[i] = std::min(lowest_[i], rank[idx(node)]);
    }
  }
  for (std::size_t i = 1; i < lowest_.size(); ++i) lowest_[i] = std::min(lowest_[i], lowest_[i - 1]);
}

bool Pruner::prune_key(std::int32_t key) {
  const bool restless = std::exchange(restless_[idx(key)], std::uint8_t{0}) != 0;
  if (writers_.size() < 2) return true;
  // The earliest writer first, so that what precedes the predecessors of the next ones is settled already.
  for (std::size_t self = writers_.size(); self-- > 0;) {
    const std::int32_t after = writers_[self];
    if (initial(after)) {
      // T0 precedes every writer: no way may lead back to its readers.
      if (!graph.forbids_ways_back || readers_.of(after).empty()) continue;
      mark_forced(after);
      const auto closed_by = std::ranges::find_if(writers_, [&](std::int32_t w) { return is_forced(w); });
      if (closed_by == writers_.end()) continue;
      closed = because(*closing_order(after, *closed_by));
      return false;
    }
    // SOUND BECAUSE it only leaves out what would be found a second time: if the reverse of a known order is
    // impossible, then because a known path goes against one of its edges, and the edges of the known order close a
    // cycle with it. Not so where a way back may close between writers whose order is known.
    const bool ordered = open_pairs_[idx(after)] == 0 && !graph.forbids_ways_back;
    if (!restless && (ordered || is_quiet_writer(after))) continue;
    if (ordered && is_settled(after, key)) continue;
    budget_.poll();
    if (self >= kAhead && open_pairs_[idx(writers_[self - kAhead])] != 0) prefetch_by(writers_[self - kAhead]);
    if (orders_compose_ && !settled_pairs_[idx(key)].empty())
      mark_latest_forced(after, settled_pairs_[idx(key)]);
    else
      mark_forced(after);
    order_behind(after, key);
  }
  return true;
}

// Adds the edges of "`before` before `after`" for all forced ones.
void Pruner::order_behind(std::int32_t after, std::int32_t key) {
  const std::size_t words = words_of(key), known = graph.edges.size();
  const auto settled = settled_pairs_[idx(key)];
  const auto row = [&](std::int32_t writer) {
    return settled.begin() + static_cast<std::ptrdiff_t>(place(writer) * words);
  };
  const std::int32_t initial_writer = graph.problem.key_start[idx(key)];
  forced_[place(initial_writer) / 64] |= bit(initial_writer);
  covered_.clear();
  behind_.assign(words, 0);
  // The latest predecessors first, so that the edges of most earlier ones are implied by those already kept.
  for (std::size_t word = 0; word < words; ++word)
    while (const std::uint64_t left = forced_[word] & ~behind_[word]) {
      const std::int32_t before = writers_[word * 64 + static_cast<std::size_t>(std::countr_zero(left))];
      behind_[word] |= bit(before);
      if (!settled.empty()) {
        if (orders_compose_)
          std::transform(behind_.begin(), behind_.end(), row(before), behind_.begin(), std::bit_or());
        if ((row(after)[static_cast<std::ptrdiff_t>(word)] & bit(before)) != 0) continue;
      }
      bool fresh = false;
      const auto add = [&](const Edge& e) { fresh |= keep_unless_implied(e); };
      graph.ww_edges(before, after, add);
      for (const std::int32_t r : readers_.of(before)) graph.rw_edges(r, before, after, add);
      forced_orders += static_cast<std::int64_t>(fresh);
    }
  if (!settled.empty()) {
    std::transform(behind_.begin(), behind_.end(), row(after), row(after), std::bit_or());
    note_behind(after, key);
  }
  gained_ += static_cast<std::int64_t>(graph.edges.size() - known);
}

Pruner::Pairs Pruner::pairs() {
  Pairs found;
  std::vector<std::vector<std::uint64_t>> precede;  // per place j: forced_ of writers_[j]
  const auto has = [](const std::vector<std::uint64_t>& bits, std::size_t i) {
    return (bits[i / 64] >> (i % 64) & 1) != 0;
  };
  for (std::int32_t key = 0; graph.uses_orders && key < graph.problem.keys; ++key) {
    load(key);
    precede.resize(writers_.size());
    for (std::size_t j = 0; j < writers_.size(); ++j) {
      budget_.poll();
      mark_forced(writers_[j]);
      precede[j] = forced_;
    }
    for (std::size_t i = 0; i < writers_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (initial(writers_[i]) || initial(writers_[j])) continue;
        const bool up = has(precede[j], i), down = has(precede[i], j);
        auto& list = up || down ? found.settled : found.open;
        const bool i_first = up || (!down && writers_[i] < writers_[j]);
        list.push_back(writers_[i_first ? i : j]);
        list.push_back(writers_[i_first ? j : i]);
      }
  }
  return found;
}

}  // namespace isolang
