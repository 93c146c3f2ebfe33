// Finds the version order shown by list reads, and whatever contradicts it.
//
// A list read is an exact prefix of the key's final list (docs/language.md). So the longest list read by an included
// transaction represents all of them, and every other list must be a prefix of it. The longest list is examined element
// by element, so a prefix of its clean part need not be examined again.
//
// If reads contradict each other, the longest list may show fewer writers than another list, because it has elements
// that no transaction appended, or an element twice. A specification that does not judge reads still uses the order
// shown by the lists. It is the order of the list with the most writers: either this list begins with the writers of
// every other list, or no order contains both.
#include <algorithm>
#include <cstring>

#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

class ListOrders {
 public:
  ListOrders(const History& h, const Scan& s, const Elements& e,
             const std::vector<std::uint8_t>& inclusion)
      : h_(h), s_(s), e_(e), inclusion_(inclusion) {
    seen_epoch_.assign(e.all.size(), 0);
    seen_count_.assign(e.all.size(), 0);
    writer_epoch_.assign(s.writer_txn.size(), 0);
    shown_epoch_.assign(s.writer_txn.size(), 0);
  }

  ListOrder run() {
    std::vector<std::int32_t> writers(idx(h_.n_keys()), 0), start(idx(h_.n_keys()) + 1, 0);
    for (std::size_t w = 0; w < s_.writer_op.size(); ++w)
      if (inclusion_[s_.writer_txn[w]] != 0) ++writers[h_.op_key[s_.writer_op[w]]];
    for (const ListRead& l : s_.list_reads) ++start[idx(l.key) + 1];
    for (std::size_t k = 1; k < start.size(); ++k) start[k] += start[k - 1];
    std::vector<std::int32_t> fill(start.begin(), start.end() - 1), order(s_.list_reads.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[fill[s_.list_reads[i].key]++] = static_cast<std::int32_t>(i);
    for (std::int32_t key = 0; key < h_.n_keys(); ++key) {
      reads_.clear();
      for (std::size_t i = idx(start[key]); i < idx(start[key + 1]); ++i) {
        const ListRead& l = s_.list_reads[order[i]];
        if (inclusion_[l.txn] != static_cast<std::uint8_t>(Inclusion::out)) reads_.push_back(&l);
      }
      if (!reads_.empty()) order_key(key, writers[key]);
    }
    return std::move(out_);
  }

 private:
  std::int64_t length(const ListRead& l) const {
    return l.list < 0 ? 0 : h_.list_start[idx(l.list) + 1] - h_.list_start[l.list];
  }
  const std::int32_t* values(const ListRead& l) const {
    return l.list < 0 ? nullptr : h_.list_values.data() + h_.list_start[l.list];
  }
  bool is_in(const ListRead& l) const {
    return inclusion_[l.txn] == static_cast<std::uint8_t>(Inclusion::in);
  }
  std::int32_t txn_of_append(std::int32_t a) const { return s_.writer_txn[s_.append_writer[a]]; }
  std::int32_t append_value(std::int32_t a) const { return h_.op_value[s_.append_op[a]]; }

  bool common(const ListRead& a, const ListRead& b, std::int64_t n) const {
    return n == 0 || std::memcmp(values(a), values(b), idx(n) * sizeof(std::int32_t)) == 0;
  }

  void order_key(std::int32_t key, std::int32_t writers) {
    const ListRead* longest = nullptr;
    for (const ListRead* l : reads_)
      if (is_in(*l) && (longest == nullptr || length(*l) > length(*longest))) longest = l;
    most_shown_.clear();
    most_informative_ = nullptr;
    boundary_.clear();
    if (longest != nullptr) {
      boundary_.assign(idx(length(*longest)) + 1, 0);
      examine(*longest, true);
    }
    const auto shown = static_cast<std::int32_t>(most_shown_.size());
    for (const ListRead* l : reads_) {
      if (l == longest) continue;
      const std::int64_t k = length(*l), c = longest == nullptr ? 0 : length(*longest);
      const std::int64_t n = std::min(k, c);
      const bool compatible = longest == nullptr || common(*l, *longest, n);
      // mutant: orders-compatible
      if (!compatible) add(AnomalyKind::incompatible_order, *l, longest->txn, longest->op);
      const bool prefix = compatible && k <= c;
      // A prefix up to the end of a block has already been examined with the longest list, if its reader appends
      // nothing to the key.
      // mutant: prefix-anywhere, clean-for-appenders
      if (!(prefix && l->writer < 0 && (k == 0 || boundary_[k] != 0))) examine(*l, false);
      // mutant: indeterminate-shows-order
      if (compatible && k > c && writers - shown > 1)
        out_.refusals.push_back(
            {l->txn, true,
             "key " + key_text(h_, key) + ": the list read of " + op_text(h_, l->op) +
                 " shows an order that holds only if that transaction, whose outcome is "
                 "unknown, took place; expected a committed read that shows it too"});
    }
    if (most_informative_ != nullptr) {
      const auto first = static_cast<std::int64_t>(out_.writer.size());
      out_.writer.insert(out_.writer.end(), most_shown_.begin(), most_shown_.end());
      out_.shown.push_back(
          {key, most_informative_->op, first, static_cast<std::int64_t>(out_.writer.size())});
    }
  }

  void add(AnomalyKind kind, const ListRead& l, std::int32_t other_txn, std::int64_t other_op) {
    out_.anomalies.push_back({kind, l.txn, l.op, other_txn, other_op});
  }
  // Adds an anomaly for the first element that shows it. Each kind is added at most once for each
  // read.
  void add_once(AnomalyKind kind, const ListRead& l, std::int32_t other_txn,
                std::int64_t other_op) {
    const auto bit = std::uint32_t{1} << static_cast<unsigned>(kind);
    if ((reported_ & bit) != 0) return;
    reported_ |= bit;
    add(kind, l, other_txn, other_op);
  }
  void add_once(AnomalyKind kind, const ListRead& l, std::int32_t append) {
    add_once(kind, l, txn_of_append(append), s_.append_op[append]);
  }

  // Returns the append that made the element, by a transaction other than the reader; -1 if there is none, -2 if
  // several transactions appended it. Sets `count` to the number of times that the transaction appended the element.
  std::int32_t resolve(const Element& e, std::int32_t reader, std::int32_t& count) const {
    const bool first = e.append >= 0 && e.txn != reader;
    const bool second = e.second >= 0 && e.second_txn != reader;
    // mutant: ambiguous-guessed
    if (e.third || (first && second)) return -2;
    count = first ? e.count : e.second_count;
    return first ? e.append : second ? e.second : -1;
  }

  void show(std::int32_t writer) {
    if (shown_epoch_[writer] == epoch_) return;
    shown_epoch_[writer] = epoch_;
    shown_.push_back(writer);
  }

  std::int32_t occurrences(std::int32_t element) {  // counts one more occurrence
    if (seen_epoch_[element] != epoch_) {
      seen_epoch_[element] = epoch_;
      seen_count_[element] = 0;
    }
    return ++seen_count_[element];
  }

  // Checks that the list consists of blocks: all elements of a transaction are adjacent, in its program order, and
  // complete. If it is unclear which transaction appended an element, the read is refused. In that case, only the
  // anomalies that follow from its own transaction's appends are kept, because any other anomaly would be a guess.
  void examine(const ListRead& l, bool longest) {
    ++epoch_;
    reported_ = 0;
    shown_.clear();
    const OwnTail own = own_tail(h_, s_, l);
    const std::int64_t tail = own.length, end = length(l) - tail;
    if (!own.complete && tail > 0) add_once(AnomalyKind::not_last_own_write, l, own.last);
    if (!own.complete && tail == 0) add_once(AnomalyKind::not_own_write, l, l.own_last);
    const std::size_t anomalies_before = out_.anomalies.size();
    const std::int32_t* list = values(l);
    bool clean = longest;  // no fault up to here, for every reader that appends nothing to the key
    for (std::int64_t i = 0; i < end;) {
      const std::int32_t id = e_.find(l.key, list[i]);
      std::int32_t count = 0;
      const std::int32_t append = id < 0 ? -1 : resolve(e_.all[id], l.txn, count);
      if (append == -2) {
        out_.anomalies.resize(anomalies_before);
        return refuse_ambiguous(l, e_.all[id]);
      }
      if (append < 0) {
        clean = false;
        // The reader should not see this element, but the list still shows the position of its
        // writer.
        if (is_own(id, l)) show(l.writer);
        unexplained(l, id, !own.complete);
        ++i;
        continue;
      }
      if (e_.all[id].second >= 0) clean = false;
      const std::int32_t writer = s_.append_writer[append];
      show(writer);
      if (writer_epoch_[writer] == epoch_) {  // the block of this writer has already ended
        clean = false;
        // mutant: duplicates-split
        if (occurrences(id) > count)
          add_once(AnomalyKind::duplicate_element, l, append);
        else
          add_once(AnomalyKind::split_append, l, append);
        ++i;
        continue;
      }
      writer_epoch_[writer] = epoch_;
      std::int32_t next = s_.first_append[writer], last = -1;
      std::int64_t j = i;
      while (next >= 0 && j < end && append_value(next) == list[j]) {
        const Element& matched = e_.all[e_.of_append[next]];
        if (resolve(matched, l.txn, count) == -2) {
          out_.anomalies.resize(anomalies_before);
          return refuse_ambiguous(l, matched);
        }
        if (matched.second >= 0) clean = false;  // only this reader knows who appended the element
        occurrences(e_.of_append[next]);
        last = next;
        next = s_.append_next[next];
        ++j;
      }
      if (last < 0) {  // the writer's first append is missing, or is elsewhere
        clean = false;
        occurrences(id);
        add_once(AnomalyKind::split_append, l, next);
        ++i;
        continue;
      }
      if (next >= 0) {
        clean = false;
        // mutant: ends-inside-appends
        if (j == end && tail == 0)
          add_once(AnomalyKind::intermediate_read, l, last);
        else
          add_once(AnomalyKind::split_append, l, next);
      }
      i = j;
      // mutant: clean-beyond-fault
      if (clean) boundary_[i] = 1;
    }
    if (tail > 0) show(l.writer);
    // mutant: longest-shows-order
    if (is_in(l) && shown_.size() > most_shown_.size()) {
      most_informative_ = &l;
      most_shown_.swap(shown_);
    }
  }

  bool is_own(std::int32_t id, const ListRead& l) const {
    if (id < 0 || l.writer < 0) return false;
    const Element& e = e_.all[id];
    return e.txn == l.txn || e.second_txn == l.txn;
  }

  // Classifies an element that was appended by no other transaction that may be included.
  void unexplained(const ListRead& l, std::int32_t id, bool own_broken) {
    const Element* e = id < 0 ? nullptr : &e_.all[id];
    std::int32_t own = -1;
    if (e != nullptr && e->append >= 0)
      own = e->txn == l.txn ? e->append : e->second;
    if (own >= 0) {
      std::int32_t later = own;  // the transaction's first append of the value after the read
      while (later >= 0 && (s_.append_op[later] < l.op || append_value(later) != e->value))
        later = s_.append_next[later];
      if (later >= 0)
        add_once(AnomalyKind::future_read, l, later);
      else if (!own_broken)
        add_once(AnomalyKind::duplicate_element, l, own);  // the element is already in the tail of own appends
    } else if (e != nullptr && e->dead_op >= 0) {
      add_once(AnomalyKind::aborted_read, l, txn_of_op(h_, e->dead_op), e->dead_op);
    } else {
      add_once(AnomalyKind::thin_air_read, l, -1, -1);
    }
  }

  void refuse_ambiguous(const ListRead& l, const Element& e) {
    const bool first_is_reader = e.txn == l.txn, second_is_reader = e.second_txn == l.txn;
    std::string names = first_is_reader ? "" : op_text(h_, s_.append_op[e.append]);
    if (!second_is_reader)
      names += (names.empty() ? "" : " and ") + op_text(h_, s_.append_op[e.second]);
    if (e.third) names += first_is_reader || second_is_reader ? " and others" : " and by others";
    out_.refusals.push_back({l.txn, false,
                             "key " + key_text(h_, l.key) + ": the list read of " +
                                 op_text(h_, l.op) + " shows element " + value_text(h_, e.value) +
                                 ", appended by " + names +
                                 ", expected one transaction per element"});
  }

  const History& h_;
  const Scan& s_;
  const Elements& e_;
  const std::vector<std::uint8_t>& inclusion_;
  ListOrder out_;
  std::vector<const ListRead*> reads_;  // the list reads of the current key
  std::vector<std::int32_t> shown_;     // writers in the list that is being examined, in order
  const ListRead* most_informative_ = nullptr;  // the read by an included transaction that shows the most writers
  std::vector<std::int32_t> most_shown_;    // the writers shown by it, in order
  std::vector<std::uint8_t>
      boundary_;  // whether the longest list has no fault up to here and a block ends here
  std::uint32_t epoch_ = 0, reported_ = 0;
  std::vector<std::uint32_t> seen_epoch_, writer_epoch_, shown_epoch_;
  std::vector<std::int32_t> seen_count_;
};

}  // namespace

ListOrder order_lists(const History& h, const Scan& s, const Elements& elements,
                      const std::vector<std::uint8_t>& inclusion) {
  if (s.list_reads.empty()) return {};
  return ListOrders(h, s, elements, inclusion).run();
}

}  // namespace isolang::prepass
