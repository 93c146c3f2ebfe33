// The rules. They are applied until they derive nothing more. An "event" is what a transaction does at one point of the
// total order, and a "version" is the write of a key by a transaction.
//   1. Events happen as soon as each of their reads has had a source. As many events as possible happen, and versions
//      that once existed continue to exist. The events that do not happen while event b is held back come after b.
//   2. The same rule is applied from the end, where events are undone. A version exists if it may be the last one or if
//      its overwriter has been undone. An event needs the versions that it wrote and a source of each read. It restores
//      the versions that it may have overwritten: the versions of that key that its transaction may have read, if no
//      other write can come between. (As far as these rules know, versions that other events overwrite may be the last;
//      see 4.)
//   3. A version is not a source of a read if it comes after the read, or if another version certainly comes between
//      the version and the read. If a read has only one source, every other version that precedes the read precedes the
//      source. A version that follows all sources of a read follows the read.
//   4. Transactions that overwrite the versions that they read overwrite different versions. So if there are as many
//      such transactions as sources among them, none of these sources is last. More such transactions are impossible.
//   5. Versions between which a read chooses form a group. A version comes when it is written, and goes when a
//      transaction overwrites the version that it read (as in 4). Versions of T0 exist at first. In no group do more
//      versions go than come. Right before an event that reads a version of a group, or overwrites a version of the
//      group that its transaction read, at least one more version of the group has come than gone. If every writer of a
//      key overwrites the version that it read, exactly one version of the key exists at any time. Then exactly one
//      more version of that group has come than gone, and in every other group as many have gone as have come. So the
//      events that must happen before an event for these numbers to hold precede that event, and the events that would
//      violate the numbers follow it. Rules 1 and 2 count in the same way: for example, an event does not happen before
//      enough versions have come to make up for those that have certainly gone.
#include "certify/necessary_precedences.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "certify/counting_bounds.hpp"
#include "certify/total_order_shape.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

constexpr std::size_t kMaxCells = 50'000'000;

struct Contradiction {};

class Line {
 public:
  Line(const History& history, const TotalOrderShape& shape, Evidence& evidence, Budget& budget)
      : evidence_(evidence), budget_(budget), shape_(shape), n_(history.transactions()) {
    small_ = set_events(history);
    if (!small_) return;
    set_versions(history);
  }

  // Applies the rules until nothing changes. Throws Contradiction.
  void settle() {
    for (changed_ = small_; changed_;) {
      changed_ = false;
      overwrite_once();
      const CountingBounds bounds = bounds_of_versions();
      sweep(bounds, false);
      sweep(bounds, true);
      compare();
      const auto first = [&](std::size_t a, std::size_t b) { return comes_first(a, b); };
      if (!bounds.decide(first, [&](std::size_t a, std::size_t b) { precede(a, b); }))
        throw Contradiction{};
    }
  }

 private:
  struct Event {
    std::size_t chain, place;
    std::vector<std::size_t> writes, reads;  // numbers of versions and of reads
  };
  struct Version {
    std::int32_t txn;
    std::size_t key, event;  // the event that writes the version; kFirst for the initial version
    std::size_t read;        // the read of the same key by the transaction that wrote the version, or kNone
    bool indeterminate_last;
  };
  struct Read {
    std::size_t event, key;
    std::size_t own;   // the version of the key that the reading transaction writes, or kNone
    bool overwritten;  // whether that own version directly overwrites the version that the read saw
    std::vector<std::size_t> sources;
  };
  static constexpr std::size_t kNone = idx(-1), kFirst = kNone;

  // Returns false if some indeterminate transaction may be included or excluded, or if there are too many events.
  bool set_events(const History& history) {
    std::map<std::int32_t, std::int32_t> last;  // for each session, its last transaction
    std::map<std::int32_t, std::size_t> chain;
    event_of_.assign(idx(n_), kNone);
    for (std::int32_t t = 0; t < n_; ++t) {
      if (!evidence_.live(t)) continue;
      // mutant: checker-indeterminate-in
      if (!evidence_.certain(t)) return false;
      const std::int32_t session = history.txn_session[t];
      if (!shape_.so || !last.contains(session) || !evidence_.so(last[session], t)) {
        chain[session] = chains_.size();
        chains_.emplace_back();
      }
      last[session] = t;
      event_of_[t] = events_.size();
      for (int event = 0; event < (shape_.two ? 2 : 1); ++event) {
        chains_[chain[session]].push_back(events_.size());
        events_.push_back({chain[session], chains_[chain[session]].size() - 1, {}, {}});
      }
    }
    if (events_.size() * chains_.size() > kMaxCells) return false;
    before_.assign(events_.size(), std::vector<std::size_t>(chains_.size(), 0));
    if (shape_.rt)
      for (std::int32_t a = 0; a < n_; ++a)
        for (std::int32_t b = 0; b < n_; ++b) {
          budget_.poll();
          if (evidence_.certain(a) && evidence_.certain(b) && evidence_.rt(a, b))
            precede(writing(a), reading(b));
        }
    return true;
  }

