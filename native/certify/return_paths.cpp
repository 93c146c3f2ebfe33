// There are three ways to find a return path. U (see the header) determines which of them applies.
//
// If U consists of single pairs (so, wr, rt, ww), the check visits the reads of the transaction, and the writers that
// precede it in its session, in time, or in the version order of a key that both write.
//
// If walks lead from one start to another, each node of the product has one clock row, over a greedy cover of
// transactions by chains. The row contains the latest member of each chain whose start reaches the node or, if the
// history has fewer keys than chains, the latest writer of each key. A row is kept until its last successor has used
// it. A node has no row if it leads to no read, or if no start leads to it. In a history of many short sessions, most
// nodes have no row.
//
// Before computing rows, the check lists the suspects: the pairs of a start and a read for which a walk would close a
// return path, and in which the start precedes the read in a topological order of the nodes. That order puts a read
// before the version that overwrites the version it saw, and a version before the next version, if the walks permit
// this. So most histories have few suspects, and often none. Rows are computed only if the history has many suspects.
//
// In all other cases, the check searches from every writer.
#include "certify/return_paths.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "certify/given_order.hpp"
#include "certify/many_walks.hpp"
#include "certify/product.hpp"
#include "core/index.hpp"
#include "core/prefetch.hpp"

namespace isolang::certify {
namespace {

// If a source has more writes than this for each read of the reader, the check looks up the keys of the reads instead.
constexpr std::int64_t kWritesPerRead = 4;
constexpr std::int32_t kAhead = 2;  // the number of transactions by which each step of a prefetch comes first
constexpr std::int64_t kWalkVisitLimit = 400'000'000;  // edge visits, if every writer starts a separate search
constexpr std::size_t kPairLimit = std::size_t{1} << 25;  // pairs of keys written by one transaction
constexpr std::size_t kRowLimit = std::size_t{1} << 27;  // clock-row entries that exist at the same time
constexpr std::int32_t kDenseColumns = 1024;
constexpr std::int32_t kManyChains = 64;
constexpr std::int32_t kPatience = 1000;    // the number of turns that a node waits for others that should come first
constexpr std::int64_t kSuspectsEach = 32;  // suspects for each node; if there are more, rows decide

bool single_pair(int label) {
  return label == static_cast<int>(Relation::so) || label == static_cast<int>(Relation::wr) ||
         label == static_cast<int>(Relation::rt) || label == static_cast<int>(Relation::ww) ||
         label == static_cast<int>(Relation::init);
}

// The reads of each transaction, in the order of its operations.
struct ByReader {
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> item;
};

ByReader by_reader(const Choice& choice) {
  ByReader result;
  result.start.assign(idx(choice.places()) + 1, 0);
  for (const ExternalRead& r : choice.reads) ++result.start[idx(r.reader) + 1];
  std::partial_sum(result.start.begin(), result.start.end(), result.start.begin());
  result.item.resize(choice.reads.size());
  std::vector<std::int64_t> at(result.start.begin(), result.start.end() - 1);
  for (std::size_t i = 0; i < choice.reads.size(); ++i)
    result.item[at[choice.reads[i].reader]++] = static_cast<std::int64_t>(i);
  return result;
}

// Returns the reads grouped by their sources.
ByReader by_source(const Choice& choice) {
  ByReader result;
  result.start.assign(idx(choice.places()) + 1, 0);
  const auto source = [&](const ExternalRead& r) {
    return r.source < 0 ? -1 : choice.order[choice.key_start[r.key] + r.source];
  };
  for (const ExternalRead& r : choice.reads)
    if (source(r) >= 0) ++result.start[idx(source(r)) + 1];
  std::partial_sum(result.start.begin(), result.start.end(), result.start.begin());
  result.item.resize(idx(result.start.back()));
  std::vector<std::int64_t> at(result.start.begin(), result.start.end() - 1);
  for (std::size_t i = 0; i < choice.reads.size(); ++i)
    if (const std::int32_t t = source(choice.reads[i]); t >= 0)
      result.item[at[t]++] = static_cast<std::int64_t>(i);
  return result;
}

// For each transaction and each key that it writes: the key, and its position in the key's version
// order.
struct Places {
  std::vector<std::int64_t> start;
  std::vector<std::pair<std::int32_t, std::int32_t>> item;

