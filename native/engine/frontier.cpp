#include "engine/frontier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t kFirstWidth = 256, kWider = 4;
constexpr std::size_t kMaxChains = 512, kMaxTable = std::size_t{1} << 26;  // 64 Mi cells: rows of counts, clocks
constexpr std::int32_t kMaxCell = std::numeric_limits<std::int16_t>::max();

}  // namespace

Frontiers::Frontiers(const Timeline& line, Budget& budget, std::size_t max_bytes)
    : line_(line), budget_(budget), max_bytes_(max_bytes) {
  const Problem& p = line.problem;
  for (std::int32_t t = 0; t < p.n; ++t)
    if (line.usable(t) && line.optional(t)) return;
  set_chains();
  if (chains_ == 0 || chains_ > kMaxChains) return;
  set_values();
  if (match_.size() > kMaxTable) return;
  set_events();
  if (events_.size() * values_ * 3 > kMaxTable || values_ > idx(kMaxCell)) return;
  if (events_.size() > idx(kMaxCell)) return;
  if (!set_needs()) return;
  set_counts();
  cells_ = chains_ + idx(p.keys);
  log_.resize(p.writer_txn.size() + 2 * events_.size() + 2);
  for (std::size_t i = 0; i < log_.size(); ++i) log_[i] = i == 0 ? -30.0F : std::log(static_cast<float>(i));
  applies_ = true;
  width = kFirstWidth;
  start_pass();
}

// Sessions, as far as their events are ordered by the known edges; elsewhere a new chain begins.
void Frontiers::set_chains() {
  const Problem& p = line_.problem;
  std::vector<std::int32_t> chain_of_session(idx(p.sessions), -1);
  for (std::int32_t t = 0; t < p.n; ++t) {
    if (!line_.usable(t)) continue;
    std::int32_t& chain = chain_of_session[idx(p.session[idx(t)])];
    if (chain < 0 || !line_.pruner.clocks.reaches(chain_nodes_[idx(chain)].back(), line_.read_node(t))) {
      chain = static_cast<std::int32_t>(chain_nodes_.size());
      chain_nodes_.emplace_back();
    }
    chain_nodes_[idx(chain)].push_back(line_.read_node(t));
    if (line_.apart()) chain_nodes_[idx(chain)].push_back(line_.write_node(t));
  }
  chains_ = chain_nodes_.size();
}

// Writers of one class are one value. A key with reads that make finer distinctions has one value per writer.
void Frontiers::set_values() {
  const Problem& p = line_.problem;
  fine_.assign(idx(p.keys), 0);
  for (std::int32_t r = 0; r < p.reads(); ++r)
    if (line_.read_class(r) < 0) fine_[idx(p.read_key[idx(r)])] = 1;
  writer_value_.resize(p.writer_txn.size());
  std::vector<std::int32_t> classes;
  for (std::int32_t key = 0; key < p.keys; ++key) {
    value_start_.push_back(static_cast<std::int32_t>(values_));
    classes.clear();
    for (std::int32_t w = p.key_start[idx(key)]; w < p.key_start[idx(key) + 1]; ++w) {
      const std::int32_t c = fine_[idx(key)] ? w : line_.writer_class(w);
      auto at = std::ranges::find(classes, c);
      if (at == classes.end()) at = classes.insert(at, c);
      writer_value_[idx(w)] = static_cast<std::int32_t>(values_ + static_cast<std::size_t>(at - classes.begin()));
    }
    values_ += classes.size();
  }
  value_start_.push_back(static_cast<std::int32_t>(values_));
  for (std::int32_t r = 0; r < p.reads(); ++r) {
    const std::int32_t key = p.read_key[idx(r)];
    match_start_.push_back(static_cast<std::int64_t>(match_.size()));
    const auto row = match_.size();
    match_.resize(row + idx(value_start_[idx(key) + 1] - value_start_[idx(key)]), 0);
    if (match_.size() > kMaxTable) return;
    for (std::int32_t w = p.key_start[idx(key)]; w < p.key_start[idx(key) + 1]; ++w)
      if (line_.sees(r, w)) match_[row + idx(writer_value_[idx(w)] - value_start_[idx(key)])] = 1;
  }
}

