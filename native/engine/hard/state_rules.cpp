// `close` runs all events that may run immediately, until no rule applies. `has_stuck_event` and `impossible` recognise
// states that cannot be completed, and `estimate_completions` estimates a state's number of completions.
#include "engine/hard/state_rules.hpp"

#include <algorithm>
#include <cmath>

#include "core/index.hpp"

namespace isolang {
StateRules::StateRules(const Chains& chains)
    : chains_(chains),
      relaxation_(chains.start, chains.values()),
      any_fine_(std::ranges::find(chains.fine, 1) != chains.fine.end()) {
  const std::size_t values = chains.values(), row = 3 * values;
  left_.assign((chains.events.size() + chains.count()) * row, 0);
  for (std::size_t c = 0; c < chains.count(); ++c)
    for (std::int32_t i = chains.start[c + 1] - 1; i >= chains.start[c]; --i) {
      const Event& e = chains.events[i];
      std::int16_t* const left = left_.data() + (idx(i) + c) * row;
      std::copy_n(left + row, row, left);
      for (std::int32_t w = e.write; w < e.write + e.writes; ++w) ++left[chains.writes[w].value];
      for (std::int32_t r = e.read; r < e.read + e.reads; ++r) {
        const Chains::Read& read = chains.reads[r];
        const std::int32_t first = chains.value_start[read.key],
                           last = chains.value_start[idx(read.key) + 1];
        for (std::int32_t v = first; v < last; ++v)
          if (chains.match[read.first_value + v - first]) {
            ++left[values + idx(v)];
            left[2 * values + idx(v)] =
                static_cast<std::int16_t>(left[2 * values + idx(v)] + read.replaced);
          }
      }
    }
  std::vector<std::int32_t> some;
  for (const Event& e : chains.events) {
    for (std::int32_t r = e.read; r < e.read + e.reads; ++r) {
      const Chains::Read& read = chains.reads[r];
      some.clear();
      for (std::int32_t v = chains.value_start[read.key]; v < chains.value_start[idx(read.key) + 1];
           ++v)
        if (chains.match[read.first_value + v - chains.value_start[read.key]]) some.push_back(v);
      relaxation_.want(some);
    }
    for (std::int32_t w = e.write; w < e.write + e.writes; ++w)
      relaxation_.give(chains.writes[w].value);
    for (std::int32_t i = e.need; i < e.need + e.needs; ++i) relaxation_.need(chains.needs[i]);
    relaxation_.end_step();
  }
  log_.resize(2 * chains.writes.size() + chains.keys() + 2 * chains.events.size() + 2);
  for (std::size_t i = 0; i < log_.size(); ++i)
    log_[i] = i == 0 ? -30.0F : std::log(static_cast<float>(i));
}

bool StateRules::first(State& s) {
  std::vector<Cell> start(cells(), 0);
  for (std::size_t key = 0; key < chains_.keys(); ++key)
    if (const std::int32_t v = chains_.first_value[key]; v >= 0)
      start[chains_.count() + key] = static_cast<Cell>(v - chains_.value_start[key]);
  load(s, start.data(), 0);
  for (std::int32_t key = 0; key < static_cast<std::int32_t>(chains_.keys()); ++key)
    for (std::int32_t v = chains_.value_start[key]; v < chains_.value_start[key + 1]; ++v)
      if (impossible(s, key, v)) return false;
  return close(s);
}

void StateRules::load(State& s, const Cell* cells, std::int32_t done) const {
  const std::size_t values = chains_.values();
  s.cells.assign(cells, cells + this->cells());
  s.done = done;
  s.writers.assign(values, 0);
  s.readers.assign(values, 0);
  s.modifiers.assign(values, 0);
  s.locked.assign(chains_.keys(), 0);
  for (std::size_t c = 0; c < chains_.count(); ++c) {
    const std::size_t at = idx(chains_.start[c]) + cells[c];
    const std::int16_t* const left = left_.data() + (at + c) * 3 * values;
    const auto add = [&](std::vector<std::int16_t>& sum, const std::int16_t* row) {
      std::int16_t* const out = sum.data();
      for (std::size_t v = 0; v < values; ++v) out[v] = static_cast<std::int16_t>(out[v] + row[v]);
    };
    add(s.writers, left);
    add(s.readers, left + values);
    add(s.modifiers, left + 2 * values);
    if (cells[c] == 0 || !chains_.total_order.locks || !chains_.events[at - 1].opens) continue;
    const Event& open = chains_.events[at - 1];
    for (std::int32_t w = open.lock; w < open.lock + open.locks; ++w)
      s.locked[chains_.writes[w].key] = 1;
  }
}

bool StateRules::needs_met(const State& s, const Event& e) const {
  for (std::int32_t i = e.need; i < e.need + e.needs; ++i)
    if (s.cells[chains_.needs[i].chain] < chains_.needs[i].count) return false;
  return true;
}

bool StateRules::can_run(const State& s, const Event& e) const {
  for (std::int32_t i = e.read; i < e.read + e.reads; ++i)
    if (!sees(s, chains_.reads[i])) return false;
  if (e.opens && chains_.total_order.locks)
    for (std::int32_t i = e.lock; i < e.lock + e.locks; ++i)
      if (s.locked[chains_.writes[i].key]) return false;
  return needs_met(s, e);
}

// Returns true if an event that can run may be run immediately. SOUND BECAUSE, given a completion
// in which the event runs later, the event can be moved to the front: no event that must precede it
// is left, its reads see what they must see, and for the other events:
//  - if it has no writes and no locks, nothing changes;
//  - if it has writes, only reads of two values could see a difference: reads of the value that it
//    replaces (between here and its old position), and reads of its own value (after either
//    position). Its own reads are the only such reads. A lock is held no longer than before if the
//    writes follow immediately. They can do so, because they wait for nothing else and no
//    transaction holds a lock here (can_run).
// Running a write of the value that already exists would be wrong, because another write of that
// value may be needed later.
bool StateRules::may_run_at_once(const State& s, std::int32_t chain) const {
  const Event& e = *next(s, chain);
  if (e.writes == 0 && (e.locks == 0 || !chains_.total_order.locks)) return true;
  if (e.writes == 0 && !needs_met(s, chains_.events[idx(&e - chains_.events.data()) + 1]))
    return false;
  for (std::int32_t i = e.lock; i < e.lock + e.locks; ++i) {
    const Chains::Write& w = chains_.writes[i];
    for (const std::int32_t value : {current(s, w.key), w.value}) {
      std::int32_t own = 0;
      for (std::int32_t k = e.read; k < e.read + e.reads; ++k)
        if (const Chains::Read& read = chains_.reads[k]; read.key == w.key)
          own += chains_.match[read.first_value + value - chains_.value_start[w.key]];
      if (s.readers[value] > own) return false;
    }
  }
  return true;
}

// Returns true if some remaining read can never see this value. If each read needs one value, there
// are two such cases. First, the value does not exist and no remaining event writes it. Second,
// more transactions will replace this value than it has instances (each transaction reads the
// instance that it replaces, and no two read the same instance).
bool StateRules::impossible(const State& s, std::int32_t key, std::int32_t value) const {
  if (chains_.fine[key]) return false;
  const std::int32_t instances = s.writers[value] + (current(s, key) == value);
  return (instances == 0 && s.readers[value] > 0) || s.modifiers[value] > instances;
}

bool StateRules::run_event(State& s, std::int32_t chain) {
  const Event& e = *next(s, chain);
  if (trace != nullptr) trace->push_back(chain);
  ++s.cells[chain];
  ++s.done;
  for (std::int32_t i = e.read; i < e.read + e.reads; ++i) {
    const Chains::Read& read = chains_.reads[i];
    const std::int32_t first = chains_.value_start[read.key],
                       last = chains_.value_start[idx(read.key) + 1];
    for (std::int32_t v = first; v < last; ++v)
      if (chains_.match[read.first_value + v - first]) {
        --s.readers[v];
        s.modifiers[v] = static_cast<std::int16_t>(s.modifiers[v] - read.replaced);
      }
  }
  for (std::int32_t i = e.lock; i < e.lock + e.locks && chains_.total_order.locks; ++i)
    s.locked[chains_.writes[i].key] = e.opens;
  for (std::int32_t i = e.write; i < e.write + e.writes; ++i) {
    const Chains::Write& w = chains_.writes[i];
    const std::int32_t old = current(s, w.key);
    --s.writers[w.value];
    s.cells[chains_.count() + idx(w.key)] = static_cast<Cell>(w.value - chains_.value_start[w.key]);
    if (impossible(s, w.key, old) || impossible(s, w.key, w.value)) return false;
  }
  return true;
}

bool StateRules::close(State& s) {
  for (bool again = true; again;) {
    again = false;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(chains_.count()); ++c)
      for (const Event* e = next(s, c); e != nullptr && can_run(s, *e) && may_run_at_once(s, c);
           e = next(s, c)) {
        if (!run_event(s, c)) return false;
        again = true;
      }
  }
  return true;
}