  explicit Places(const Choice& choice) {
    start.assign(idx(choice.places()) + 1, 0);
    for (const std::int32_t t : choice.order) ++start[t + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    item.resize(choice.order.size());
    std::vector<std::int64_t> at(start.begin(), start.end() - 1);
    for (std::size_t key = 0; key + 1 < choice.key_start.size(); ++key)
      for (std::int64_t i = choice.key_start[key]; i < choice.key_start[key + 1]; ++i)
        item[at[choice.order[i]]++] = {static_cast<std::int32_t>(key),
                                       static_cast<std::int32_t>(i - choice.key_start[key])};
  }
};

// Returns whether some transaction read a version whose writer also wrote, for some key, a later version than the one
// that the transaction read. With `earlier_only`, the read of that key must come after the read of the version.
bool by_reads(const History& history, const Choice& choice, bool earlier_only, Budget& budget) {
  const ByReader reads = by_reader(choice);
  const Places places(choice);
  // For each key: the earliest version that a read of the current transaction saw. With `earlier_only`, only reads
  // after the current read are considered.
  std::vector<std::int32_t> least(choice.key_start.size(), -1),
      reader_of(choice.key_start.size(), -1);
  const auto note = [&](const ExternalRead& r) {
    const std::int32_t before = reader_of[r.key] == r.reader ? least[r.key] : r.source;
    least[r.key] = std::min(before, r.source);
    reader_of[r.key] = r.reader;
  };
  const auto read = [&](std::int64_t i) -> const ExternalRead& {
    return choice.reads[reads.item[i]];
  };
  // In a large history, the places of the writers may be anywhere in memory. Each is found through another item, which
  // is fetched first.
  const auto fetch = [&](std::int32_t t, auto visit) {
    if (t >= history.transactions()) return;
    for (std::int64_t i = reads.start[t]; i < reads.start[t + 1]; ++i)
      if (const ExternalRead& seen = read(i); seen.source >= 0)
        visit(choice.order.data() + choice.key_start[seen.key] + seen.source);
  };
  for (std::int32_t t = 0; t < history.transactions(); ++t) {
    fetch(t + 3 * kAhead, [](const std::int32_t* writer) { prefetch(writer); });
    fetch(t + 2 * kAhead, [&](const std::int32_t* writer) { prefetch(&places.start[*writer]); });
    fetch(t + kAhead, [&](const std::int32_t* writer) { prefetch(places.item.data() + places.start[*writer]); });
    const std::int64_t first = reads.start[t], last = reads.start[t + 1];
    for (std::int64_t i = first; i < last && !earlier_only; ++i) note(read(i));
    for (std::int64_t i = last; i-- > first;) {
      budget.poll();
      if (const ExternalRead& seen = read(i); seen.source >= 0) {
        const std::int32_t writer = choice.order[choice.key_start[seen.key] + seen.source];
        const auto from = places.item.begin() + places.start[writer];
        const auto to = places.item.begin() + places.start[writer + 1];
        const auto later = [&](const std::pair<std::int32_t, std::int32_t>& at) {
          return reader_of[at.first] == t && at.second > least[at.first];
        };
        if (to - from <= kWritesPerRead * (last - first)) {
          if (std::any_of(from, to, later)) return true;
        } else {  // for example, a writer that fills a table: look up the keys of the reads
          for (std::int64_t j = first; j < last; ++j) {
            const auto at = std::lower_bound(from, to, std::pair(read(j).key, -1));
            if (at != to && at->first == read(j).key && later(*at)) return true;
          }
        }
      }
      // The rows of one predicate read have no order.
      const auto statement = [&](std::int64_t j) {
        return choice.statement.empty() ? -1 : choice.statement[reads.item[j]];
      };
      // mutant: checker-ordered-statements
      if (!earlier_only || (i > first && statement(i) >= 0 && statement(i - 1) == statement(i)))
        continue;
      note(read(i));
      for (std::int64_t j = i + 1; j < last && statement(j) >= 0 && statement(j) == statement(i); ++j)
        note(read(j));
    }
  }
  return false;
}

bool by_sessions(const History& history, const Choice& choice, Budget& budget) {
  const ByReader reads = by_reader(choice);
  const Places places(choice);
  std::vector<std::int32_t> latest(choice.key_start.size(), -1),
      session_of(choice.key_start.size(), -1);
  std::vector<std::vector<std::int32_t>> sessions(idx(history.sessions));
  for (std::int32_t t = 0; t < history.transactions(); ++t)
    if (choice.included[t]) sessions[history.txn_session[t]].push_back(t);
  for (std::int32_t session = 0; session < history.sessions; ++session)
    for (const std::int32_t t : sessions[session]) {
      budget.poll();
      for (std::int64_t i = reads.start[t]; i < reads.start[t + 1]; ++i) {
        const ExternalRead& r = choice.reads[reads.item[i]];
        if (session_of[r.key] == session && latest[r.key] > r.source) return true;
      }
      if (history.txn_status[t] != static_cast<std::uint8_t>(Status::committed))
        continue;  // an indeterminate transaction precedes nothing
      for (std::int64_t i = places.start[t]; i < places.start[t + 1]; ++i) {
        const auto [key, place] = places.item[i];
        latest[key] = session_of[key] == session ? std::max(latest[key], place) : place;
        session_of[key] = session;
      }
    }
  return false;
}

// Returns whether a transaction missed a write by a transaction that had ended before it began.
bool by_real_time(const History& history, const Choice& choice, Budget& budget) {
  struct Ended {
    std::int64_t end;
    std::int32_t latest;  // the position of the latest version whose writer had ended by then
  };
  std::vector<Ended> ended(choice.order.size());
  std::vector<std::int64_t> last(choice.key_start.begin(), choice.key_start.end());
  for (std::size_t key = 0; key + 1 < choice.key_start.size(); ++key) {
    budget.poll();
    const std::int64_t start = choice.key_start[key];
    for (std::int64_t i = start; i < choice.key_start[key + 1]; ++i) {
      const std::int32_t t = choice.order[i];
      if (history.txn_status[t] == static_cast<std::uint8_t>(Status::committed))
        ended[last[key]++] = {history.txn_end[t], static_cast<std::int32_t>(i - start)};
    }
    std::sort(ended.begin() + start, ended.begin() + last[key],
              [](const Ended& a, const Ended& b) { return a.end < b.end; });
    for (std::int64_t i = start + 1; i < last[key]; ++i)
      ended[i].latest = std::max(ended[i].latest, ended[i - 1].latest);
  }
  return std::any_of(choice.reads.begin(), choice.reads.end(), [&](const ExternalRead& r) {
    budget.poll();
    const auto first = ended.begin() + choice.key_start[r.key];
    const auto at = std::lower_bound(
        first, ended.begin() + last[r.key], history.txn_begin[r.reader],
        [](const Ended& one, std::int64_t begin) { return one.end < begin; });
    return at != first && (at - 1)->latest > r.source;
  });
}

// Returns whether a transaction missed a write by a transaction that precedes it in the version order of a key that
// both write. Returns nothing if too many pairs of keys are written together.
std::optional<bool> by_versions(const History& history, const Choice& choice, Budget& budget) {
  const Places places(choice);
  // A transaction writes keys x and y, at position in_x of x. in_y becomes the least position in y among the writers
  // from here on in x.
  struct Both {
    std::int32_t x, y, in_x, in_y;
  };
  std::size_t count = 0;
  for (std::int32_t t = 0; t < history.transactions(); ++t) {
    const auto writes = idx(places.start[t + 1] - places.start[t]);
    count += writes * writes;
  }
  if (count > kPairLimit) return std::nullopt;
  std::vector<Both> both;
  both.reserve(count);
  const auto written = [&](std::int32_t t) {
    return std::span(places.item).subspan(idx(places.start[t]), idx(places.start[t + 1] - places.start[t]));
  };
  for (std::int32_t t = 0; t < history.transactions(); ++t)
    for (const auto& [x, in_x] : written(t))
      for (const auto& [y, in_y] : written(t))
        if (x != y) both.push_back({x, y, in_x, in_y});
  const auto less = [](const Both& a, const Both& b) {
    return std::tie(a.x, a.y, a.in_x) < std::tie(b.x, b.y, b.in_x);
  };
  std::sort(both.begin(), both.end(), less);
  for (std::size_t i = both.size(); i-- > 1;)
    if (both[i].x == both[i - 1].x && both[i].y == both[i - 1].y)
      both[i - 1].in_y = std::min(both[i - 1].in_y, both[i].in_y);
  for (const ExternalRead& r : choice.reads) {
    budget.poll();
    if (r.own > r.source + 1) return true;
    for (const auto& [y, in_y] : written(r.reader)) {
      const auto at = std::lower_bound(both.begin(), both.end(), Both{r.key, y, r.source + 1, 0}, less);
      if (at != both.end() && at->x == r.key && at->y == y && at->in_y < in_y) return true;
    }
  }
  return false;
}

// For each node and each column (a chain of starts, or the version order of a key): the position of the last start in
// the column that reaches the node, or -1 if none does. With many columns, a row stores only the columns that reach its
// node.
class Rows {
 public:
  explicit Rows(std::int32_t columns) : columns_(columns), sparse_(columns > kDenseColumns) {}