void Frontiers::set_events() {
  const Problem& p = line_.problem;
  for (const auto& nodes : chain_nodes_) {
    chain_start_.push_back(static_cast<std::int32_t>(events_.size()));
    for (const Node v : nodes) {
      const std::int32_t txn = line_.graph.transaction_of(v);
      Event e{v, 0, 0, static_cast<std::int32_t>(reads_.size()), 0, static_cast<std::int32_t>(writes_.size()), 0, 0, 0, false};
      if (v == line_.read_node(txn))
        for (const std::int32_t r : line_.reads.of(txn)) {
          reads_.push_back({p.read_key[idx(r)], static_cast<std::int32_t>(match_start_[idx(r)])});
          ++e.reads;
        }
      e.lock = e.write;
      for (const std::int32_t w : line_.writes.of(txn)) {
        writes_.push_back({line_.key_of(w), writer_value_[idx(w)]});
        if (v == line_.write_node(txn)) ++e.writes;
        ++e.locks;
      }
      e.opens = v != line_.write_node(txn);
      events_.push_back(e);
    }
  }
  chain_start_.push_back(static_cast<std::int32_t>(events_.size()));
}

// Which events of the other chains precede each event, by the known edges.
bool Frontiers::set_needs() {
  const auto nodes = static_cast<std::size_t>(line_.graph.nodes());
  if (nodes * chains_ > kMaxTable) return false;
  std::vector<Cell> clock(nodes * chains_, 0);
  std::vector<std::int32_t> chain_of(nodes, -1), event_of(nodes, -1);
  for (std::size_t c = 0; c < chains_; ++c)
    for (std::int32_t i = chain_start_[c]; i < chain_start_[c + 1]; ++i) {
      chain_of[idx(events_[idx(i)].node)] = static_cast<std::int32_t>(c);
      event_of[idx(events_[idx(i)].node)] = i;
    }
  for (const Node v : line_.pruner.order) {
    Cell* const row = clock.data() + idx(v) * chains_;
    for (const Node u : line_.before.of(v)) {
      const Cell* const other = clock.data() + idx(u) * chains_;
      for (std::size_t c = 0; c < chains_; ++c) row[c] = std::max(row[c], other[c]);
      if (const std::int32_t c = chain_of[idx(u)]; c >= 0)
        row[c] = std::max(row[c], static_cast<Cell>(event_of[idx(u)] - chain_start_[idx(c)] + 1));
    }
    budget_.poll();
  }
  for (std::size_t c = 0; c < chains_; ++c)
    for (std::int32_t i = chain_start_[c]; i < chain_start_[c + 1]; ++i) {
      Event& e = events_[idx(i)];
      e.need = static_cast<std::int32_t>(needs_.size());
      const Cell* const row = clock.data() + idx(e.node) * chains_;
      const Cell* const last = i > chain_start_[c] ? clock.data() + idx(events_[idx(i - 1)].node) * chains_ : nullptr;
      for (std::size_t other = 0; other < chains_; ++other)
        if (other != c && row[other] > (last != nullptr ? last[other] : 0))
          needs_.push_back({static_cast<std::int32_t>(other), row[other]});
      e.needs = static_cast<std::int32_t>(needs_.size()) - e.need;
    }
  return true;
}

// left_: for each event (and the end of each chain) what it and those after it in its chain do to each value.
void Frontiers::set_counts() {
  const std::size_t row = 3 * values_;
  left_.assign((events_.size() + chains_) * row, 0);
  for (std::size_t c = 0; c < chains_; ++c)
    for (std::int32_t i = chain_start_[c + 1] - 1; i >= chain_start_[c]; --i) {
      const Event& e = events_[idx(i)];
      std::int16_t* const left = left_.data() + (idx(i) + c) * row;
      std::copy_n(left + row, row, left);
      for (std::int32_t w = 0; w < e.writes; ++w) ++left[idx(writes_[idx(e.write + w)].value)];
      for (std::int32_t r = 0; r < e.reads; ++r) {
        const Read& read = reads_[idx(e.read + r)];
        const bool modifies = (!e.opens || line_.locks) && std::any_of(writes_.begin() + e.lock, writes_.begin() + e.lock + e.locks,
                                                                       [&](const Write& w) { return w.key == read.key; });
        for (std::int32_t v = value_start_[idx(read.key)]; v < value_start_[idx(read.key) + 1]; ++v)
          if (match_[idx(read.first_value + v - value_start_[idx(read.key)])]) {
            ++left[values_ + idx(v)];
            left[2 * values_ + idx(v)] = static_cast<std::int16_t>(left[2 * values_ + idx(v)] + modifies);
          }
      }
    }
}