  std::size_t reading(std::int32_t t) const { return event_of_[t]; }
  std::size_t writing(std::int32_t t) const { return reading(t) + (shape_.two ? 1 : 0); }

  static std::pair<std::int64_t, std::int64_t> operations(const History& history, std::int32_t t) {
    return {history.op_start[t], history.op_start[t + 1]};
  }

  void set_versions(const History& history) {
    std::map<std::int32_t, std::size_t> key_number;
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> version;  // by transaction and key
    const auto add = [&](std::int32_t t, std::int32_t key) {
      const auto [k, fresh_key] = key_number.try_emplace(key, by_key_.size());
      if (fresh_key) {
        by_key_.emplace_back();
        version[{evidence_.t0(), k->second}] = versions_.size();
        by_key_.back().push_back(versions_.size());
        versions_.push_back({evidence_.t0(), k->second, kFirst, kNone, true});
      }
      if (t == evidence_.t0() || !evidence_.writes_key(t, key)) return k->second;
      if (const auto [v, fresh] = version.try_emplace({t, k->second}, versions_.size()); fresh) {
        by_key_[k->second].push_back(versions_.size());
        events_[writing(t)].writes.push_back(versions_.size());
        versions_.push_back({t, k->second, writing(t), kNone, true});
      }
      return k->second;
    };
    for (std::int32_t t = 0; t < n_; ++t)
      for (auto [op, end] = operations(history, t); op < end; ++op)
        if (evidence_.certain(t)) add(t, evidence_.key_of(op));
    for (std::int32_t t = 0; t < n_; ++t)
      for (auto [op, end] = operations(history, t); op < end; ++op) {
        budget_.poll();
        if (!evidence_.certain(t) || !evidence_.is_external(op)) continue;
        Read r{reading(t), key_number.at(evidence_.key_of(op)), kNone, false, {}};
        for (const std::int32_t source : evidence_.candidates(op))
          r.sources.push_back(version.at({source, r.key}));
        if (const auto own = version.find({t, r.key}); own != version.end()) {
          r.own = own->second;
          r.overwritten = !shape_.two || shape_.locks;
          if (r.overwritten) versions_[r.own].read = reads_.size();
        }
        events_[r.event].reads.push_back(reads_.size());
        reads_.push_back(std::move(r));
      }
  }

  bool comes_first(std::size_t a, std::size_t b) const {
    if (a == kFirst) return b != kFirst;
    if (b == kFirst) return false;
    const Event &x = events_[a], &y = events_[b];
    return x.chain == y.chain ? x.place < y.place : before_[b][x.chain] > x.place;
  }
  // Records that event a, with the events before it in its chain, precedes b and the events after b in its chain.
  void precede(std::size_t a, std::size_t b) {
    const Event &x = events_[a], &y = events_[b];
    if (a == b || (x.chain == y.chain && x.place > y.place)) throw Contradiction{};
    if (x.chain == y.chain) return;
    for (std::size_t i = y.place; i < chains_[y.chain].size(); ++i) {
      std::size_t& known = before_[chains_[y.chain][i]][x.chain];
      if (known > x.place) break;
      known = x.place + 1;
      changed_ = true;
    }
  }

