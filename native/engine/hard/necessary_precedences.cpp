// `add_necessary_precedences` repeats relaxed runs, from the beginning and from the end, until they
// yield no new precedence and exclude no more sources. Each run holds back one event, and the
// events that then never happen come after it.
#include "engine/hard/necessary_precedences.hpp"

#include <algorithm>
#include <optional>

#include "core/index.hpp"
#include "core/required.hpp"
#include "engine/hard/counting_bounds.hpp"
#include "engine/hard/relaxation.hpp"

namespace isolang {
namespace {

using Cell = Chains::Cell;

// The facts of the relaxations are versions, by writer: "the version exists or has existed".
class Closure {
 public:
  Closure(Chains& chains, Budget& budget)
      : chains_(chains),
        p_(chains.total_order.problem),
        budget_(budget),
        count_(chains.count()),
        own_(chains.total_order.pruner.own_writer) {
    clock_ = chains.clock();
    chain_of_.resize(chains.events.size());
    for (std::size_t c = 0; c < count_; ++c)
      for (std::int32_t i = chains.start[c]; i < chains.start[c + 1]; ++i)
        chain_of_[i] = static_cast<std::int32_t>(c);
    std::vector<std::int32_t> event_of(idx(chains.total_order.graph.nodes()), -1);
    for (std::size_t i = 0; i < chains.events.size(); ++i)
      event_of[chains.events[i].node] = static_cast<std::int32_t>(i);
    const auto& total_order = chains.total_order;
    for (const std::int32_t txn : p_.writer_txn)
      writing_.push_back(
          txn < p_.n && total_order.usable(txn) ? event_of[total_order.write_node(txn)] : -1);
    reads_at_.resize(chains.events.size());
    writes_at_.resize(chains.events.size());
    sources_.resize(idx(p_.reads()));
    for (std::size_t w = 0; w < writing_.size(); ++w)
      if (writing_[w] >= 0) writes_at_[writing_[w]].push_back(static_cast<std::int32_t>(w));
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      const std::int32_t txn = p_.read_txn[r];
      reading_.push_back(
          txn < p_.n && total_order.usable(txn) ? event_of[total_order.read_node(txn)] : -1);
      if (reading_.back() < 0) continue;
      reads_at_[reading_.back()].push_back(r);
      for (const std::size_t i : p_.candidates(r))
        if (const std::int32_t w = p_.candidate[i];
            total_order.pruner.alive[i] && (initial(w) || writing_[w] >= 0) && w != own_[r])
          sources_[r].push_back(w);
    }
    // A transaction's write overwrites the version of the key that the transaction read, if nothing
    // comes between.
    replaces_.assign(writing_.size(), -1);
    if (total_order.locks || !total_order.apart())
      for (std::int32_t r = 0; r < p_.reads(); ++r)
        if (reading_[r] >= 0 && own_[r] >= 0) replaces_[own_[r]] = r;
    may_be_last_.assign(writing_.size(), 1);
    group_replacers();
  }

  // Returns false if no total order exists.
  bool run() {
    do {
      fresh_ = false;
      bounds_.emplace(
          CountingBounds::Line{p_, writing_, reading_, replaces_, sources_, chains_.events.size()});
      if (!share_versions() || !hold_back(forward(), false) || !hold_back(backward(), true) ||
          !remove_sources())
        return false;
      order_overwriters();
      // ablation: bounds-order-nothing
      if (!bounds_->order([this](std::int32_t a, std::int32_t b) { return before(a, b); },
                          [this](std::int32_t a, std::int32_t b) { note(a, b); }))
        return false;
    } while (fresh_);
    chains_.set_needs(clock_);
    return true;
  }

 private:
  bool initial(std::int32_t writer) const { return p_.writer_txn[writer] == p_.n; }
  std::int32_t place(std::int32_t event) const { return event - chains_.start[chain_of_[event]]; }
  bool before(std::int32_t a, std::int32_t b) const {  // a and b are events
    if (chain_of_[a] == chain_of_[b]) return a < b;
    return clock_[idx(b) * count_ + idx(chain_of_[a])] > place(a);
  }
  // Records that the first `first` events of chain c precede event i, and hence also the later
  // events of i's chain.
  void note(std::size_t c, std::int32_t first, std::int32_t i) {
    const std::int32_t end = chains_.start[idx(chain_of_[i]) + 1];
    for (; i < end && clock_[idx(i) * count_ + c] < first; ++i) {
      clock_[idx(i) * count_ + c] = static_cast<Cell>(first);
      fresh_ = true;
    }
  }
  void note(std::int32_t a, std::int32_t b) { note(idx(chain_of_[a]), place(a) + 1, b); }