// --- states ------------------------------------------------------------------------------------------------------

void Frontiers::load(const Cell* cells, std::int32_t done) {
  Scratch& s = parent_;
  s.cells.assign(cells, cells + cells_);
  s.done = done;
  s.writers.assign(values_, 0);
  s.readers.assign(values_, 0);
  s.modifiers.assign(values_, 0);
  s.locked.assign(fine_.size(), 0);
  for (std::size_t c = 0; c < chains_; ++c) {
    const std::size_t at = idx(chain_start_[c]) + cells[c];
    const std::int16_t* const left = left_.data() + (at + c) * 3 * values_;
    const auto add = [&](std::vector<std::int16_t>& sum, const std::int16_t* row) {
      std::int16_t* const out = sum.data();
      for (std::size_t v = 0; v < values_; ++v) out[v] = static_cast<std::int16_t>(out[v] + row[v]);
    };
    add(s.writers, left);
    add(s.readers, left + values_);
    add(s.modifiers, left + 2 * values_);
    if (cells[c] == 0 || !line_.locks || !events_[at - 1].opens) continue;
    const Event& open = events_[at - 1];
    for (std::int32_t w = 0; w < open.locks; ++w) s.locked[idx(writes_[idx(open.lock + w)].key)] = 1;
  }
}

bool Frontiers::can_run(const Scratch& s, const Event& e) const {
  for (std::int32_t i = e.need; i < e.need + e.needs; ++i)
    if (s.cells[idx(needs_[idx(i)].chain)] < needs_[idx(i)].count) return false;
  for (std::int32_t i = e.read; i < e.read + e.reads; ++i)
    if (const Read& read = reads_[idx(i)]; !match_[idx(read.first_value + s.cells[chains_ + idx(read.key)])]) return false;
  if (e.opens && line_.locks)
    for (std::int32_t i = e.lock; i < e.lock + e.locks; ++i)
      if (s.locked[idx(writes_[idx(i)].key)]) return false;
  return true;
}

// May an event that can run do so at once? SOUND BECAUSE, given a completion in which it runs later, it can be moved to
// the front: nothing that precedes it is left, its reads see what they must, and for the others
//   without writes and without locks nothing changes;
//   with writes, the reads that could tell are those of the value that it replaces (between here and its old place) and
//   of its own (after either place): there are none but its own. A lock is held for no longer than before, if the writes
//   follow at once; they can, for they wait for nothing else, and nobody holds a lock here (can_run).
// It would be wrong to run a write of the value that is already there: another write of it may be needed later.
bool Frontiers::harmless(const Scratch& s, std::int32_t chain) const {
  const Event& e = *next(s, chain);
  if (e.writes == 0 && (e.locks == 0 || !line_.locks)) return true;
  if (e.writes == 0) {
    const Event& closing = events_[static_cast<std::size_t>(&e - events_.data()) + 1];
    for (std::int32_t i = closing.need; i < closing.need + closing.needs; ++i)
      if (s.cells[idx(needs_[idx(i)].chain)] < needs_[idx(i)].count) return false;
  }
  for (std::int32_t i = e.lock; i < e.lock + e.locks; ++i) {
    const Write& w = writes_[idx(i)];
    for (const std::int32_t value : {current(s, w.key), w.value}) {
      std::int32_t own = 0;
      for (std::int32_t k = e.read; k < e.read + e.reads; ++k)
        if (const Read& read = reads_[idx(k)]; read.key == w.key)
          own += match_[idx(read.first_value + value - value_start_[idx(w.key)])];
      if (s.readers[idx(value)] > own) return false;
    }
  }
  return true;
}

// Is there a read left that can never see this value? Where each read wants one value: it is not there and nobody will
// write it; or more transactions will replace this value than it has instances to be replaced (each of them reads the
// instance that it replaces, so no two the same).
bool Frontiers::impossible(const Scratch& s, std::int32_t key, std::int32_t value) const {
  if (fine_[idx(key)]) return false;
  const std::int32_t instances = s.writers[idx(value)] + (current(s, key) == value);
  return (instances == 0 && s.readers[idx(value)] > 0) || s.modifiers[idx(value)] > instances;
}