  std::int64_t fresh() {
    if (free_.empty()) {
      free_.push_back(sparse_ ? static_cast<std::int64_t>(lists_.size())
                              : static_cast<std::int64_t>(dense_.size()) / columns_);
      if (sparse_)
        lists_.emplace_back();
      else
        dense_.resize(grown(dense_.size(), idx(columns_)));
    }
    const std::int64_t row = free_.back();
    free_.pop_back();
    if (!sparse_) std::fill_n(dense_.begin() + row * columns_, columns_, -1);
    return row;
  }
  void drop(std::int64_t row) {
    free_.push_back(row);
    if (!sparse_) return;
    listed_ -= lists_[row].size();
    std::vector<Entry>().swap(lists_[row]);
  }
  std::int32_t at(std::int64_t row, std::int32_t column) const {
    if (!sparse_) return dense_[row * columns_ + column];
    const auto entry = std::lower_bound(lists_[row].begin(), lists_[row].end(), Entry{column, -1});
    return entry != lists_[row].end() && entry->first == column ? entry->second : -1;
  }
  void raise(std::int64_t row, std::int32_t column, std::int32_t to) {
    if (!sparse_) {
      std::int32_t& entry = dense_[row * columns_ + column];
      entry = std::max(entry, to);
    } else {
      merge(row, std::vector{Entry{column, to}});
    }
  }
  void raise(std::int64_t row, std::int64_t by) {
    if (!sparse_) {
      std::int32_t* const to = dense_.data() + row * columns_;
      const std::int32_t* const from = dense_.data() + by * columns_;
      for (std::int32_t c = 0; c < columns_; ++c) to[c] = std::max(to[c], from[c]);
    } else {
      merge(row, lists_[by]);
    }
  }

 private:
  using Entry = std::pair<std::int32_t, std::int32_t>;  // (column, position)