  // Builds the relaxation from the beginning. An event requires a source for each of its reads, and
  // makes its own versions exist.
  Relaxation forward() const {
    const CountingBounds& bounds = required(bounds_, "the counting bounds");
    Relaxation r(chains_.start, writing_.size(), bounds.counters());
    for (std::size_t w = 0; w < writing_.size(); ++w)
      r.at_first[w] = initial(static_cast<std::int32_t>(w));
    for (std::size_t i = 0; i < chains_.events.size(); ++i) {
      for (const std::int32_t read : reads_at_[i]) r.want(sources_[read]);
      for (const std::int32_t w : writes_at_[i]) r.give(w);
      for (std::size_t c = 0; c < count_; ++c)
        if (const Cell n = clock_[i * count_ + c]; n > 0 && idx(chain_of_[i]) != c)
          r.need({static_cast<std::int32_t>(c), n});
      // ablation: no-bounds-from-the-beginning
      bounds.add_to(r, static_cast<std::int32_t>(i), false,
                      [this](std::int32_t a, std::int32_t b) { return before(a, b); });
      r.end_step();
    }
    return r;
  }

  // Builds the relaxation from the end. In this direction, a version exists if it is the last
  // version, or if its overwriter has been undone. An event requires its own versions, and a source
  // for each read of a key that it does not write. It brings back the versions that it may have
  // overwritten: those that it may have read (share_versions), unless they may be last versions.
  Relaxation backward() const {
    const CountingBounds& bounds = required(bounds_, "the counting bounds");
    Relaxation r(chains_.start, writing_.size(), bounds.counters());
    for (std::int32_t key = 0; key < p_.keys; ++key)
      for (std::int32_t w = p_.key_start[key]; w < p_.key_start[key + 1]; ++w)
        // mutant: engine-no-last-version
        r.at_first[w] = may_be_last_[w];
    std::vector<Cell> follow(chains_.events.size() * count_,
                             0);  // number of the last events of each chain that follow
    for (std::size_t i = 0; i < chains_.events.size(); ++i)
      for (std::size_t c = 0; c < count_; ++c)
        if (const std::int32_t n = clock_[i * count_ + c]; n > 0 && idx(chain_of_[i]) != c) {
          Cell& cell = follow[idx(chains_.start[c] + n - 1) * count_ + idx(chain_of_[i])];
          cell = std::max(cell, static_cast<Cell>(chains_.start[idx(chain_of_[i]) + 1] -
                                                  static_cast<std::int32_t>(i)));
        }
    for (std::size_t c = 0; c < count_; ++c)
      for (std::int32_t i = chains_.start[c + 1] - 1; i >= chains_.start[c]; --i) {
        for (const std::int32_t w : writes_at_[i]) {
          r.want(std::span(&w, 1));
          if (replaces_[w] < 0) continue;
          for (const std::int32_t source : sources_[replaces_[w]]) r.give(source);
        }
        for (const std::int32_t read : reads_at_[i])
          // All reads of a key see the version that the transaction's write replaces.
          if (own_[read] < 0 || replaces_[own_[read]] < 0) r.want(sources_[read]);
        for (std::size_t other = 0; other < count_; ++other)
          if (const Cell n = follow[idx(i) * count_ + other]; n > 0)
            r.need({static_cast<std::int32_t>(other), n});
        // ablation: no-bounds-from-the-end
        bounds.add_to(r, i, true,
                        [this](std::int32_t a, std::int32_t b) { return before(b, a); });
        r.end_step();
      }
    return r;
  }

  // Holds back each event of each chain in turn, in the direction of the relaxation. Everything
  // that could happen while an earlier event was held back can still happen.
  bool hold_back(const Relaxation& side, bool from_end) {
    for (std::size_t d = 0; d < count_; ++d) {
      budget_.check();
      Relaxation::Extent extent = side.begin();
      const auto& reached = extent.reached;
      for (std::int32_t stop = 0; stop <= side.length(d); ++stop) {
        budget_.poll();
        side.run(extent, static_cast<std::int32_t>(d), stop);
        if (reached[d] < stop) return false;  // the event waits for what comes after it
        for (std::size_t c = 0; c < count_; ++c) {
          if (c == d || reached[c] == side.length(c)) continue;
          if (stop == side.length(d)) return false;  // the event cannot happen, although no event is held back
          if (from_end)
            note(c, side.length(c) - reached[c], chains_.start[d + 1] - 1 - stop);
          else
            note(d, stop + 1, chains_.start[c] + reached[c]);
        }
      }
    }
    return true;
  }

