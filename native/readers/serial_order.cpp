// `SerialSearch` appends one transaction after another, and keeps the current rows of all tables. Transactions before
// the last checkpoint are never removed again, and the work after a checkpoint is limited, so the time is linear in the
// number of transactions.
#include "readers/serial_order.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/implicit.hpp"
#include "core/index.hpp"
#include "readers/predicate.hpp"
#include "readers/rows_in_time.hpp"

namespace isolang::predicates {
namespace {

constexpr std::int32_t kRemovableTransactions = 512;  // how many of the last placed transactions can be removed again
constexpr std::size_t kMaxExamined = 64;              // the largest number of transactions examined by a repair
constexpr int kMaxReturns = 64;                       // how often the search restarts from one checkpoint
constexpr std::int64_t kEffort = 6'000;               // the largest number of steps between two checkpoints

constexpr std::int64_t kWork = 4'000'000;  // the largest number of rows compared between two checkpoints

// Thrown when a search between two checkpoints has done too much work.
struct TooMuchWork {};

// The current rows of a table, and the cells of its keys.
struct CurrentTable {
  std::unordered_map<std::int32_t, Cell> cells;
  std::unique_ptr<RowsInTime> rows;
};

// A predicate read, and the keys that it does not decide: its statement has an operation on them, or its own
// transaction wrote them earlier.
struct CheckedPredicateRead {
  const Predicate* predicate;
  CurrentTable* table;
  std::vector<std::int32_t> spoken;
};

struct RowWrite {
  std::int32_t key, value;
};

// A transaction that has not been placed yet.
struct UnplacedTransaction {
  std::int32_t txn = -1;
  std::vector<std::int64_t> reads;  // its external reads, sorted by key
  std::vector<CheckedPredicateRead> asking;
  std::vector<RowWrite> puts;            // the last write of each key
  std::vector<std::int32_t> wrong;  // the keys whose current rows differ from what it read; ascending
};

// Builds the order from its beginning. The next transaction is the first one, in the given order, whose reads agree
// with the current rows. A writer is not placed while it would overwrite a row that a transaction close to it still has
// to read. If no transaction can be placed, `repair` finds two transactions that were probably placed in the wrong
// order, removes all placed transactions from there on, and remembers the right order of the two.
class SerialSearch {
 public:
  // `apart` is the largest distance, in the given order, between two transactions that this order has the wrong way
  // round.
  SerialSearch(const History& h, std::span<const std::int32_t> near, std::int32_t apart, Budget& budget)
      : h_(h),
        near_(near),
        protected_(2 * apart),
        window_(3 * apart),
        budget_(budget),
        store_(h),
        rank_(idx(h.transactions()), -1),
        placed_(rank_.size(), 0),
        first_statement_(rank_.size() + 1, 0),
        waiting_of_(rank_.size()),
        row_(h.initial_value),
        writer_(row_.size(), -1),
        writers_(row_.size()),
        of_session_(idx(h.sessions)),
        next_(idx(h.sessions), 0),
        place_(rank_.size(), -1) {}

  std::optional<SerialOrder> run() {
    if (!prepare()) return std::nullopt;
    fill();
    while (front_ < std::ssize(near_)) {
      budget_.poll();
      const std::int32_t t = next();
      if (t >= 0) {
        place(t);
      } else if (!repair() && !return_to_checkpoint()) {
        return std::nullopt;
      }
      if (++steps_ > kEffort) return std::nullopt;
    }
    return result();
  }

 private:
  // --- the reads ---

  bool is_judged(std::size_t s) const {
    return h_.statement_known[s] == kImplicit && h_.statement_predicate[s] != kJudged &&
           rank_[idx(h_.statement_txn[s])] >= 0;
  }