  static std::size_t grown(std::size_t size, std::size_t by) {
    if (size + by > kRowLimit)
      throw NotCertified{"not certified: the history is too wide for the clocks of this checker"};
    return size + by;
  }
  void merge(std::int64_t row, const std::vector<Entry>& other) {
    merged_.clear();
    auto a = lists_[row].begin();
    const auto end = lists_[row].end();
    for (const Entry& entry : other) {
      while (a != end && a->first < entry.first) merged_.push_back(*a++);
      merged_.push_back(entry);
      if (a != end && a->first == entry.first)
        merged_.back().second = std::max(entry.second, (a++)->second);
    }
    merged_.insert(merged_.end(), a, end);
    listed_ = grown(listed_, merged_.size() - lists_[row].size());
    lists_[row] = merged_;
  }

  const std::int32_t columns_;
  const bool sparse_;
  std::vector<std::int32_t> dense_;
  std::vector<std::vector<Entry>> lists_;
  std::vector<Entry> merged_;
  std::size_t listed_ = 0;
  std::vector<std::int64_t> free_;
};

// Finds return paths among the walks between two starts.
class Clocks {
 public:
  Clocks(const History& history, const Choice& choice, Relation closing, Machine machine,
         bool by_next, Budget& budget)
      : closing_(closing),
        c_(choice),
        m_(std::move(machine)),
        by_next_(by_next),
        budget_(budget),
        graph_(product(history, choice, m_, budget)) {}

