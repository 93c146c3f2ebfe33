// `find_inclusion` decides which indeterminate transactions can be included, and which must be included because a
// committed transaction can only have read from them.
#include <algorithm>
#include <cstring>
#include <span>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

// The transactions reached from included (or possible) readers through candidates and through the elements of the lists
// that they read. SOUND BECAUSE an indeterminate transaction is in iff an included one reads from it
// (docs/language.md). A list read includes the writers of all its elements that are not the reader's own, whichever of
// them is the source in `rf`.
class Reach {
 public:
  Reach(const History& h, const Scan& s, const Candidates& c, const Elements& e)
      : h_(h), s_(s), c_(c), e_(e, [&](const Element& one) {
          return !committed(one.txn) || !committed(one.second_txn);
        }) {
    read_start_.assign(idx(h.transactions()) + 1, 0);
    for (const std::int32_t t : s.read_txn) ++read_start_[t + 1];
    list_start_.assign(idx(h.transactions()) + 1, 0);
    for (const ListRead& l : s.list_reads) ++list_start_[idx(l.txn) + 1];
    for (std::size_t t = 1; t < read_start_.size(); ++t) {
      read_start_[t] += read_start_[t - 1];
      list_start_[t] += list_start_[t - 1];
    }
  }

  // Returns 1 for committed transactions and for all that they reach. With `sole`, a transaction reaches others only
  // through reads that have exactly one candidate.
  std::vector<std::uint8_t> from_committed(bool sole) const {
    std::vector<std::uint8_t> reached(idx(h_.transactions()), 0);
    std::vector<std::int32_t> open;
    std::vector<Walked> walked(s_.list_reads.empty() ? 0 : idx(h_.n_keys()));
    const auto visit = [&](std::int32_t t) {
      if (reached[t] != 0) return;
      reached[t] = 1;
      open.push_back(t);
    };
    for (std::int32_t t = 0; t < h_.transactions(); ++t)
      if (h_.txn_status[t] == static_cast<std::uint8_t>(Status::committed)) visit(t);
    while (!open.empty()) {
      const std::int32_t t = open.back();
      open.pop_back();
      for (std::size_t r = idx(read_start_[t]); r < idx(read_start_[t + 1]); ++r)
        visit_candidates(r, t, sole, visit);
      for (std::size_t l = idx(list_start_[t]); l < idx(list_start_[t + 1]); ++l)
        // mutant: elements-include-nobody
        visit_elements(s_.list_reads[l], sole, walked, visit);
    }
    return reached;
  }

 private:
  // The longest prefix of a list whose elements have all been visited for some reader and were each appended by at most
  // one transaction.
  using Walked = std::span<const std::int32_t>;

  template <typename Visit>
  void visit_candidates(std::size_t r, std::int32_t reader, bool sole, const Visit& visit) const {
    const Candidates::Range& range = c_.range[r];
    // mutant: initial-no-alternative
    std::int32_t count = (range.flags & kFromT0) != 0 ? 1 : 0, last = -1;
    for (std::int32_t i = range.low; i < range.high; ++i) {
      const std::int32_t t = c_.txn[c_.writer(range, i)];
      if (t == reader) continue;
      if (!sole) visit(t);
      // mutant: two-sources-certain
      if (++count > 1 && sole) return;
      last = t;
    }
    if (sole && last >= 0) visit(last);
  }

  // Lists of a key begin alike, so elements already shown by an earlier list are not looked up again. SOUND BECAUSE all
  // readers visit the same transaction for an element that only one transaction appended, and the only reader that
  // leaves it out, which is that transaction itself, has been reached. Elements that only committed transactions
  // appended are left out, because those have been reached from the start.
  template <typename Visit>
  void visit_elements(const ListRead& l, bool sole, std::vector<Walked>& walked, const Visit& visit) const {
    if (l.list < 0 || !e_.any(l.key)) return;
    // mutant: own-tail-includes
    const std::int64_t end = h_.list_start[idx(l.list) + 1] - own_tail(h_, s_, l).length;
    const auto list = Walked(h_.list_values).subspan(idx(h_.list_start[l.list]), idx(end - h_.list_start[l.list]));
    Walked& known = walked[idx(l.key)];
    const std::size_t alike = common_length(list, known);
    std::size_t alone = alike;
    // mutant: walked-part-unread
    for (std::size_t i = alike; i < list.size(); ++i) {
      const std::int32_t id = e_.find(l.key, list[i]);
      if (alone == i && (id < 0 || e_.all[id].second < 0)) ++alone;
      if (id < 0) continue;
      const Element& element = e_.all[id];
      const auto other = [&](std::int32_t t) { return t == l.txn ? -1 : t; };
      const std::int32_t a = other(element.txn), b = other(element.second_txn);
      // If an element has two possible appenders, order_lists refuses the list anyway, so a third appender makes no
      // difference.
      if (a >= 0 && (!sole || (b < 0 && !element.third))) visit(a);
      if (b >= 0 && (!sole || (a < 0 && !element.third))) visit(b);
    }
    if (alone > known.size()) known = list.first(alone);
  }

  // Returns the length of the longest common prefix of the two lists.
  static std::size_t common_length(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    const std::size_t count = std::min(a.size(), b.size());
    if (count == 0 || std::memcmp(a.data(), b.data(), count * sizeof(std::int32_t)) == 0) return count;
    return idx(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin()).first - a.begin());
  }

  // Returns true if there is no such transaction, too.
  bool committed(std::int32_t txn) const {
    return txn < 0 || h_.txn_status[txn] == static_cast<std::uint8_t>(Status::committed);
  }

  const History& h_;
  const Scan& s_;
  const Candidates& c_;
  const Elements e_;  // those that some indeterminate transaction appended
  std::vector<std::int32_t> read_start_, list_start_;
};

}  // namespace

std::vector<std::uint8_t> find_inclusion(const History& h, const Scan& s, const Candidates& c,
                                         const Elements& elements, bool unread) {
  std::vector<std::uint8_t> inclusion(idx(h.transactions()) + 1,
                                      static_cast<std::uint8_t>(Inclusion::out));
  inclusion.back() = static_cast<std::uint8_t>(Inclusion::in);
  if (!s.any_indeterminate) {
    for (std::int32_t t = 0; t < h.transactions(); ++t)
      if (h.txn_status[t] == static_cast<std::uint8_t>(Status::committed))
        inclusion[t] = static_cast<std::uint8_t>(Inclusion::in);
    return inclusion;
  }
  const Reach reach(h, s, c, elements);
  const std::vector<std::uint8_t> possible = reach.from_committed(false),
                                  certain = reach.from_committed(true);
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    if (certain[t] != 0)
      inclusion[t] = static_cast<std::uint8_t>(Inclusion::in);
    else if (possible[t] != 0 ||
             (unread && h.txn_status[t] == static_cast<std::uint8_t>(Status::indeterminate)))
      inclusion[t] = static_cast<std::uint8_t>(Inclusion::optional);
  }
  return inclusion;
}

}  // namespace isolang::prepass
