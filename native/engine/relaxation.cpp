#include "engine/relaxation.hpp"

#include <algorithm>

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

using Cell = Chains::Cell;

}  // namespace

void Relaxation::want(const Chains& chains, const Chains::Read& read) {
  Want w{read.only, static_cast<std::int32_t>(some_.size()), 0};
  const std::int32_t first = chains.value_start[idx(read.key)], last = chains.value_start[idx(read.key) + 1];
  for (std::int32_t v = first; v < last && read.only < 0; ++v)
    if (chains.match[idx(read.first_value + v - first)]) some_.push_back(v);
  w.some_end = static_cast<std::int32_t>(some_.size());
  wants_.push_back(w);
}

void Relaxation::end_step(Step s) {
  s.wants_end = static_cast<std::int32_t>(wants_.size());
  s.gives_end = static_cast<std::int32_t>(gives_.size());
  steps_.push_back(s);
}

Relaxation Relaxation::forward(const Chains& chains) {
  Relaxation r(chains);
  r.at_first_.assign(chains.values(), 0);
  for (const std::int32_t v : chains.first_value)
    if (v >= 0) r.at_first_[idx(v)] = 1;
  for (const Chains::Event& e : chains.events) {
    const Step s{0, 0, static_cast<std::int32_t>(r.wants_.size()), 0, static_cast<std::int32_t>(r.gives_.size()), 0};
    for (std::int32_t i = e.read; i < e.read + e.reads; ++i) r.want(chains, chains.reads[idx(i)]);
    for (std::int32_t i = e.write; i < e.write + e.writes; ++i) r.gives_.push_back(chains.writes[idx(i)].value);
    r.end_step(s);
  }
  r.set_needs(chains);
  return r;
}

// Which values a key may have at the end: if it is known of each write what it replaces, those that are there once more
// often than they are replaced; else any. SOUND BECAUSE the value that an event writes stays until the next write of the key,
// which precedes the event from this side and gave it, or to the end; and a value that is only read is there for the same
// reason. What a transaction reads of a key that it then writes itself is what that write replaces, and gives.
Relaxation Relaxation::backward(const Chains& chains) {
  Relaxation r(chains);
  r.from_end_ = true;
  std::vector<std::int32_t> left(chains.values(), 0);
  std::vector<std::uint8_t> blind(chains.keys(), 0);
  for (const std::int32_t v : chains.first_value)
    if (v >= 0) ++left[idx(v)];
  for (const Chains::Event& e : chains.events)
    for (std::int32_t i = e.write; i < e.write + e.writes; ++i) {
      const Chains::Write& w = chains.writes[idx(i)];
      ++left[idx(w.value)];
      if (w.old >= 0)
        --left[idx(w.old)];
      else
        blind[idx(w.key)] = 1;
    }
  r.at_first_.assign(chains.values(), 0);
  for (std::size_t key = 0; key < chains.keys(); ++key)
    for (std::int32_t v = chains.value_start[key]; v < chains.value_start[key + 1]; ++v)
      r.at_first_[idx(v)] = blind[key] || left[idx(v)] > 0;
  for (std::size_t c = 0; c < chains.count(); ++c)
    for (std::int32_t at = chains.start[c + 1] - 1; at >= chains.start[c]; --at) {
      const Chains::Event& e = chains.events[idx(at)];
      const Step s{0, 0, static_cast<std::int32_t>(r.wants_.size()), 0, static_cast<std::int32_t>(r.gives_.size()), 0};
      for (std::int32_t i = e.write; i < e.write + e.writes; ++i) {
        const Chains::Write& w = chains.writes[idx(i)];
        r.wants_.push_back({w.value, 0, 0});
        if (w.old >= 0) r.gives_.push_back(w.old);
      }
      for (std::int32_t i = e.read; i < e.read + e.reads; ++i)
        if (!chains.reads[idx(i)].replaced) r.want(chains, chains.reads[idx(i)]);
      r.end_step(s);
    }
  r.set_needs(chains);
  return r;
}

