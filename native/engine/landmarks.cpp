#include "engine/landmarks.hpp"

#include <algorithm>
#include <optional>

#include "engine/balance.hpp"
#include "engine/relaxation.hpp"

namespace isolang {
namespace {

constexpr auto idx(std::int32_t i) { return static_cast<std::size_t>(i); }

using Cell = Chains::Cell;

// Facts are versions, by writer: "it is, or was, there".
class Closure {
 public:
  Closure(Chains& chains, Budget& budget)
      : chains_(chains),
        p_(chains.line.problem),
        budget_(budget),
        count_(chains.count()),
        own_(chains.line.pruner.own_writer) {
    clock_ = chains.clock();
    chain_of_.resize(chains.events.size());
    for (std::size_t c = 0; c < count_; ++c)
      for (std::int32_t i = chains.start[c]; i < chains.start[c + 1]; ++i)
        chain_of_[idx(i)] = static_cast<std::int32_t>(c);
    std::vector<std::int32_t> event_of(idx(chains.line.graph.nodes()), -1);
    for (std::size_t i = 0; i < chains.events.size(); ++i)
      event_of[idx(chains.events[i].node)] = static_cast<std::int32_t>(i);
    const auto& line = chains.line;
    for (const std::int32_t txn : p_.writer_txn)
      writing_.push_back(txn < p_.n && line.usable(txn) ? event_of[idx(line.write_node(txn))] : -1);
    reads_at_.resize(chains.events.size());
    writes_at_.resize(chains.events.size());
    sources_.resize(idx(p_.reads()));
    for (std::size_t w = 0; w < writing_.size(); ++w)
      if (writing_[w] >= 0) writes_at_[idx(writing_[w])].push_back(static_cast<std::int32_t>(w));
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      const std::int32_t txn = p_.read_txn[idx(r)];
      reading_.push_back(txn < p_.n && line.usable(txn) ? event_of[idx(line.read_node(txn))] : -1);
      if (reading_.back() < 0) continue;
      reads_at_[idx(reading_.back())].push_back(r);
      for (const std::size_t i : p_.candidates(r))
        if (const std::int32_t w = p_.candidate[i];
            line.pruner.alive[i] && (initial(w) || writing_[idx(w)] >= 0) && w != own_[idx(r)])
          sources_[idx(r)].push_back(w);
    }
    // What a transaction reads of a key that it writes is what that write overwrites, if nothing comes between.
    replaces_.assign(writing_.size(), -1);
    if (line.locks || !line.apart())
      for (std::int32_t r = 0; r < p_.reads(); ++r)
        if (reading_[idx(r)] >= 0 && own_[idx(r)] >= 0) replaces_[idx(own_[idx(r)])] = r;
    may_be_last_.assign(writing_.size(), 1);
    group_replacers();
  }

  // False: there is no line.
  bool run() {
    do {
      fresh_ = false;
      balance_.emplace(Balance::Line{p_, writing_, reading_, replaces_, sources_, chains_.events.size()});
      if (!share_versions() || !hold_back(forward(), false) || !hold_back(backward(), true) || !strike_sources())
        return false;
      order_overwriters();
      if (!balance_->order([this](std::int32_t a, std::int32_t b) { return before(a, b); },
                           [this](std::int32_t a, std::int32_t b) { note(a, b); }))
        return false;
    } while (fresh_);
    chains_.set_needs(clock_);
    return true;
  }

 private:
  bool initial(std::int32_t writer) const { return p_.writer_txn[idx(writer)] == p_.n; }
  std::int32_t place(std::int32_t event) const { return event - chains_.start[idx(chain_of_[idx(event)])]; }
  bool before(std::int32_t a, std::int32_t b) const {  // events
    if (chain_of_[idx(a)] == chain_of_[idx(b)]) return a < b;
    return clock_[idx(b) * count_ + idx(chain_of_[idx(a)])] > place(a);
  }
  // The first so many events of chain c come before event i, and so before those that follow it in its chain.
  void note(std::size_t c, std::int32_t first, std::int32_t i) {
    const std::int32_t end = chains_.start[idx(chain_of_[idx(i)]) + 1];
    for (; i < end && clock_[idx(i) * count_ + c] < first; ++i) {
      clock_[idx(i) * count_ + c] = static_cast<Cell>(first);
      fresh_ = true;
    }
  }
  void note(std::int32_t a, std::int32_t b) { note(idx(chain_of_[idx(a)]), place(a) + 1, b); }