  bool prepare() {
    if (h_.has_versions()) return false;
    for (std::size_t i = 0; i < near_.size(); ++i) rank_[idx(near_[i])] = static_cast<std::int32_t>(i);
    for (const std::int32_t t : near_) {
      of_session_[idx(h_.txn_session[idx(t)])].push_back(t);
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op)
        if (h_.kind(op) == OpKind::append || h_.kind(op) == OpKind::read_list ||
            h_.op_source[idx(op)] != kSourceByValue)
          return false;
    }
    for (const std::int32_t t : h_.statement_txn) ++first_statement_[idx(t) + 1];
    for (std::size_t t = 0; t < rank_.size(); ++t) first_statement_[t + 1] += first_statement_[t];
    std::vector<std::string> texts(idx(h_.n_keys()));
    for (std::int32_t k = 0; k < h_.n_keys(); ++k) texts[idx(k)] = text_of(h_.key_atoms, h_.key_atom[idx(k)]);
    for (std::size_t s = 0; s < h_.statement_start.size(); ++s) {
      if (!is_judged(s)) continue;
      const auto [at, fresh] = predicates_.try_emplace(h_.statement_predicate[s]);
      if (!fresh) continue;
      at->second = parse_predicate(h_.predicates[idx(h_.statement_predicate[s])]);
      const auto [of, new_table] = tables_.try_emplace(at->second.table);
      if (new_table) {
        for (std::int32_t k = 0; k < h_.n_keys(); ++k)
          if (const auto key = key_in_table(texts[idx(k)], at->second.table)) of->second.cells[k] = cell_of(*key);
        // The cells point into the texts.
        of->second.rows = std::make_unique<RowsInTime>(store_, of->second.cells);
      }
      of->second.rows->prepare(at->second);
    }
    texts_ = std::move(texts);
    for (std::int32_t k = 0; k < h_.n_keys(); ++k)
      for (auto& [name, table] : tables_)
        if (table.cells.contains(k)) table.rows->put(k, current_row(row_[idx(k)]));
    return true;
  }

  // Returns the atom of a row; kNoAtom if the value says that the row does not exist.
  std::int32_t current_row(std::int32_t value) const { return value == kNil || value == h_.deleted ? kNoAtom : value; }