  // Sorts the nodes topologically (Kahn 1962). Returns false if there is a cycle.
  bool sort() {
    std::vector<std::int32_t> incoming(idx(graph_.nodes), 0);
    for (const std::int32_t v : graph_.edge_to) ++incoming[v];
    order_.reserve(idx(graph_.nodes));
    // The order is depth first, because then few rows exist at any time.
    std::vector<std::int32_t> ready;
    for (std::int64_t v = graph_.nodes - 1; v >= 0; --v)
      if (incoming[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
    while (!ready.empty()) {
      budget_.poll();
      const std::int32_t v = ready.back();
      ready.pop_back();
      order_.push_back(v);
      for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e)
        if (--incoming[graph_.edge_to[e]] == 0) ready.push_back(graph_.edge_to[e]);
    }
    return static_cast<std::int64_t>(order_.size()) == graph_.nodes;
  }

  bool close() {  // call after sort()
    const bool of_source = closing_ == Relation::wr;
    const ByReader reads = of_source ? by_source(c_) : by_reader(c_);
    const Places places(c_);
    if (const auto closed = by_suspects(reads, places)) return *closed;
    find_leading(reads);
    cover();
    // Sessions that end with an unknown outcome each leave a short chain, so try covers with few chains.
    for (std::int32_t most = kManyChains; most <= kDenseColumns && most < chains_ / 2; most *= 4)
      if (cover_with(most)) break;
    const auto keys = static_cast<std::int32_t>(c_.key_start.size()) - 1;
    // SOUND BECAUSE if starts are also ends, no start leads to itself. Therefore no version that
    // reaches a reader is the reader's own version.
    by_key_ = !of_source && m_.looped && keys <= chains_;
    if (!by_key_) list_members();
    Rows rows(by_key_ ? std::max(1, keys) : chains_);
    std::vector<std::int64_t> row(idx(graph_.nodes), -1);
    for (const std::int32_t v : order_) {
      budget_.poll();
      if (const std::int32_t end = end_of(v); end >= 0 && row[v] >= 0)
        for (std::int64_t i = reads.start[end]; i < reads.start[end + 1]; ++i)
          if (closes(c_.reads[reads.item[i]], rows, row[v])) return true;
      const std::int32_t t = start_of(v);
      if (t >= 0 && chain_[t] >= 0) {
        if (row[v] < 0) row[v] = rows.fresh();
        if (by_key_)
          for (std::int64_t i = places.start[t]; i < places.start[t + 1]; ++i)
            rows.raise(row[v], places.item[i].first, places.item[i].second);
        else
          rows.raise(row[v], chain_[t], position_[t]);
      }
      if (row[v] >= 0) pass_row_on(v, rows, row);
    }
    return false;
  }

 private:
  std::int32_t start_of(std::int32_t v) const {
    return v < static_cast<std::int64_t>(c_.places()) * m_.states && v % m_.states == 0
               ? v / m_.states
               : -1;
  }

  // Returns the transaction at which a word may end at this node, or -1.
  std::int32_t end_of(std::int32_t v) const {
    if (m_.looped || v >= static_cast<std::int64_t>(c_.places()) * m_.states)
      return start_of(v);
    const bool ends =
        std::find(m_.accepting.begin(), m_.accepting.end(), v % m_.states) != m_.accepting.end();
    return ends ? v / m_.states : -1;
  }

  std::int32_t start_node(std::int32_t place) const { return place * m_.states; }

  // Decides by the suspects whether a return path closes. Returns nothing if there are too many
  // suspects.
  std::optional<bool> by_suspects(const ByReader& reads, const Places& places) const {
    const std::vector<std::int32_t> order = likely_order(reads, places);
    std::vector<std::int32_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int32_t>(i);
    // For each version, the first position in `order` among the start nodes of this version's
    // writer and of the key's later writers.
    std::vector<std::int32_t> lowest(c_.order.size());
    for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key) {
      std::int32_t least = std::numeric_limits<std::int32_t>::max();
      for (std::int64_t i = c_.key_start[key + 1]; i-- > c_.key_start[key];)
        lowest[i] = least = std::min(least, place[start_node(c_.order[i])]);
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> suspects;
    const std::size_t most = order.size() * kSuspectsEach;
    for (const std::int32_t v : order) {
      const std::int32_t end = end_of(v);
      if (end < 0) continue;
      const std::int32_t at = place[v];
      for (std::int64_t i = reads.start[end]; i < reads.start[end + 1]; ++i) {
        budget_.poll();
        const ExternalRead& r = c_.reads[reads.item[i]];
        // mutant: checker-closing-reads
        if (!is_of(closing_, r.of_predicate, r.own >= 0)) continue;
        const auto suspect = [&](std::int32_t start) {
          if (place[start] < at) suspects.emplace_back(place[start], at);
        };
        if (closing_ == Relation::wr) {
          if (c_.included[r.reader]) suspect(start_node(r.reader));
          continue;
        }
        const std::int64_t start = c_.key_start[r.key], last = c_.key_start[idx(r.key) + 1];
        for (std::int64_t b = start + r.source + 1; b < last && lowest[b] < at; ++b) {
          if (b - start == r.own) continue;
          suspect(start_node(c_.order[b]));
          if (by_next_) break;
        }
      }
      if (suspects.size() > most) return std::nullopt;
    }
    return any_walk(graph_, order, std::move(suspects), budget_);
  }

  // Returns a topological order of the nodes, with few suspects.
  std::vector<std::int32_t> likely_order(const ByReader& reads, const Places& places) const {
    // For each node: how many nodes not yet in the order must come before it, and how many should.
    std::vector<std::int32_t> incoming(idx(graph_.nodes), 0), wished(idx(graph_.nodes), 0), order;
    for (const std::int32_t v : graph_.edge_to) ++incoming[v];
    const auto each_wish = [&](std::int32_t v, auto visit) {
      if (const std::int32_t end = end_of(v); end >= 0)
        for (std::int64_t i = reads.start[end]; i < reads.start[end + 1]; ++i) {
          const ExternalRead& r = c_.reads[reads.item[i]];
          if (closing_ == Relation::wr) {
            if (const std::int32_t reader = start_node(r.reader); reader != v) visit(reader);
            continue;
          }
          const std::int64_t start = c_.key_start[r.key], last = c_.key_start[idx(r.key) + 1];
          std::int64_t next = start + r.source + 1;
          next += static_cast<std::int64_t>(next - start == r.own);
          if (next < last) visit(start_node(c_.order[next]));
        }
      if (const std::int32_t t = start_of(v); t >= 0)
        for (std::int64_t i = places.start[t]; i < places.start[t + 1]; ++i) {
          const auto [key, at] = places.item[i];
          if (const std::int64_t next = c_.key_start[key] + at + 1; next < c_.key_start[idx(key) + 1])
            visit(start_node(c_.order[next]));
        }
    };
    for (std::int32_t v = 0; v < graph_.nodes; ++v)
      each_wish(v, [&](std::int32_t w) { ++wished[w]; });
    // Transactions come in the order of the history. Other nodes come as soon as they are ready. A wish is abandoned
    // after a while. Otherwise, contradictory wishes would delay their nodes, and all nodes that depend on these, until
    // the end.
    const auto of_places = static_cast<std::int64_t>(c_.places()) * m_.states;
    using Turn = std::pair<std::int32_t, std::int32_t>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> free, held;
    std::vector<std::uint8_t> taken(idx(graph_.nodes), 0);
    const auto ready = [&](std::int32_t v) {
      (wished[v] == 0 ? free : held).emplace(v < of_places ? v : -1, v);
    };
    for (std::int32_t v = 0; v < graph_.nodes; ++v)
      if (incoming[v] == 0) ready(v);
    order.reserve(idx(graph_.nodes));
    while (!free.empty() || !held.empty()) {
      const bool waits = !free.empty() && (held.empty() || free.top().first - kPatience < held.top().first);
      auto& queue = waits ? free : held;
      const std::int32_t v = queue.top().second;
      queue.pop();
      if (std::exchange(taken[v], std::uint8_t{1}) != 0) continue;
      budget_.poll();
      order.push_back(v);
      for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e)
        if (const std::int32_t w = graph_.edge_to[e]; --incoming[w] == 0) ready(w);
      each_wish(v, [&](std::int32_t w) {
        if (--wished[w] == 0 && incoming[w] == 0 && taken[w] == 0) ready(w);
      });
    }
    return order;
  }

  // SOUND BECAUSE a row is examined only where a transaction reads.
  bool needs_row(std::int32_t v) const { return leads_[v] != 0 || reads_[v] != 0; }

  void find_leading(const ByReader& reads) {
    leads_.assign(idx(graph_.nodes), 0);
    reads_.assign(idx(graph_.nodes), 0);
    for (auto v = order_.rbegin(); v != order_.rend(); ++v) {
      const std::int32_t t = end_of(*v);
      reads_[*v] = t >= 0 && reads.start[t] < reads.start[t + 1];
      for (std::int64_t e = graph_.edge_start[*v]; e < graph_.edge_start[*v + 1] && !leads_[*v];
           ++e)
        leads_[*v] = needs_row(graph_.edge_to[e]);
    }
  }