bool Frontiers::run_event(Scratch& s, std::int32_t chain) {
  const Event& e = *next(s, chain);
  if (replay_) ran_.push_back(chain);
  ++s.cells[idx(chain)];
  ++s.done;
  for (std::int32_t i = e.read; i < e.read + e.reads; ++i) {
    const Read& read = reads_[idx(i)];
    const std::int32_t first = value_start_[idx(read.key)], last = value_start_[idx(read.key) + 1];
    const bool modifies = (!e.opens || line_.locks) &&
                          std::any_of(writes_.begin() + e.lock, writes_.begin() + e.lock + e.locks,
                                      [&](const Write& w) { return w.key == read.key; });
    for (std::int32_t v = first; v < last; ++v)
      if (match_[idx(read.first_value + v - first)]) {
        --s.readers[idx(v)];
        s.modifiers[idx(v)] = static_cast<std::int16_t>(s.modifiers[idx(v)] - modifies);
      }
  }
  for (std::int32_t i = e.lock; i < e.lock + e.locks && line_.locks; ++i) s.locked[idx(writes_[idx(i)].key)] = e.opens;
  for (std::int32_t i = e.write; i < e.write + e.writes; ++i) {
    const Write& w = writes_[idx(i)];
    const std::int32_t old = current(s, w.key);
    --s.writers[idx(w.value)];
    s.cells[chains_ + idx(w.key)] = static_cast<Cell>(w.value - value_start_[idx(w.key)]);
    if (impossible(s, w.key, old) || impossible(s, w.key, w.value)) return false;
  }
  return true;
}

bool Frontiers::close(Scratch& s) {
  for (bool again = true; again;) {
    again = false;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(chains_); ++c)
      for (const Event* e = next(s, c); e != nullptr && can_run(s, *e) && harmless(s, c); e = next(s, c)) {
        if (!run_event(s, c)) return false;
        again = true;
      }
  }
  return true;
}

// Is there an event that can never run, even if values stayed once they are there? SOUND BECAUSE the events of any
// completion, taken in its order, can all run so. (The delete relaxation of planning: Bonet and Geffner, AIJ 129, 2001.)
bool Frontiers::stuck(const Scratch& s) {
  seen_.assign(values_, 0);
  for (std::int32_t key = 0; key < static_cast<std::int32_t>(fine_.size()); ++key)
    if (value_start_[idx(key)] < value_start_[idx(key) + 1]) seen_[idx(current(s, key))] = 1;
  reached_.assign(s.cells.begin(), s.cells.begin() + static_cast<std::ptrdiff_t>(chains_));
  const auto can = [&](const Event& e) {
    for (std::int32_t i = e.need; i < e.need + e.needs; ++i)
      if (reached_[idx(needs_[idx(i)].chain)] < needs_[idx(i)].count) return false;
    for (std::int32_t i = e.read; i < e.read + e.reads; ++i) {
      const Read& read = reads_[idx(i)];
      const std::int32_t first = value_start_[idx(read.key)], count = value_start_[idx(read.key) + 1] - first;
      bool found = false;
      for (std::int32_t v = 0; v < count && !found; ++v) found = seen_[idx(first + v)] && match_[idx(read.first_value + v)];
      if (!found) return false;
    }
    return true;
  };
  bool again = true, all = false;
  while (again && !all) {
    again = false;
    all = true;
    for (std::size_t c = 0; c < chains_; ++c) {
      const std::int32_t length = chain_start_[c + 1] - chain_start_[c];
      while (reached_[c] < length) {
        const Event& e = events_[idx(chain_start_[c] + reached_[c])];
        if (!can(e)) break;
        for (std::int32_t i = e.write; i < e.write + e.writes; ++i) seen_[idx(writes_[idx(i)].value)] = 1;
        ++reached_[c];
        again = true;
      }
      all = all && reached_[c] == length;
    }
  }
  return !all;
}