  std::unique_ptr<UnplacedTransaction> waiting(std::int32_t t) {
    auto w = std::make_unique<UnplacedTransaction>();
    w->txn = t;
    std::vector<std::pair<std::int32_t, std::int64_t>> own;  // the keys it has written, and its first write of each
    std::size_t s = idx(first_statement_[idx(t)]);
    for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op) {
      if (h_.op_ok[idx(op)] == 0) continue;
      const std::int32_t key = h_.op_key[idx(op)];
      const auto mine = std::ranges::find(own, key, &std::pair<std::int32_t, std::int64_t>::first);
      if (is_write(h_.kind(op))) {
        if (mine == own.end()) own.emplace_back(key, op);
        const auto put = std::ranges::find(w->puts, key, &RowWrite::key);
        if (put == w->puts.end())
          w->puts.push_back({key, h_.op_value[idx(op)]});
        else
          put->value = h_.op_value[idx(op)];
      } else if (mine == own.end() && h_.op_value[idx(op)] != kUnknownValue) {
        w->reads.push_back(op);
      }
    }
    for (; s < idx(first_statement_[idx(t) + 1]); ++s) {
      if (!is_judged(s)) continue;
      const Predicate& p = predicates_.at(h_.statement_predicate[s]);
      CheckedPredicateRead asking{&p, &tables_.at(p.table), {}};
      for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op)
        asking.spoken.push_back(h_.op_key[idx(op)]);
      for (const auto& [key, op] : own)
        if (op < h_.statement_start[s]) asking.spoken.push_back(key);
      std::ranges::sort(asking.spoken);
      w->asking.push_back(std::move(asking));
    }
    std::ranges::stable_sort(w->reads, {}, [&](std::int64_t op) { return h_.op_key[idx(op)]; });
    return w;
  }

  bool is_right(std::int64_t op, std::int32_t value, std::int32_t writer) const {
    const std::int32_t wanted = h_.op_value[idx(op)];
    if (is_set_read(h_.kind(op))) {
      const auto from = h_.list_start[idx(wanted)], to = h_.list_start[idx(wanted) + 1];
      const auto list = std::span(h_.list_values).subspan(idx(from), idx(to - from));
      const bool in = std::ranges::find(list, writer < 0 ? kNil : value) != list.end() ||
                      std::ranges::find(list, value) != list.end();
      return in == (h_.kind(op) == OpKind::read_one_of);
    }
    return h_.as_read(value) == wanted || (wanted == kNil && writer < 0 && h_.nil_is_initial(h_.op_key[idx(op)]));
  }

  // Returns whether a transaction's reads would be wrong if a key had this value.
  bool would_be_wrong(const UnplacedTransaction& w, std::int32_t key, std::int32_t value, std::int32_t writer) {
    budget_.poll();
    work_ += 1 + std::ssize(w.asking);
    if (work_ > kWork) throw TooMuchWork{};
    for (auto at = std::ranges::lower_bound(w.reads, key, {}, [&](std::int64_t op) { return h_.op_key[idx(op)]; });
         at != w.reads.end() && h_.op_key[idx(*at)] == key; ++at)
      if (!is_right(*at, value, writer)) return true;
    const std::int32_t row = current_row(value);
    return row != kNoAtom && std::ranges::any_of(w.asking, [&](const CheckedPredicateRead& asking) {
             const auto cell = asking.table->cells.find(key);
             return cell != asking.table->cells.end() &&
                    matches(asking.predicate->where, store_.of(row), cell->second) &&
                    !std::ranges::binary_search(asking.spoken, key);
           });
  }

  void judge(UnplacedTransaction& w) {
    w.wrong.clear();
    for (const std::int64_t op : w.reads)
      if (const std::int32_t key = h_.op_key[idx(op)]; !is_right(op, row_[idx(key)], writer_[idx(key)]))
        w.wrong.push_back(key);
    for (const CheckedPredicateRead& asking : w.asking)
      asking.table->rows->each_match(*asking.predicate, [&](std::int32_t key) {
        if (!std::ranges::binary_search(asking.spoken, key)) w.wrong.push_back(key);
      });
    std::ranges::sort(w.wrong);
    const auto repeated = std::ranges::unique(w.wrong);
    w.wrong.erase(repeated.begin(), repeated.end());
  }

  // --- going forward ---

  // Adds transactions to the waiting ones until the window is full.
  void fill() {
    while (front_ < std::ssize(near_) && placed_[idx(near_[idx(front_)])] != 0) ++front_;
    for (; end_ < std::min<std::int64_t>(std::ssize(near_), front_ + window_); ++end_) let_wait(near_[idx(end_)]);
  }

  void let_wait(std::int32_t t) {
    auto& w = waiting_of_[idx(t)];
    if (w == nullptr) w = waiting(t);
    judge(*w);
    open_.insert(
        std::ranges::lower_bound(open_, rank_[idx(t)], {},
                                 [&](const UnplacedTransaction* o) { return rank_[idx(o->txn)]; }),
        w.get());
    for (const RowWrite& put : w->puts) writers_[idx(put.key)].push_back(t);
  }

  bool is_next_of_session(std::int32_t t) const {
    const auto s = idx(h_.txn_session[idx(t)]);
    return of_session_[s][idx(next_[s])] == t;
  }

  std::int32_t blocked_by(std::int32_t t) const {
    const auto known = before_.find(t);
    if (known == before_.end()) return -1;
    const auto at = std::ranges::find_if(known->second, [&](std::int32_t b) { return placed_[idx(b)] == 0; });
    return at == known->second.end() ? -1 : *at;
  }

  bool may_be_next(const UnplacedTransaction& w) const {
    return w.wrong.empty() && is_next_of_session(w.txn) && blocked_by(w.txn) < 0;
  }

  std::int32_t next() {
    for (const UnplacedTransaction* w : open_)
      if (w->puts.empty() && may_be_next(*w)) return w->txn;
    for (const UnplacedTransaction* w : open_)
      if (may_be_next(*w) && is_harmless(*w)) return w->txn;
    return -1;
  }

  // Visits each waiting transaction that still has to read a row that a writer would overwrite, together with the key,
  // unless another waiting writer restores the row. Stops when a visit returns true, and returns whether one did.
  template <typename Visit>
  bool any_harmed(const UnplacedTransaction& w, const Visit& visit) {
    for (const RowWrite& put : w.puts)
      for (const UnplacedTransaction* o : open_)
        if (o != &w && rank_[idx(o->txn)] < front_ + protected_ && !std::ranges::binary_search(o->wrong, put.key) &&
            would_be_wrong(*o, put.key, put.value, w.txn) && restorer(*o, put.key, w.txn) < 0 && visit(*o, put.key))
          return true;
    return false;
  }
  bool is_harmless(const UnplacedTransaction& w) {
    return !any_harmed(w, [](const UnplacedTransaction&, std::int32_t) { return true; });
  }

  // Returns a waiting writer, other than these two, after which a transaction would read the right value of a key; -1
  // if there is none. Other waiting writers must be able to restore the other keys that this writer would make wrong
  // for it.
  std::int32_t restorer(const UnplacedTransaction& o, std::int32_t key, std::int32_t but) {
    const auto writes_right = [&](std::int32_t t, std::int32_t of) {
      return t != but && t != o.txn && !would_be_wrong(o, of, put_of(t, of), t);
    };
    for (const std::int32_t t : writers_[idx(key)]) {
      const bool may = writes_right(t, key) && std::ranges::all_of(waiting_of_[idx(t)]->puts, [&](const RowWrite& put) {
                         return put.key == key || !would_be_wrong(o, put.key, put.value, t) ||
                                std::ranges::any_of(writers_[idx(put.key)],
                                                    [&](std::int32_t u) { return u != t && writes_right(u, put.key); });
                       });
      if (may) return t;
    }
    return -1;
  }

  std::int32_t put_of(std::int32_t t, std::int32_t key) const {
    return std::ranges::find(waiting_of_[idx(t)]->puts, key, &RowWrite::key)->value;
  }

  void set(std::int32_t key, std::int32_t value, std::int32_t writer) {
    row_[idx(key)] = value;
    writer_[idx(key)] = writer;
    for (auto& [name, table] : tables_)
      if (table.cells.contains(key)) table.rows->put(key, current_row(value));
    for (UnplacedTransaction* w : open_) {
      const auto at = std::ranges::lower_bound(w->wrong, key);
      const bool was = at != w->wrong.end() && *at == key, is = would_be_wrong(*w, key, value, writer);
      if (was && !is) w->wrong.erase(at);
      if (!was && is) w->wrong.insert(at, key);
    }
  }

  void place(std::int32_t t) {
    UnplacedTransaction* const w = waiting_of_[idx(t)].get();
    std::erase(open_, w);
    place_[idx(t)] = std::ssize(commits_);
    commits_.push_back(t);
    placed_[idx(t)] = 1;
    if (std::ssize(commits_) >= checkpoint_ + kRemovableTransactions) {
      checkpoint_ += kRemovableTransactions / 2;
      tries_ = 0;
      steps_ = 0;
      work_ = 0;
    }
    ++next_[idx(h_.txn_session[idx(t)])];
    auto& old = undo_.emplace_back();
    for (const RowWrite& put : w->puts) {
      std::erase(writers_[idx(put.key)], t);
      old.push_back({put.key, row_[idx(put.key)], writer_[idx(put.key)]});
      set(put.key, put.value, t);
    }
    if (std::ssize(commits_) > kRemovableTransactions)
      waiting_of_[idx(commits_[commits_.size() - 1 - kRemovableTransactions])].reset();
    fill();
  }

  // --- going back ---

  // Removes all placed transactions from this one on.
  void take_back(std::int32_t from) {
    std::vector<std::int32_t> back;
    for (std::int32_t t = -1; t != from;) {
      t = commits_.back();
      for (const OverwrittenRow& old : undo_.back()) set(old.key, old.value, old.writer);
      commits_.pop_back();
      undo_.pop_back();
      placed_[idx(t)] = 0;
      --next_[idx(h_.txn_session[idx(t)])];
      front_ = std::min<std::int64_t>(front_, rank_[idx(t)]);
      back.push_back(t);
    }
    for (const std::int32_t t : back) let_wait(t);
  }

  // A possible repair: these transactions should have preceded a writer that has been placed.
  struct PossibleRepair {
    std::vector<std::int32_t> sooner;
    std::int32_t writer;
  };

  // Finds a reason why no transaction can be placed, and removes it. Returns false if nothing can be repaired.
  bool repair() {
    std::vector<std::int32_t> met{near_[idx(front_)]};  // the first waiting transaction, and those that it waits for
    std::vector<PossibleRepair> repairs;
    const auto meet = [&](std::int32_t t) {
      if (std::ranges::find(met, t) == met.end()) met.push_back(t);
    };
    for (std::size_t i = 0; i < met.size() && i < kMaxExamined; ++i) {
      const std::int32_t t = met[i];
      const auto s = idx(h_.txn_session[idx(t)]);
      if (!is_next_of_session(t)) meet(of_session_[s][idx(next_[s])]);
      if (const std::int32_t by = blocked_by(t); by >= 0) meet(by);
      const UnplacedTransaction& w = *waiting_of_[idx(t)];
      for (const std::int32_t key : w.wrong) {
        find_repairs(w, key, repairs);
        for (const std::int32_t u : writers_[idx(key)])
          if (u != t && !would_be_wrong(w, key, put_of(u, key), u)) meet(u);
      }
      if (!w.wrong.empty()) continue;
      any_harmed(w, [&](const UnplacedTransaction& harmed, std::int32_t key) {
        meet(harmed.txn);
        repairs.push_back({{t}, writer_[idx(key)]});
        return false;
      });
    }
    const auto distance = [&](const PossibleRepair& possible) {
      std::int32_t most = 0;
      for (const std::int32_t t : possible.sooner) most = std::max(most, distance_of(t, possible.writer));
      return most;
    };
    std::erase_if(repairs, [&](const PossibleRepair& possible) {
      return possible.writer < 0 || placed_[idx(possible.writer)] == 0 || place_[idx(possible.writer)] < checkpoint_ ||
             distance(possible) >= protected_ ||
             std::ranges::any_of(
                 possible.sooner,
                 [&](std::int32_t t) { return must_precede(possible.writer, t) || must_precede(t, possible.writer); });
    });
    if (repairs.empty() && !before_.empty()) {  // some earlier repair was wrong
      before_.clear();
      return true;
    }
    if (repairs.empty() || (tries_ > 0 && random() % 4 == 0)) return place_anyway();
    std::ranges::stable_sort(repairs, {}, distance);
    auto best = repairs.begin();
    while (tries_ > 0 && best + 1 != repairs.end() && random() % 2 != 0) ++best;
    for (const std::int32_t t : best->sooner) before_[best->writer].push_back(t);
    take_back(best->writer);
    return true;
  }

  // Places a writer although it overwrites a row that others still have to read: a later writer may restore the row.
  bool place_anyway() {
    std::vector<std::int32_t> may;
    for (const UnplacedTransaction* w : open_)
      if (may_be_next(*w)) may.push_back(w->txn);
    if (may.empty()) return false;
    place(may[tries_ == 0 ? 0 : idx(static_cast<std::int64_t>(random() % may.size()))]);
    return true;
  }

  // Returns to the checkpoint, so that different repairs are chosen. Returns false after `kMaxReturns` returns.
  bool return_to_checkpoint() {
    if (++tries_ > kMaxReturns) return false;
    before_.clear();
    if (checkpoint_ < std::ssize(commits_)) take_back(commits_[idx(checkpoint_)]);
    return true;
  }

  std::uint64_t random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ >> 20;
  }

  // Adds the possible repairs for a transaction that would read a wrong value of a key.
  void find_repairs(const UnplacedTransaction& w, std::int32_t key, std::vector<PossibleRepair>& repairs) {
    // A waiting writer has the right value of this key, but would overwrite the right value of another key.
    for (const std::int32_t t : writers_[idx(key)])
      if (t != w.txn && !would_be_wrong(w, key, put_of(t, key), t))
        for (const RowWrite& put : waiting_of_[idx(t)]->puts)
          if (!std::ranges::binary_search(w.wrong, put.key) && would_be_wrong(w, put.key, put.value, t))
            repairs.push_back({{t}, writer_[idx(put.key)]});
    // An earlier version had the right value: it should come after the later versions, or the transaction should come
    // before the next version.
    std::vector<std::int32_t> later;  // the writers of the key, beginning with the last one
    const auto last = std::ssize(commits_);
    for (auto i = last; i-- > checkpoint_;) {
      const auto old = std::ranges::find(undo_[idx(i)], key, &OverwrittenRow::key);
      if (old == undo_[idx(i)].end()) continue;
      later.push_back(commits_[idx(i)]);
      if (would_be_wrong(w, key, old->value, old->writer)) continue;
      repairs.push_back({later, old->writer});
      repairs.push_back({{w.txn}, later.back()});
    }
  }

  std::int32_t distance_of(std::int32_t a, std::int32_t b) const { return std::abs(rank_[idx(a)] - rank_[idx(b)]); }
  bool must_precede(std::int32_t a, std::int32_t b) const {
    const auto known = before_.find(b);
    return known != before_.end() && std::ranges::find(known->second, a) != known->second.end();
  }

  // --- the end ---

  SerialOrder result() const {
    SerialOrder found{commits_, std::vector<std::int32_t>(h_.op_kind.size(), -1)};
    std::vector<std::int32_t> writer(row_.size(), h_.transactions());
    for (const std::int32_t t : commits_) {
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op)
        if (h_.op_ok[idx(op)] != 0 && !is_write(h_.kind(op))) found.source[idx(op)] = writer[idx(h_.op_key[idx(op)])];
      for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op)
        if (h_.op_ok[idx(op)] != 0 && is_write(h_.kind(op))) writer[idx(h_.op_key[idx(op)])] = t;
    }
    return found;
  }

  struct OverwrittenRow {
    std::int32_t key, value, writer;
  };

  const History& h_;
  const std::span<const std::int32_t> near_;
  // A writer waits for readers within the first distance from the first unplaced transaction. Writers that restore rows
  // may be as far away as the second distance.
  const std::int32_t protected_, window_;
  Budget& budget_;
  Rows store_;
  std::vector<std::string> texts_;  // the texts of the keys
  std::map<std::string, CurrentTable> tables_;
  std::unordered_map<std::int32_t, Predicate> predicates_;
  std::vector<std::int32_t> rank_;  // each transaction's position in the given order; -1 if it has none
  std::vector<std::uint8_t> placed_;
  std::vector<std::int32_t> first_statement_;         // of each transaction
  std::vector<std::unique_ptr<UnplacedTransaction>> waiting_of_;  // for the window, and for the last placed transactions
  std::vector<std::int32_t> row_, writer_;            // the current value and its writer, for each key
  std::vector<std::vector<std::int32_t>> writers_;    // the waiting writers of each key
  std::vector<std::vector<std::int32_t>> of_session_;
  std::vector<std::int32_t> next_;  // how many transactions of each session have been placed
  std::vector<UnplacedTransaction*> open_;      // the waiting transactions, in the given order
  std::vector<std::int32_t> commits_;
  std::vector<std::vector<OverwrittenRow>> undo_;  // what each placed transaction overwrote
  std::unordered_map<std::int32_t, std::vector<std::int32_t>>
      before_;                                // the transactions that must precede a transaction
  std::vector<std::int64_t> place_;           // the position of each transaction in commits_
  std::int64_t checkpoint_ = 0;               // no transaction before this position is removed
  std::int64_t steps_ = 0;                    // since the checkpoint
  std::int64_t work_ = 0;                     // the number of rows compared since the checkpoint
  int tries_ = 0;                             // how often the search has returned to the checkpoint
  std::uint64_t state_ = 0x9e3779b97f4a7c15;  // of the pseudo-random numbers
  std::int64_t front_ = 0, end_ = 0;          // the first unplaced transaction, and the end of the window
};

}  // namespace
}  // namespace isolang::predicates

namespace isolang {

std::optional<SerialOrder> serial_order_near(const History& history, std::span<const std::int32_t> near,
                                             Budget& budget) {
  for (const std::int32_t apart : {12, 24, 48})
    try {
      if (auto found = predicates::SerialSearch(history, near, apart, budget).run()) return found;
    } catch (const predicates::TooMuchWork&) {
      // The caller can do without a serial order, so too much work is not an error.
    }
  return std::nullopt;
}

}  // namespace isolang