// Returns true if some event can never run, even if every value that has once existed continues to
// exist. Once every value exists that some read still needs, only the needs between events are
// left, and these form no cycle.
bool StateRules::has_stuck_event(const State& s) {
  auto& seen = extent_.seen;
  seen.assign(chains_.values(), 0);
  for (std::int32_t key = 0; key < static_cast<std::int32_t>(chains_.keys()); ++key)
    if (chains_.first_value[key] >= 0) seen[current(s, key)] = 1;
  extent_.reached.assign(s.cells.begin(),
                         s.cells.begin() + static_cast<std::ptrdiff_t>(chains_.count()));
  // If a read may need one of several values, it does not wait for any particular one of them.
  if (any_fine_) {
    relaxation_.run(extent_, -1, 0);
    for (std::size_t c = 0; c < chains_.count(); ++c)
      if (extent_.reached[c] < chains_.length(c)) return true;
    return false;
  }
  std::int32_t wanted = 0;
  for (std::size_t v = 0; v < seen.size(); ++v) wanted += seen[v] == 0 && s.readers[v] > 0;
  relaxation_.run_until(extent_, wanted, s.readers);
  return wanted > 0;
}

// Returns the logarithm of this estimate: the number of interleavings of the remaining events,
// multiplied, for each remaining read, by its value's share of the instances.
float StateRules::estimate_completions(const State& s) const {
  const auto factorial = [&](std::size_t n) {
    return n < 2 ? 0.0F : static_cast<float>(n) * (log_[n] - 1);
  };
  float sum = factorial(chains_.events.size() - idx(s.done));
  for (std::size_t c = 0; c < chains_.count(); ++c)
    sum -= factorial(idx(chains_.length(c)) - s.cells[c]);
  for (std::size_t key = 0; key < chains_.keys(); ++key) {
    std::int32_t all = 1, readers = 0;
    const std::int32_t first = chains_.value_start[key], last = chains_.value_start[key + 1];
    const std::int32_t now = first + s.cells[chains_.count() + key];
    for (std::int32_t v = first; v < last; ++v) {
      all += s.writers[v];
      if (s.readers[v] == 0) continue;
      readers += s.readers[v];
      sum += static_cast<float>(s.readers[v]) * log_[s.writers[v] + (v == now)];
    }
    sum -= static_cast<float>(readers) * log_[all];
  }
  return sum;
}

}  // namespace isolang