  // Collects the facts for rule 5.
  CountingBounds bounds_of_versions() {
    CountingBounds bounds(versions_.size());
    for (const Read& r : reads_)
      for (const std::size_t v : r.sources) bounds.join_versions(r.sources[0], v);
    bounds.group();
    std::vector<bool> replacing(by_key_.size(), true);
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      if (version.event == kFirst) {
        bounds.exists_at_first(v);
      } else if (version.read != kNone) {
        bounds.replaces(v, reads_[version.read].sources[0], version.event);
      } else {
        bounds.comes(v, version.event);
        // mutant: checker-blind-writes
        replacing[version.key] = false;
      }
    }
    for (const Read& r : reads_) {
      budget_.poll();
      bounds.require_at(r.event, r.sources[0], by_key_[r.key], replacing[r.key]);
      if (r.overwritten && versions_[r.own].event != r.event)
        bounds.require_at(versions_[r.own].event, r.sources[0], by_key_[r.key], replacing[r.key]);
    }
    return bounds;
  }

  // Applies rules 1 and 2.
  void sweep(const CountingBounds& bounds, bool from_end) {
    const std::size_t chains = chains_.size();
    std::vector<std::vector<std::size_t>> gives(events_.size());
    std::vector<std::vector<std::size_t>> needs = before_;
    if (from_end) {
      for (auto& row : needs) std::fill(row.begin(), row.end(), 0);
      for (std::size_t e = 0; e < events_.size(); ++e)
        for (std::size_t c = 0; c < chains; ++c)
          if (c != events_[e].chain && before_[e][c] > 0) {
            std::size_t& after = needs[chains_[c][before_[e][c] - 1]][events_[e].chain];
            after = std::max(after, chains_[events_[e].chain].size() - events_[e].place);
          }
    }
    std::vector<char> at_first(versions_.size(), 0);
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      // mutant: checker-no-last-version
      at_first[v] = from_end ? version.indeterminate_last : version.event == kFirst;
      if (version.event == kFirst) continue;
      auto& given = gives[version.event];
      if (!from_end) {
        given.push_back(v);
      } else if (version.read != kNone) {
        given.insert(given.end(), reads_[version.read].sources.begin(),
                     reads_[version.read].sources.end());
      }
    }
    const auto thresholds =
        bounds.thresholds(events_.size(), from_end, [&](std::size_t a, std::size_t b) {
          budget_.poll();
          return from_end ? comes_first(b, a) : comes_first(a, b);
        });
    std::vector<std::vector<std::pair<std::size_t, bool>>> counts(
        events_.size());  // (group, whether a version comes) of each change
    for (std::size_t g = 0; g < bounds.count(); ++g)
      for (const CountingBounds::Change& c : bounds.changes(g))
        counts[c.event].emplace_back(g, c.by > 0);
    std::vector<char> there;
    std::vector<std::size_t> done, came, gone;
    const auto at = [&](std::size_t c, std::size_t i) {
      return chains_[c][from_end ? chains_[c].size() - 1 - i : i];
    };
    const auto happens = [&](std::size_t e) {
      const Event& event = events_[e];
      for (const std::size_t r : event.reads) {
        const Read& read = reads_[r];
        if (from_end && read.overwritten) continue;
        if (std::none_of(read.sources.begin(), read.sources.end(),
                         [&](std::size_t v) { return there[v] != 0; }))
          return false;
      }
      if (from_end)
        for (const std::size_t v : event.writes)
          if (!there[v]) return false;
      for (const CountingBounds::Threshold& t : thresholds[e])
        if ((t.comes ? came : gone)[t.group] < t.least) return false;
      for (std::size_t c = 0; c < chains; ++c)
        if (c != event.chain && done[c] < needs[e][c]) return false;
      return true;
    };
    for (std::size_t held = 0; held < chains; ++held) {
      there = at_first;
      done.assign(chains, 0);
      came.assign(bounds.count(), 0);
      gone.assign(bounds.count(), 0);
      for (std::size_t stop = 0; stop <= chains_[held].size(); ++stop) {
        for (bool more = true; more;) {
          more = false;
          for (std::size_t c = 0; c < chains; ++c)
            for (budget_.poll();
                 done[c] < (c == held ? stop : chains_[c].size()) && happens(at(c, done[c]));
                 ++done[c]) {
              for (const std::size_t v : gives[at(c, done[c])]) there[v] = 1;
              for (const auto& [g, comes] : counts[at(c, done[c])]) ++(comes ? came : gone)[g];
              more = true;
            }
        }
        if (done[held] < stop) throw Contradiction{};
        for (std::size_t c = 0; c < chains; ++c) {
          if (c == held || done[c] == chains_[c].size()) continue;
          if (stop == chains_[held].size()) throw Contradiction{};
          if (from_end)
            precede(at(c, done[c]), at(held, stop));
          else
            precede(at(held, stop), at(c, done[c]));
        }
      }
    }
  }

  // Applies rule 3.
  void compare() {
    for (Read& r : reads_) {
      budget_.poll();
      const auto first = [&](std::size_t v, std::size_t w) {
        return comes_first(versions_[v].event, versions_[w].event);
      };
      std::vector<std::size_t> past;
      for (const std::size_t v : by_key_[r.key])
        if (v != r.own && comes_first(versions_[v].event, r.event)) past.push_back(v);
      const auto gone = std::erase_if(r.sources, [&](std::size_t v) {
        return v == r.own || comes_first(r.event, versions_[v].event) ||
               std::any_of(past.begin(), past.end(),
                           [&](std::size_t other) { return first(v, other); });
      });
      changed_ = changed_ || gone > 0;
      if (r.sources.empty()) throw Contradiction{};
      if (r.sources.size() == 1)
        for (const std::size_t v : past)
          if (v != r.sources[0] && versions_[v].event != kFirst)
            precede(versions_[v].event, versions_[r.sources[0]].event);
      for (const std::size_t v : by_key_[r.key])
        if (v != r.own && std::all_of(r.sources.begin(), r.sources.end(),
                                      [&](std::size_t s) { return s != v && first(s, v); }))
          precede(r.event, versions_[v].event);
    }
  }

  // Applies rule 4 to the overwriting reads of one key that share sources, and to reads with a single source.
  void overwrite_once() {
    for (const auto& versions : by_key_) {
      std::vector<std::pair<std::set<std::size_t>, std::vector<std::size_t>>>
          groups;                                // sources, reads
      std::map<std::size_t, std::size_t> taken;  // version -> the read whose transaction overwrites it
      for (const std::size_t v : versions) {
        const std::size_t r = versions_[v].read;
        if (r == kNone) continue;
        const auto& sources = reads_[r].sources;
        if (sources.size() == 1 && taken.try_emplace(sources[0], r).first->second != r)
          throw Contradiction{};
        std::pair<std::set<std::size_t>, std::vector<std::size_t>> merged{
            {sources.begin(), sources.end()}, {r}};
        std::erase_if(groups, [&](const auto& group) {
          if (std::none_of(sources.begin(), sources.end(),
                           [&](std::size_t s) { return group.first.contains(s); }))
            return false;
          merged.first.insert(group.first.begin(), group.first.end());
          merged.second.insert(merged.second.end(), group.second.begin(), group.second.end());
          return true;
        });
        groups.push_back(std::move(merged));
      }
      for (const auto& [sources, readers] : groups) {
        // mutant: checker-enough-versions
        if (readers.size() > sources.size()) throw Contradiction{};
        for (const std::size_t v : sources) {
          // mutant: checker-none-last
          if (!versions_[v].indeterminate_last || (readers.size() < sources.size() && !taken.contains(v)))
            continue;
          versions_[v].indeterminate_last = false;
          changed_ = true;
        }
        for (const std::size_t r : readers)
          if (reads_[r].sources.size() > 1 && std::erase_if(reads_[r].sources, [&](std::size_t v) {
                                                return taken.contains(v);
                                              }) > 0)
            changed_ = true;
      }
    }
    for (const Read& r : reads_)
      if (r.sources.empty()) throw Contradiction{};
  }

  Evidence& evidence_;
  Budget& budget_;
  const TotalOrderShape shape_;
  const std::int32_t n_;
  bool small_ = false, changed_ = false;
  std::vector<Event> events_;
  std::vector<std::vector<std::size_t>> chains_;  // the events of each chain
  std::vector<std::size_t> event_of_;             // for each transaction, its first event
  std::vector<std::vector<std::size_t>>
      before_;  // before_[event][chain]: how many events of the chain precede the event
  std::vector<Version> versions_;
  std::vector<std::vector<std::size_t>> by_key_;  // the versions of each key, the initial one first
  std::vector<Read> reads_;
};

}  // namespace

bool no_total_order(const History& history, const std::vector<ReadCheck>& checks,
                    Evidence& evidence, Budget& budget) {
  return std::any_of(checks.begin(), checks.end(), [&](const ReadCheck& check) {
    const TotalOrderShape shape = total_order_shape(check);
    try {
      if (shape.fits) Line(history, shape, evidence, budget).settle();
      return false;
    } catch (const Contradiction&) {
      return true;
    }
  });
}

}  // namespace isolang::certify