  // Covers the transactions by chains without using rows: each node passes on the chain whose last member reaches it to
  // one successor, and a start that leads to a read joins this chain.
  void cover() {
    chain_.assign(idx(c_.places()), -1);
    position_.assign(idx(c_.places()), 0);
    std::vector<std::int32_t> handed(idx(graph_.nodes), -1), length;
    for (const std::int32_t v : order_) {
      const std::int32_t t = start_of(v);
      if (t >= 0 && c_.included[t] && leads_[v] != 0) {
        if (handed[v] < 0) {
          handed[v] = static_cast<std::int32_t>(length.size());
          length.push_back(0);
        }
        chain_[t] = handed[v];
        position_[t] = length[handed[v]]++;
      }
      if (handed[v] < 0) continue;
      for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e)
        if (const std::int32_t w = graph_.edge_to[e]; handed[w] < 0 && needs_row(w)) {
          handed[w] = handed[v];
          break;
        }
    }
    chains_ = std::max<std::int32_t>(1, static_cast<std::int32_t>(length.size()));
  }

  // Covers the transactions by at most `most` chains: a start that leads to a read joins any chain whose last member
  // reaches it. Returns false and keeps the previous cover if that needs more chains.
  bool cover_with(std::int32_t most) {
    std::vector<std::int32_t> chain(idx(c_.places()), -1), position(idx(c_.places()), 0), length;
    Rows rows(most);
    std::vector<std::int64_t> row(idx(graph_.nodes), -1);
    for (const std::int32_t v : order_) {
      budget_.poll();
      const std::int32_t t = start_of(v);
      if (t >= 0 && c_.included[t] && leads_[v] != 0) {
        std::size_t joined = 0;
        // mutant: checker-chain-of-strangers
        while (joined < length.size() &&
               (row[v] < 0 || rows.at(row[v], static_cast<std::int32_t>(joined)) != length[joined] - 1))
          ++joined;
        if (joined == length.size()) {
          if (joined == idx(most)) return false;
          length.push_back(0);
        }
        chain[t] = static_cast<std::int32_t>(joined);
        position[t] = length[joined]++;
        if (row[v] < 0) row[v] = rows.fresh();
        rows.raise(row[v], chain[t], position[t]);
      }
      if (row[v] >= 0) pass_row_on(v, rows, row);
    }
    chain_ = std::move(chain);
    position_ = std::move(position);
    chains_ = std::max<std::int32_t>(1, static_cast<std::int32_t>(length.size()));
    return true;
  }

  // Merges the row of a node into the rows of its successors, and then frees the row.
  void pass_row_on(std::int32_t v, Rows& rows, std::vector<std::int64_t>& row) const {
    for (std::int64_t e = graph_.edge_start[v]; e < graph_.edge_start[v + 1]; ++e) {
      const std::int32_t w = graph_.edge_to[e];
      if (!needs_row(w)) continue;
      if (row[w] < 0) row[w] = rows.fresh();
      rows.raise(row[w], row[v]);
    }
    // SOUND BECAUSE in this order all nodes that lead to v have been visited, and v has passed on its own row.
    rows.drop(row[v]);
  }

  // Lists for each key its writers on each chain, in chain order, with the latest position in the version order so far.
  void list_members() {
    member_start_.assign(1, 0);
    for (std::size_t key = 0; key + 1 < c_.key_start.size(); ++key) {
      const auto first = static_cast<std::ptrdiff_t>(members_.size());
      for (std::int64_t i = c_.key_start[key]; i < c_.key_start[key + 1]; ++i)
        if (const std::int32_t b = c_.order[i]; chain_[b] >= 0)
          members_.push_back(
              {chain_[b], position_[b], static_cast<std::int32_t>(i - c_.key_start[key])});
      std::sort(members_.begin() + first, members_.end(), [](const Member& a, const Member& b) {
        return std::pair(a.chain, a.position) < std::pair(b.chain, b.position);
      });
      for (auto m = members_.begin() + first; m != members_.end(); ++m)
        if (m != members_.begin() + first && (m - 1)->chain == m->chain)
          m->latest = std::max(m->latest, (m - 1)->latest);
      member_start_.push_back(static_cast<std::int64_t>(members_.size()));
    }
  }

  bool closes(const ExternalRead& r, const Rows& rows, std::int64_t row) {
    if (!is_of(closing_, r.of_predicate, r.own >= 0)) return false;
    if (closing_ == Relation::wr)
      return chain_[r.reader] >= 0 && rows.at(row, chain_[r.reader]) >= position_[r.reader];
    if (by_key_) return rows.at(row, r.key) > r.source;
    bool own = false;
    if (!by_next_) {
      const auto last = members_.begin() + member_start_[idx(r.key) + 1];
      for (auto m = members_.begin() + member_start_[r.key]; m != last;) {
        budget_.poll();
        const std::int32_t chain = m->chain, reached = rows.at(row, chain);
        const auto after = [&](std::int32_t position) {
          return std::partition_point(m, last, [&](const Member& other) {
            return other.chain == chain && other.position <= position;
          });
        };
        if (const auto beyond = after(reached); beyond != m && (beyond - 1)->latest > r.source) {
          if ((beyond - 1)->latest != r.own) return true;
          own = true;
        }
        m = after(std::numeric_limits<std::int32_t>::max());
      }
      if (!own) return false;
    }
    const std::int64_t start = c_.key_start[r.key], size = c_.key_start[idx(r.key) + 1] - start;
    for (std::int64_t i = r.source + 1; i < size; ++i) {
      if (i == r.own) continue;
      budget_.poll();
      const std::int32_t b = c_.order[start + i];
      if (chain_[b] >= 0 && rows.at(row, chain_[b]) >= position_[b]) return true;
      if (by_next_) return false;
    }
    return false;
  }