  // Removes the sources that come after the read, or that are certainly overwritten before the read. If one source
  // remains, all other writers that the read cannot have missed precede this source.
  bool remove_sources() {
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      if (reading_[r] < 0) continue;
      const std::int32_t here = reading_[r], key = p_.read_key[r];
      auto& sources = sources_[r];
      std::vector<std::int32_t> past;  // writers that the read certainly has not missed
      for (std::int32_t w = p_.key_start[key]; w < p_.key_start[key + 1]; ++w)
        if (writing_[w] >= 0 && writing_[w] != here && w != own_[r] && before(writing_[w], here))
          past.push_back(w);
      const auto gone = std::erase_if(sources, [&](std::int32_t w) {
        if (initial(w)) return !past.empty();
        const std::int32_t there = writing_[w];
        return there == here || before(here, there) ||
               std::ranges::any_of(past, [&](std::int32_t other) {
                 return other != w && before(there, writing_[other]);
               });
      });
      if (gone > 0) fresh_ = true;
      if (sources.empty()) return false;
      if (sources.size() > 1) continue;
      if (initial(sources[0])) {
        if (!past.empty()) return false;
        continue;
      }
      for (const std::int32_t w : past)
        if (w != sources[0] && !before(writing_[w], writing_[sources[0]]))
          note(writing_[w], writing_[sources[0]]);
    }
    return true;
  }

  // Groups the reads that replace what they see, by key and first candidate; usually a group
  // consists of the reads of one value.
  void group_replacers() {
    std::vector<std::int32_t> group(writing_.size(), -1);
    for (const std::int32_t r : replaces_) {
      if (r < 0 || sources_[r].empty()) continue;
      std::int32_t g = -1;
      for (const std::int32_t w : sources_[r]) g = std::max(g, group[w]);
      if (g < 0) {
        g = static_cast<std::int32_t>(replacers_.size());
        replacers_.emplace_back();
      }
      for (const std::int32_t w : sources_[r]) group[w] = g;
      replacers_[g].push_back(r);
    }
  }

  // No two transactions replace the same version. If as many reads replace versions of a set as the
  // set has versions, each version is replaced and none of them is the last. If there are more such
  // reads than versions, no total order exists.
  bool share_versions() {
    std::vector<std::int32_t> replacer(writing_.size(), -1);
    const auto take = [&](std::int32_t r) {
      if (sources_[r].size() != 1) return true;
      std::int32_t& other = replacer[sources_[r][0]];
      if (other >= 0 && other != r) return false;
      other = r;
      return true;
    };
    std::vector<std::int32_t> all;
    for (const auto& group : replacers_) {
      all.clear();
      for (const std::int32_t r : group) {
        if (!take(r)) return false;
        all.insert(all.end(), sources_[r].begin(), sources_[r].end());
      }
      std::ranges::sort(all);
      all.erase(std::ranges::unique(all).begin(), all.end());
      // mutant: engine-enough-versions
      if (group.size() > all.size()) return false;
      for (const std::int32_t w : all)
        rule_out_last(w, group.size() == all.size() || replacer[w] >= 0);
      for (const std::int32_t r : group) {
        auto& sources = sources_[r];
        if (sources.size() > 1 &&
            std::erase_if(sources, [&](std::int32_t w) { return replacer[w] >= 0; }) > 0)
          fresh_ = true;
        if (sources.empty()) return false;
      }
    }
    return true;
  }
  void rule_out_last(std::int32_t writer, bool replaced) {
    if (!replaced || may_be_last_[writer] == 0) return;
    may_be_last_[writer] = 0;
    fresh_ = true;
  }

  // If a writer follows all sources of a read, and is not one of them, it follows the read.
  void order_overwriters() {
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      if (reading_[r] < 0) continue;
      const std::int32_t key = p_.read_key[r];
      const auto& sources = sources_[r];
      for (std::int32_t w = p_.key_start[key]; w < p_.key_start[key + 1]; ++w) {
        const std::int32_t there = writing_[w];
        if (there < 0 || w == own_[r] || before(reading_[r], there)) continue;
        // mutant: one-source-suffices
        if (std::ranges::all_of(sources, [&](std::int32_t a) {
              return a != w && (initial(a) || before(writing_[a], there));
            }))
          note(reading_[r], there);
      }
    }
  }

  Chains& chains_;
  const Problem& p_;
  Budget& budget_;
  std::size_t count_;
  std::vector<Cell> clock_;  // per event and chain, how many events of that chain come first
  std::vector<std::int32_t> chain_of_;           // per event
  std::vector<std::int32_t> writing_, reading_;  // per writer, per read: the event, or -1
  std::vector<std::vector<std::int32_t>> writes_at_, reads_at_,
      sources_;  // per event, per event, per read
  std::vector<std::vector<std::int32_t>> replacers_;
  const std::vector<std::int32_t>& own_;   // per read, its transaction's write of the key
  std::vector<std::int32_t> replaces_;     // per writer, the read of what it overwrites, or -1
  std::vector<std::uint8_t> may_be_last_;  // per writer
  std::optional<CountingBounds> bounds_;   // for the sources at the last round
  bool fresh_ = false;
};

}  // namespace

bool add_necessary_precedences(Chains& chains, Budget& budget) {
  return Closure(chains, budget).run();
}

}  // namespace isolang