  // Events want a source of each read, and give what they write.
  Relaxation forward() const {
    Relaxation r(chains_.start, writing_.size(), balance_->counters());
    for (std::size_t w = 0; w < writing_.size(); ++w) r.at_first[w] = initial(static_cast<std::int32_t>(w));
    for (std::size_t i = 0; i < chains_.events.size(); ++i) {
      for (const std::int32_t read : reads_at_[i]) r.want(sources_[idx(read)]);
      for (const std::int32_t w : writes_at_[i]) r.give(w);
      for (std::size_t c = 0; c < count_; ++c)
        if (const Cell n = clock_[i * count_ + c]; n > 0 && idx(chain_of_[i]) != c)
          r.need({static_cast<std::int32_t>(c), n});
      balance_->add_to(r, static_cast<std::int32_t>(i), false,
                       [this](std::int32_t a, std::int32_t b) { return before(a, b); });
      r.end_step();
    }
    return r;
  }

  // From the end: a version is there if it is the last one, or its overwriter has been undone. Events want what they
  // wrote, and a source of each read whose key they do not write; they give what they may have overwritten, as far as
  // that may not be the last one: what they read (share_versions).
  Relaxation backward() const {
    Relaxation r(chains_.start, writing_.size(), balance_->counters());
    for (std::int32_t key = 0; key < p_.keys; ++key)
      for (std::int32_t w = p_.key_start[idx(key)]; w < p_.key_start[idx(key) + 1]; ++w)
        r.at_first[idx(w)] = may_be_last_[idx(w)];
    std::vector<Cell> follow(chains_.events.size() * count_, 0);  // so many of the last events of each chain
    for (std::size_t i = 0; i < chains_.events.size(); ++i)
      for (std::size_t c = 0; c < count_; ++c)
        if (const std::int32_t n = clock_[i * count_ + c]; n > 0 && idx(chain_of_[i]) != c) {
          Cell& cell = follow[idx(chains_.start[c] + n - 1) * count_ + idx(chain_of_[i])];
          cell = std::max(cell, static_cast<Cell>(chains_.start[idx(chain_of_[i]) + 1] - static_cast<std::int32_t>(i)));
        }
    for (std::size_t c = 0; c < count_; ++c)
      for (std::int32_t i = chains_.start[c + 1] - 1; i >= chains_.start[c]; --i) {
        for (const std::int32_t w : writes_at_[idx(i)]) {
          r.want(std::span(&w, 1));
          if (replaces_[idx(w)] < 0) continue;
          for (const std::int32_t source : sources_[idx(replaces_[idx(w)])]) r.give(source);
        }
        for (const std::int32_t read : reads_at_[idx(i)])
          if (own_[idx(read)] < 0 || replaces_[idx(own_[idx(read)])] != read) r.want(sources_[idx(read)]);
        for (std::size_t other = 0; other < count_; ++other)
          if (const Cell n = follow[idx(i) * count_ + other]; n > 0) r.need({static_cast<std::int32_t>(other), n});
        balance_->add_to(r, i, true, [this](std::int32_t a, std::int32_t b) { return before(b, a); });
        r.end_step();
      }
    return r;
  }

  // Each event of each chain in turn, in the direction of the relaxation; what could happen before still can.
  bool hold_back(const Relaxation& side, bool from_end) {
    for (std::size_t d = 0; d < count_; ++d) {
      budget_.check();
      Relaxation::Extent extent = side.begin();
      const auto& reached = extent.reached;
      for (std::int32_t stop = 0; stop <= side.length(d); ++stop) {
        budget_.poll();
        side.run(extent, static_cast<std::int32_t>(d), stop);
        if (reached[d] < stop) return false;  // it waits for what comes after it
        for (std::size_t c = 0; c < count_; ++c) {
          if (c == d || reached[c] == side.length(c)) continue;
          if (stop == side.length(d)) return false;  // though nothing is held back
          if (from_end)
            note(c, side.length(c) - reached[c], chains_.start[d + 1] - 1 - stop);
          else
            note(d, stop + 1, chains_.start[c] + reached[c]);
        }
      }
    }
    return true;
  }

