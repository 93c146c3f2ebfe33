// `read_snapshots` checks that the commit order contains exactly the included transactions and agrees with the version
// orders, and that no predicate read sees its own COMMIT. The other functions derive from a check an automaton whose
// acyclicity over these snapshots implies the check.
#include "certify/snapshots.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "certify/statements.hpp"
#include "core/index.hpp"

namespace isolang::certify {

Snapshots read_snapshots(const History& h, const Choice& choice, std::span<const std::int32_t> commits,
                         std::span<const std::int64_t> seen) {
  const auto reject = [](const char* why) { throw Rejected{std::string("the order of snapshots ") + why}; };
  Snapshots s;
  s.commits.assign(commits.begin(), commits.end());
  s.place.assign(choice.included.size(), -1);
  for (std::size_t i = 0; i < commits.size(); ++i) {
    const std::int32_t t = commits[i];
    // mutant: checker-commits
    if (t < 0 || idx(t) >= s.place.size() || choice.included[t] == 0 || s.place[t] >= 0)
      reject("has a transaction that is not included, or has it twice");
    s.place[t] = static_cast<std::int64_t>(i);
  }
  for (std::size_t t = 0; t < s.place.size(); ++t)
    if (choice.included[t] != 0 && s.place[t] < 0) reject("lacks a transaction");
  for (std::size_t key = 0; key + 1 < choice.key_start.size(); ++key)
    for (std::int64_t i = choice.key_start[key] + 1; i < choice.key_start[key + 1]; ++i)
      // mutant: checker-commits-as-versions
      if (s.place[choice.order[i - 1]] > s.place[choice.order[i]]) reject("contradicts a version order");
  if (seen.size() != h.statement_start.size()) reject("has not one entry per predicate read");
  s.seen.assign(seen.size(), -1);
  s.least.assign(s.place.size(), -1);
  s.most = s.least;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::int32_t t = h.statement_txn[i];
    if (idx(t) >= s.place.size() || choice.included[t] == 0 || !is_judged(h, i)) continue;
    // mutant: checker-sees-itself
    if (seen[i] < 0 || seen[i] > s.place[t]) reject("has a predicate read that sees its own COMMIT");
    s.seen[i] = seen[i];
    s.least[t] = s.least[t] < 0 ? seen[i] : std::min(s.least[t], seen[i]);
    s.most[t] = std::max(s.most[t], seen[i]);
  }
  return s;
}

namespace {

// SOUND BECAUSE a closed walk of the check, read from behind one of its rw pairs, consists of pairs that are not rw,
// each followed by at most one rw. So no two rw pairs follow each other, not even the last and the first. A walk of one
// rw pair alone would lead from a transaction to itself.
bool keeps_apart(const Positions& p) {
  bool begins = false, ends = false;
  for (const int i : p.follow[0]) begins |= overwrites(p.label[idx(i)]);
  for (std::size_t i = 1; i < p.label.size(); ++i) {
    if (!overwrites(p.label[i])) continue;
    ends |= p.accepting[i] != 0;
    for (const int j : p.follow[i])
      if (overwrites(p.label[idx(j)])) return false;
  }
  return !begins || !ends;
}

// Returns the same words without the parts that only restrict which pairs count: names, tests, ends that access one
// key, and statements. Every walk of the check is also a walk of these words.
Positions of_whole_transactions(const ReadCheck& check) {
  const auto beyond = [&](const char* why) {
    throw NotCertified{"not certified: check " + check.name + " " + why + ", and set-reads are implicit"};
  };
  const Positions& given = check.positions;
  const auto stays = [](int letter) {
    const auto relation = static_cast<Relation>(relation_of_letter(letter));
    return is_test(letter) || relation == Relation::po || relation == Relation::own_commit;
  };
  Positions p;
  std::vector<int> now(given.label.size(), 0);
  for (std::size_t i = 0; i < given.label.size(); ++i) {
    if (i > 0 && stays(given.label[i])) continue;
    now[i] = static_cast<int>(p.label.size());
    int relation = relation_of_letter(given.label[i]);
    if (const auto part = filtered(relation)) relation = static_cast<int>(part->relation);
    if (relation == static_cast<int>(Relation::to_write)) relation = static_cast<int>(Relation::ww);
    constexpr Relation kKnown[] = {Relation::init, Relation::so,  Relation::rt,  Relation::group_rt, Relation::done,
                                   Relation::late, Relation::locked, Relation::wr, Relation::ww, Relation::rw,
                                   Relation::iwr,  Relation::pwr, Relation::irw, Relation::prw, Relation::mere_irw};
    // mutant: checker-implicit-tests
    if (i > 0 && std::ranges::none_of(kKnown, [&](Relation r) { return static_cast<int>(r) == relation; }))
      beyond("asks for more than dependencies");
    p.label.push_back(i > 0 ? relation : kNoRelation);
  }
  for (std::size_t i = 0; i < given.label.size(); ++i) {
    if (i > 0 && stays(given.label[i])) continue;
    // Collect the letters that follow, through letters that stay at the same transaction.
    std::vector<char> met(given.label.size(), 0);
    std::vector<std::size_t> work{i};
    std::set<int> follow;
    bool accepts = false;
    while (!work.empty()) {
      const std::size_t at = work.back();
      work.pop_back();
      accepts |= given.accepting[at] != 0;
      for (const int j : given.follow[at]) {
        if (!stays(given.label[idx(j)])) {
          follow.insert(now[idx(j)]);
        } else if (met[idx(j)] == 0) {
          met[idx(j)] = 1;
          work.push_back(idx(j));
        }
      }
    }
    if (i == 0 && accepts) beyond("has a word that leads nowhere");
    p.follow.emplace_back(follow.begin(), follow.end());
    p.accepting.push_back(accepts ? 1 : 0);
  }
  return p;
}

}  // namespace