// The logarithm of a guess at the number of completions: the interleavings of what is left of the chains, times for each
// read that is left the share of the instances of its value.
float Frontiers::promise(const Scratch& s) const {
  const auto factorial = [&](std::size_t n) { return n < 2 ? 0.0F : static_cast<float>(n) * (log_[n] - 1); };
  float sum = factorial(events_.size() - idx(s.done));
  for (std::size_t c = 0; c < chains_; ++c) sum -= factorial(idx(chain_start_[c + 1] - chain_start_[c]) - s.cells[c]);
  for (std::size_t key = 0; key < fine_.size(); ++key) {
    std::int32_t all = 1, readers = 0;
    const std::int32_t first = value_start_[key], last = value_start_[key + 1], now = first + s.cells[chains_ + key];
    for (std::int32_t v = first; v < last; ++v) {
      all += s.writers[idx(v)];
      if (s.readers[idx(v)] == 0) continue;
      readers += s.readers[idx(v)];
      sum += static_cast<float>(s.readers[idx(v)]) * log_[idx(s.writers[idx(v)] + (v == now))];
    }
    sum -= static_cast<float>(readers) * log_[idx(all)];
  }
  return sum;
}

namespace {

std::uint64_t hash_of(const std::uint16_t* cells, std::size_t count) {
  std::uint64_t h = 0x9E3779B97F4A7C15ULL;
  for (; count >= 4; cells += 4, count -= 4) {
    std::uint64_t word;
    std::memcpy(&word, cells, sizeof word);
    h = (h ^ word) * 0xFF51AFD7ED558CCDULL;
    h ^= h >> 32;
  }
  for (; count > 0; ++cells, --count) h = (h ^ *cells) * 0xC4CEB9FE1A85EC53ULL;
  return h ^ (h >> 29);
}

}  // namespace

void Frontiers::insert(const Scratch& s, std::uint32_t parent, std::int32_t chain) {
  Layer& layer = layers_[idx(s.done)];
  const std::size_t before = layer.bytes();
  if (layer.size() >= static_cast<std::size_t>(4 * width)) keep_best(layer);
  if (2 * (layer.size() + 1) > layer.table.size()) {
    layer.table.assign(std::bit_ceil(std::max<std::size_t>(64, 4 * layer.size())), 0);
    for (std::size_t i = 0; i < layer.size(); ++i) {
      std::size_t slot = hash_of(layer.cells.data() + i * cells_, cells_);
      while (layer.table[slot &= layer.table.size() - 1] != 0) ++slot;
      layer.table[slot] = static_cast<std::int32_t>(i) + 1;
    }
  }
  std::size_t slot = hash_of(s.cells.data(), cells_);
  for (; layer.table[slot &= layer.table.size() - 1] != 0; ++slot)
    if (std::equal(s.cells.begin(), s.cells.end(), layer.cells.begin() + static_cast<std::ptrdiff_t>(idx(layer.table[slot] - 1) * cells_)))
      return;
  layer.table[slot] = static_cast<std::int32_t>(layer.size()) + 1;
  layer.cells.insert(layer.cells.end(), s.cells.begin(), s.cells.end());
  layer.promise.push_back(promise(s));
  layer.origin.push_back(static_cast<std::uint32_t>(trail_.size()));
  trail_.push_back({parent, chain});
  held_ += layer.bytes() - before;
  if (idx(s.done) == events_.size()) goal_ = layer.origin.back();
}

void Frontiers::keep_best(Layer& layer) {
  if (layer.size() <= static_cast<std::size_t>(width)) return;
  cut_ = true;
  std::vector<std::int32_t> order(layer.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + width, order.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = layer.promise[idx(a)], y = layer.promise[idx(b)];
    return x != y ? x > y : a < b;
  });
  order.resize(static_cast<std::size_t>(width));
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t from = idx(order[i]);
    std::copy_n(layer.cells.begin() + static_cast<std::ptrdiff_t>(from * cells_), cells_,
                layer.cells.begin() + static_cast<std::ptrdiff_t>(i * cells_));
    layer.promise[i] = layer.promise[from];
    layer.origin[i] = layer.origin[from];
  }
  layer.cells.resize(order.size() * cells_);
  layer.promise.resize(order.size());
  layer.origin.resize(order.size());
  layer.table.clear();
}

void Frontiers::release(Layer& layer) {
  held_ -= layer.bytes();
  layer = {};
}