  // A source that comes later, or that is certainly overwritten before the read, is none. What else the read cannot
  // have missed precedes its only source.
  bool strike_sources() {
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      if (reading_[idx(r)] < 0) continue;
      const std::int32_t here = reading_[idx(r)], key = p_.read_key[idx(r)];
      auto& sources = sources_[idx(r)];
      std::vector<std::int32_t> past;  // certainly not missed
      for (std::int32_t w = p_.key_start[idx(key)]; w < p_.key_start[idx(key) + 1]; ++w)
        if (writing_[idx(w)] >= 0 && writing_[idx(w)] != here && w != own_[idx(r)] && before(writing_[idx(w)], here))
          past.push_back(w);
      const auto gone = std::erase_if(sources, [&](std::int32_t w) {
        if (initial(w)) return !past.empty();
        const std::int32_t there = writing_[idx(w)];
        return there == here || before(here, there) || std::ranges::any_of(past, [&](std::int32_t other) {
                 return other != w && before(there, writing_[idx(other)]);
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
        if (w != sources[0] && !before(writing_[idx(w)], writing_[idx(sources[0])]))
          note(writing_[idx(w)], writing_[idx(sources[0])]);
    }
    return true;
  }

  // The reads that replace what they see, by key and first candidate: mostly those of one value.
  void group_replacers() {
    std::vector<std::int32_t> group(writing_.size(), -1);
    for (const std::int32_t r : replaces_) {
      if (r < 0 || sources_[idx(r)].empty()) continue;
      std::int32_t g = -1;
      for (const std::int32_t w : sources_[idx(r)]) g = std::max(g, group[idx(w)]);
      if (g < 0) {
        g = static_cast<std::int32_t>(replacers_.size());
        replacers_.emplace_back();
      }
      for (const std::int32_t w : sources_[idx(r)]) group[idx(w)] = g;
      replacers_[idx(g)].push_back(r);
    }
  }

  // No two transactions replace one version. So where as many replace versions of a set as there are in it, each of
  // them is replaced, none the last, and where there are more, there is no line.
  bool share_versions() {
    std::vector<std::int32_t> replacer(writing_.size(), -1);
    const auto take = [&](std::int32_t r) {
      if (sources_[idx(r)].size() != 1) return true;
      std::int32_t& other = replacer[idx(sources_[idx(r)][0])];
      if (other >= 0 && other != r) return false;
      other = r;
      return true;
    };
    std::vector<std::int32_t> all;
    for (const auto& group : replacers_) {
      all.clear();
      for (const std::int32_t r : group) {
        if (!take(r)) return false;
        all.insert(all.end(), sources_[idx(r)].begin(), sources_[idx(r)].end());
      }
      std::ranges::sort(all);
      all.erase(std::ranges::unique(all).begin(), all.end());
      if (group.size() > all.size()) return false;
      for (const std::int32_t w : all) rule_out_last(w, group.size() == all.size() || replacer[idx(w)] >= 0);
      for (const std::int32_t r : group) {
        auto& sources = sources_[idx(r)];
        if (sources.size() > 1 && std::erase_if(sources, [&](std::int32_t w) { return replacer[idx(w)] >= 0; }) > 0)
          fresh_ = true;
        if (sources.empty()) return false;
      }
    }
    return true;
  }
  void rule_out_last(std::int32_t writer, bool replaced) {
    if (!replaced || may_be_last_[idx(writer)] == 0) return;
    may_be_last_[idx(writer)] = 0;
    fresh_ = true;
  }

  // A writer that follows all sources of a read, and is none of them, follows the read.
  void order_overwriters() {
    for (std::int32_t r = 0; r < p_.reads(); ++r) {
      if (reading_[idx(r)] < 0) continue;
      const std::int32_t key = p_.read_key[idx(r)];
      const auto& sources = sources_[idx(r)];
      for (std::int32_t w = p_.key_start[idx(key)]; w < p_.key_start[idx(key) + 1]; ++w) {
        const std::int32_t there = writing_[idx(w)];
        if (there < 0 || w == own_[idx(r)] || before(reading_[idx(r)], there)) continue;
        if (std::ranges::all_of(
                sources, [&](std::int32_t a) { return a != w && (initial(a) || before(writing_[idx(a)], there)); }))
          note(reading_[idx(r)], there);
      }
    }
  }

  Chains& chains_;
  const Problem& p_;
  Budget& budget_;
  std::size_t count_;
  std::vector<Cell> clock_;                              // per event and chain: so many events of that chain come first
  std::vector<std::int32_t> chain_of_;                   // per event
  std::vector<std::int32_t> writing_, reading_;          // per writer, per read: the event, or -1
  std::vector<std::vector<std::int32_t>> writes_at_, reads_at_, sources_;  // per event, per event, per read
  std::vector<std::vector<std::int32_t>> replacers_;
  const std::vector<std::int32_t>& own_;                 // per read: its transaction's write of the key
  std::vector<std::int32_t> replaces_;                   // per writer: the read of what it overwrites, or -1
  std::vector<std::uint8_t> may_be_last_;                // per writer
  std::optional<Balance> balance_;                       // of the sources at the last look
  bool fresh_ = false;
};

}  // namespace

bool add_landmarks(Chains& chains, Budget& budget) { return Closure(chains, budget).run(); }

}  // namespace isolang