  const Relation closing_;
  const Choice& c_;
  const Machine m_;
  const bool by_next_;
  Budget& budget_;
  const ProductGraph graph_;
  // leads_: the node leads to one that reads; reads_: the node itself reads
  std::vector<std::uint8_t> leads_, reads_;
  std::vector<std::int32_t> order_, chain_, position_;  // chain_: of each transaction, or -1
  std::int32_t chains_ = 1;
  bool by_key_ = false;  // whether the columns are keys and hold the latest writer, instead of chains
  struct Member {
    std::int32_t chain, position, latest;
  };
  std::vector<Member> members_;  // grouped by key
  std::vector<std::int64_t> member_start_;
};

bool by_search(const History& history, const Choice& choice, Relation closing,
               const Machine& machine, Budget& budget) {
  const ProductGraph graph = product(history, choice, machine, budget);
  const Places places(choice);
  const ByReader reads = by_reader(choice);
  std::vector<std::uint8_t> ends(idx(machine.states), 0);
  for (const int q : machine.accepting) ends[q] = 1;
  const std::int64_t of_places = static_cast<std::int64_t>(choice.places()) * machine.states;
  std::vector<std::int32_t> seen(idx(graph.nodes), -1), work;
  std::int64_t visits = 0;
  for (std::int32_t b = 0; b < history.transactions(); ++b) {
    const auto first = places.item.begin() + places.start[b];
    const auto last = places.item.begin() + places.start[b + 1];
    if (first == last) continue;
    const auto overwrites = [&](const ExternalRead& r) {
      const auto at = std::lower_bound(first, last, std::pair(r.key, r.source + 1));
      return at != last && at->first == r.key;
    };
    work.assign(1, b * machine.states);
    while (!work.empty()) {
      const std::int32_t v = work.back();
      work.pop_back();
      visits += graph.edge_start[v + 1] - graph.edge_start[v];
      if (visits > kWalkVisitLimit)
        throw NotCertified{
            "not certified: irreflexive over an expression whose words do not compose, on a large "
            "history"};
      for (std::int64_t e = graph.edge_start[v]; e < graph.edge_start[v + 1]; ++e) {
        const std::int32_t w = graph.edge_to[e];
        budget.poll();
        if (seen[w] == b) continue;
        seen[w] = b;
        work.push_back(w);
        const std::int32_t reader = w / machine.states;
        if (w >= of_places || ends[w % machine.states] == 0 || reader == b) continue;
        for (std::int64_t i = reads.start[reader]; i < reads.start[reader + 1]; ++i)
          if (const ExternalRead& r = choice.reads[reads.item[i]];
              is_of(closing, r.of_predicate, r.own >= 0) && overwrites(r))
            return true;
      }
    }
  }
  return false;
}

}  // namespace

std::optional<Positions> before_source(const Positions& p) {
  Positions before = p;
  const auto is_wr = [&](int f) { return p.label[f] == static_cast<int>(Relation::wr); };
  bool any = false;
  for (std::size_t i = 0; i < p.label.size(); ++i) {
    const bool last = is_wr(static_cast<int>(i));
    any |= last;
    if (last ? !p.follow[i].empty() : p.accepting[i] != 0) return std::nullopt;
    before.accepting[i] = i > 0 && std::any_of(p.follow[i].begin(), p.follow[i].end(), is_wr);
    std::erase_if(before.follow[i], is_wr);
  }
  if (!any) return std::nullopt;
  return before;
}

bool leads_back_to_source(const History& history, const Choice& choice, const Positions& before,
                          Budget& budget) {
  if (!any_word(before)) return false;
  Clocks clocks(history, choice, Relation::wr, machine(before, false, true), false, budget);
  if (!clocks.sort())
    throw NotCertified{
        "not certified: irreflexive over words that run in cycles, which no other check forbids"};
  return clocks.close();
}

std::optional<SingleRw> single_rw(const Positions& p) {
  SingleRw result{p, {}};
  const auto is_last = [&](int f) { return overwrites(p.label[f]) && p.follow[f].empty(); };
  for (std::size_t i = 0; i < p.label.size(); ++i) {
    std::erase_if(result.without.follow[i], is_last);
    if (is_last(static_cast<int>(i))) result.without.accepting[i] = 0;
  }
  for (const Relation relation : {Relation::rw, Relation::irw, Relation::prw, Relation::mere_irw}) {
    const auto closes = [&](int f) { return is_last(f) && p.label[f] == static_cast<int>(relation); };
    Positions before = result.without;
    bool any = false;
    for (std::size_t i = 0; i < p.label.size(); ++i) {
      before.accepting[i] = i > 0 && std::any_of(p.follow[i].begin(), p.follow[i].end(), closes);
      any |= closes(static_cast<int>(i));
    }
    if (any) result.before.emplace_back(relation, std::move(before));
  }
  if (result.before.empty()) return std::nullopt;
  return result;
}

namespace {

// Returns the words of return paths with the closing step at the end; without_last() removes that step again.
Positions with_last(Positions way, Relation closing) {
  const int last = static_cast<int>(way.label.size());
  for (std::size_t i = 1; i < way.label.size(); ++i)
    if (way.accepting[i] != 0) way.follow[i].push_back(last);
  way.accepting.assign(way.label.size(), 0);
  way.label.push_back(static_cast<int>(closing));
  way.follow.emplace_back();
  way.accepting.push_back(1);
  return way;
}
Positions without_last(Positions words) {
  const int last = static_cast<int>(words.label.size()) - 1;
  words.label.pop_back();
  words.follow.pop_back();
  words.accepting.pop_back();
  for (std::size_t i = 0; i < words.label.size(); ++i) words.accepting[i] = std::erase(words.follow[i], last) > 0;
  return words;
}

}  // namespace

bool closes_return_path(const History& history, const Choice& choice, Relation closing,
                        const Positions& way, bool by_statement, Budget& budget) {
  Positions before = of_return_paths(way);
  if (!any_word(before)) return false;
  // mutant: checker-all-reads-close
  const bool single =
      !by_statement && closing == Relation::rw &&
      std::all_of(before.follow[0].begin(), before.follow[0].end(),
                  [&](int p) { return single_pair(before.label[p]) && before.follow[p].empty(); });
  if (single) {
    const auto reads = [&](Relation r) { return before.reads(static_cast<int>(r)); };
    // init leads from T0 only, and no rw leads to T0.
    const auto versions = reads(Relation::ww) ? by_versions(history, choice, budget) : false;
    const bool own_clocks = !history.slack.empty() || !history.txn_own_end.empty();
    if (versions && !(own_clocks && reads(Relation::rt)))
      return *versions || (reads(Relation::wr) && by_reads(history, choice, false, budget)) ||
             (reads(Relation::so) && by_sessions(history, choice, budget)) ||
             (reads(Relation::rt) && by_real_time(history, choice, budget));
  }
  // Without session order the graph has many chains. With session order it has few chains but more return paths; if
  // none of these closes, no return path closes.
  const auto with_sessions = [&](Machine more, const std::vector<std::pair<int, int>>& steps,
                                 bool by_next) {
    more.steps[idx(Relation::so)] = steps;
    more.only[idx(Relation::so)].clear();
    Clocks narrow(history, choice, closing, more, by_next, budget);
    return narrow.sort() && !narrow.close();
  };
  bool repeatable = before.repeatable();
  if (!repeatable && !by_statement) {
    Positions words = with_last(before, closing);
    if (returns_by_order(history, choice, words, kOrdersOfTime, budget)) return true;
    before = without_last(std::move(words));
    if (!any_word(before)) return false;
    repeatable = before.repeatable();
  }
  const bool tests = before.tests() || before.names();
  if ((!repeatable || tests) && !by_statement) {
    // Allowing the steps in any order, together with those of sessions, makes more return paths and fewer chains. If
    // none of these closes, no return path closes.
    Machine any;
    any.looped = true;
    for (const std::vector<int>& next : before.follow)
      for (const int p : next)
        if (!is_test(before.label[p])) any.steps[idx(relation_of_letter(before.label[p]))] = {{0, 0}};
    const bool versions = !any.of(Relation::ww).empty();
    if (with_sessions(any, {{0, 0}}, versions)) return false;
  }
  if (!repeatable) {
    const Machine once = machine(before, false, true);
    const auto leads_to_start = [](const auto& steps) {
      return std::any_of(steps.begin(), steps.end(), [](const auto& s) { return s.second == 0; });
    };
    // If walks lead from start to start, the starts form chains.
    if (std::any_of(once.steps.begin(), once.steps.end(), leads_to_start)) {
      const auto& ww = once.of(Relation::ww);
      const bool by_next = std::find(ww.begin(), ww.end(), std::pair(0, 0)) != ww.end();
      if (once.of(Relation::so).empty() && with_sessions(once, {{0, 0}}, by_next)) return false;
      Clocks clocks(history, choice, closing, once, by_next, budget);
      if (clocks.sort()) return clocks.close();
    }
    if (!by_statement) {
      Positions words = with_last(before, closing);
      if (returns_by_order(history, choice, words, kGivenOrders, budget)) return true;
      before = without_last(std::move(words));
      if (!any_word(before)) return false;
    }
    return by_search(history, choice, closing, machine(before, false), budget);
  }
  const bool by_next = before.reads(static_cast<int>(Relation::ww));
  const Machine walks = machine(before, true);
  if (walks.of(Relation::so).empty() && !walks.of(Relation::wr).empty() &&
      with_sessions(walks, walks.of(Relation::wr), by_next))
    return false;
  Clocks clocks(history, choice, closing, walks, by_next, budget);
  if (!clocks.sort())
    throw NotCertified{
        "not certified: irreflexive over words that run in cycles, which no other check forbids"};
  return clocks.close();
}

bool closes_earlier_read(const History& history, const Choice& choice, Budget& budget) {
  return by_reads(history, choice, true, budget);
}

}  // namespace isolang::certify