void Frontiers::start_pass() {
  layers_.assign(events_.size() + 1, {});
  held_ = 0;
  trail_.clear();
  layer_ = state_ = 0;
  cut_ = false;
  ++passes;
  std::vector<Cell> cells(cells_, 0);
  const Problem& p = line_.problem;
  for (std::int32_t key = 0; key < p.keys; ++key)
    if (const std::int32_t w = p.key_start[idx(key)]; w < p.key_start[idx(key) + 1])
      cells[chains_ + idx(key)] = static_cast<Cell>(writer_value_[idx(w)] - value_start_[idx(key)]);
  load(cells.data(), 0);
  // T0 has written already.
  for (std::int32_t key = 0; key < p.keys; ++key)
    for (std::int32_t v = value_start_[idx(key)]; v < value_start_[idx(key) + 1]; ++v)
      if (impossible(parent_, key, v)) return;
  if (close(parent_)) insert(parent_, 0, -1);
}

Frontiers::Answer Frontiers::next_pass() {
  if (!cut_) return Answer::refuted;
  width *= kWider;
  if (static_cast<std::size_t>(width) * cells_ * sizeof(Cell) > max_bytes_) return Answer::gave_up;
  start_pass();
  return Answer::open;
}

Frontiers::Answer Frontiers::run(std::int64_t expansions) {
  while (expansions > 0) {
    if (goal_) return Answer::found;
    if (layer_ >= layers_.size()) {
      if (const Answer answer = next_pass(); answer != Answer::open) return answer;
      continue;
    }
    Layer& layer = layers_[layer_];
    if (state_ == 0) {
      const std::size_t before = layer.bytes();
      keep_best(layer);
      layer.table = {};  // nothing comes in any more
      layer.cells.shrink_to_fit();
      held_ -= before - layer.bytes();
    }
    if (state_ >= layer.size()) {
      release(layer);
      ++layer_;
      state_ = 0;
      continue;
    }
    if (full()) return Answer::gave_up;
    if (expanded % 64 == 0) budget_.check();
    deepest = std::max(deepest, static_cast<std::int32_t>(layer_));
    load(layer.cells.data() + state_ * cells_, static_cast<std::int32_t>(layer_));
    const std::uint32_t origin = layer.origin[state_++];
    ++expanded;
    --expansions;
    if (stuck(parent_)) continue;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(chains_); ++c) {
      const Event* const e = next(parent_, c);
      if (e == nullptr || !can_run(parent_, *e)) continue;
      child_ = parent_;
      if (run_event(child_, c) && close(child_)) insert(child_, origin, c);
    }
  }
  return Answer::open;
}

std::optional<Model> Frontiers::model() {
  std::vector<std::int32_t> chosen;
  for (std::uint32_t at = *goal_; trail_[at].chain >= 0; at = trail_[at].parent) chosen.push_back(trail_[at].chain);
  std::ranges::reverse(chosen);
  replay_ = true;
  start_pass();
  Scratch s = parent_;
  for (const std::int32_t c : chosen) {
    run_event(s, c);
    close(s);
  }
  replay_ = false;
  // The other nodes stand right after the last event that precedes them.
  std::vector<std::int32_t> last(idx(line_.graph.nodes()), -1), at(chains_, 0);
  for (std::size_t i = 0; i < ran_.size(); ++i) {
    const auto c = idx(ran_[i]);
    last[idx(events_[idx(chain_start_[c] + at[c]++)].node)] = static_cast<std::int32_t>(i);
  }
  std::vector<std::uint8_t> event(last.size(), 0);
  for (const Event& e : events_) event[idx(e.node)] = 1;
  std::vector<Node> order(line_.pruner.order.begin(), line_.pruner.order.end());
  for (const Node v : order)
    if (!event[idx(v)])
      for (const Node u : line_.before.of(v)) last[idx(v)] = std::max(last[idx(v)], last[idx(u)]);
  std::ranges::stable_sort(order, [&](Node a, Node b) {
    if (last[idx(a)] != last[idx(b)]) return last[idx(a)] < last[idx(b)];
    return event[idx(a)] > event[idx(b)];
  });
  std::vector<std::int32_t> place(last.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[idx(order[i])] = static_cast<std::int32_t>(i);
  std::vector<std::uint8_t> present(line_.problem.inclusion.size(), 0);
  for (std::int32_t t = 0; t < line_.problem.n; ++t) present[idx(t)] = line_.usable(t);
  return line_.model(place, present);
}

}  // namespace isolang