Positions without_cycles(const ReadCheck& check) {
  Positions whole = of_whole_transactions(check);
  if (check.acyclic() || check.positions.repeatable()) return whole;
  const bool apart = keeps_apart(whole);
  const std::set<int> letters(whole.label.begin() + 1, whole.label.end());
  Positions p;
  p.label.push_back(kNoRelation);
  p.label.insert(p.label.end(), letters.begin(), letters.end());
  p.accepting.assign(p.label.size(), 1);
  p.accepting[0] = 0;
  for (std::size_t i = 0; i < p.label.size(); ++i) {
    p.follow.emplace_back();
    const bool behind_rw = i == 0 || overwrites(p.label[i]);
    for (std::size_t j = 1; j < p.label.size(); ++j)
      if (!(apart && behind_rw && overwrites(p.label[j]))) p.follow.back().push_back(static_cast<int>(j));
  }
  return p;
}

bool misses_what_was_read(const History& h, const Choice& choice, const Snapshots& s) {
  std::vector<std::size_t> reads(choice.reads.size());
  std::iota(reads.begin(), reads.end(), std::size_t{0});
  std::ranges::sort(reads, {}, [&](std::size_t i) { return choice.op[i]; });
  auto read = reads.begin();
  for (std::size_t first = 0, last = 0; first < s.seen.size(); first = last) {
    const std::int32_t t = h.statement_txn[first];
    while (last < s.seen.size() && h.statement_txn[last] == t) ++last;
    while (read != reads.end() && choice.reads[*read].reader < t) ++read;
    // From the reads so far: how many COMMITs later reads must see, and the largest number that a
    // read saw.
    std::int64_t needed = 0, seen = 0, own_needed = 0;
    const auto misses = [&](std::int64_t end, std::int64_t& to) {  // reads the operations before `end`
      for (; read != reads.end() && choice.reads[*read].reader == t && choice.op[*read] < end; ++read) {
        const ExternalRead& r = choice.reads[*read];
        const std::int64_t start = choice.key_start[r.key], size = choice.key_start[idx(r.key) + 1] - start;
        if (r.source >= 0) to = std::max(to, s.place[choice.order[start + r.source]] + 1);
        const std::int64_t next = r.source + 1 == r.own ? r.source + 2 : r.source + 1;
        // mutant: checker-implicit-before
        if (next < size && s.place[choice.order[start + next]] < seen) return true;
      }
      return false;
    };
    for (std::size_t i = first; i < last; ++i) {
      if (misses(h.statement_start[i], needed)) return true;
      // mutant: checker-implicit-behind
      if (s.seen[i] >= 0 && (s.seen[i] < needed || s.seen[i] < seen)) return true;
      // The rows of one predicate read have no order.
      own_needed = needed;
      if (misses(h.statement_end[i], own_needed)) return true;
      needed = own_needed;
      seen = std::max(seen, s.seen[i]);
    }
    if (misses(std::numeric_limits<std::int64_t>::max(), needed)) return true;
  }
  return false;
}

}  // namespace isolang::certify