void Relaxation::set_needs(const Chains& chains) {
  needs_.clear();
  if (!from_end_) {
    needs_ = chains.needs;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].need = chains.events[i].need;
      steps_[i].needs_end = chains.events[i].need + chains.events[i].needs;
    }
    return;
  }
  // Per step from the end and chain: so many of the last events of that chain follow.
  const std::size_t count = chains.count();
  std::vector<Cell> follow(steps_.size() * count, 0);
  const auto clock = chains.clock();
  for (std::size_t other = 0; other < count; ++other)
    for (std::int32_t i = start_[other]; i < start_[other + 1]; ++i)
      for (std::size_t c = 0; c < count; ++c)
        if (const std::int32_t before = clock[idx(i) * count + c]; c != other && before > 0) {
          Cell& cell = follow[idx(start_[c + 1] - before) * count + other];
          cell = std::max(cell, static_cast<Cell>(start_[other + 1] - i));
        }
  for (std::size_t c = 0; c < count; ++c)
    for (std::int32_t at = start_[c]; at < start_[c + 1]; ++at) {
      Step& s = steps_[idx(at)];
      s.need = static_cast<std::int32_t>(needs_.size());
      Cell* const row = follow.data() + idx(at) * count;
      for (std::size_t other = 0; other < count; ++other) {
        const Cell last = at > start_[c] ? row[static_cast<std::ptrdiff_t>(other) - static_cast<std::ptrdiff_t>(count)] : Cell{0};
        if (row[other] > last) needs_.push_back({static_cast<std::int32_t>(other), row[other]});
        row[other] = std::max(row[other], last);
      }
      s.needs_end = static_cast<std::int32_t>(needs_.size());
    }
}

bool add_landmarks(Chains& chains, Budget& budget) {
  const std::size_t count = chains.count();
  Relaxation forward = Relaxation::forward(chains), backward = Relaxation::backward(chains);
  std::vector<std::uint8_t> seen;
  std::vector<Cell> reached;
  const auto hold = [&](const Relaxation& relaxation, std::size_t held, std::int32_t stop) {
    budget.poll();
    seen = relaxation.at_first();
    reached.assign(count, 0);
    relaxation.run(seen, reached, static_cast<std::int32_t>(held), stop);
  };
  std::vector<Cell> clock = chains.clock();
  // `first` events of chain c come before event i of chain d, and so before those that follow it there.
  bool fresh = false;
  const auto note = [&](std::size_t c, std::int32_t first, std::size_t d, std::int32_t i) {
    for (; i < chains.start[d + 1] && clock[idx(i) * count + c] < first; ++i) {
      clock[idx(i) * count + c] = static_cast<Cell>(first);
      fresh = true;
    }
  };
  for (int quiet = 0; quiet < 2;) {  // sides in a row that told nothing new
    for (const bool from_end : {false, true}) {
      Relaxation& side = from_end ? backward : forward;
      side.set_needs(chains);
      fresh = false;
      for (std::size_t d = 0; d < count; ++d)
        for (std::int32_t stop = 0; stop <= side.length(d); ++stop) {
          hold(side, d, stop);
          for (std::size_t c = 0; c < count; ++c) {
            if (reached[c] >= side.length(c) || (c == d && reached[c] == stop)) continue;
            if (stop == side.length(d) || c == d) return false;  // though nothing that matters is held back
            if (from_end)
              note(c, side.length(c) - reached[c], d, chains.start[d + 1] - 1 - stop);
            else
              note(d, stop + 1, c, chains.start[c] + reached[c]);
          }
        }
      if (fresh) chains.set_needs(clock);
      quiet = fresh ? 0 : quiet + 1;
      if (quiet >= 2) break;
    }
  }
  return true;
}

}  // namespace isolang
