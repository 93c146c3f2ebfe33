// `Clocks::build` computes the row of each node in topological order, as the maximum of the rows of its predecessors.
// It first assigns nodes to chains, or keeps the chains of the last call. Rows are stored in blocks with one or two
// bytes for each cell.
#include "engine/graph/clocks.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/index.hpp"
#include "core/vectorised.hpp"

namespace isolang {

namespace {
// A graph with more chains than this has hardly any long paths. Rows with a cell for each of its chains would need much
// memory and contain little information.
constexpr std::size_t kMaxColumns = 1024;
constexpr std::size_t kChainsEach = 8;  // with more chains for each column, only kFewColumns
constexpr std::size_t kFewColumns = 128;
// The rows of kMaxColumns columns take much memory. Joining with so many is tried only if half of them sufficed for this
// part of the nodes.
constexpr std::size_t kFarEnough = 3;
constexpr std::int32_t kNoSum = std::numeric_limits<std::int32_t>::min();
// The longest chain is this many times as long as a short chain.
constexpr std::int32_t kShortChainFactor = 64;
constexpr std::size_t kSampledChains = 8;         // number of chains
// The number of lanes of a vector register. Rows are padded to a multiple of it, so that loops over
// full registers have no remainder.
constexpr std::size_t kLanes = 8;
constexpr std::size_t kPassesOfNode = 3;  // the row of each node is filled, summed up and stored

// Operations on rows of positions and of cells; see Clocks.

ISOLANG_VECTORISED void raise_row(std::int32_t* row, const std::int32_t* other,
                                  std::size_t columns) {
  for (std::size_t c = 0; c < columns; ++c) row[c] = std::max(row[c], other[c]);
}

// Looks up both values of a cell, which avoids branches.
template <typename Cell>
[[gnu::always_inline]] inline void raise_by_cells(std::int32_t* row, const Cell* cells,
                                                  const std::int32_t* top,
                                                  const std::int32_t* floor, std::size_t columns) {
  constexpr Cell most = std::numeric_limits<Cell>::max();
  for (std::size_t c = 0; c < columns; ++c) {
    const std::int32_t least = floor[c], exact = top[c] - std::int32_t{cells[c]};
    // mutant: lagging-cell-exact
    row[c] = std::max(row[c], cells[c] == most ? least : exact);
  }
}
ISOLANG_VECTORISED void raise_row(std::int32_t* row, const std::uint8_t* cells,
                                  const std::int32_t* top, const std::int32_t* floor,
                                  std::size_t columns) {
  raise_by_cells(row, cells, top, floor, columns);
}
ISOLANG_VECTORISED void raise_row(std::int32_t* row, const std::uint16_t* cells,
                                  const std::int32_t* top, const std::int32_t* floor,
                                  std::size_t columns) {
  raise_by_cells(row, cells, top, floor, columns);
}

// Returns the sum of the row. The entries count nodes that reach the same node, so the sum is at
// most the number of nodes.
ISOLANG_VECTORISED std::int32_t sum_and_lower(const std::int32_t* row, std::int32_t* floor,
                                              std::size_t columns) {
  std::int32_t sum = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    sum += row[c];
    floor[c] = std::min(floor[c], row[c]);
  }
  return sum;
}

template <typename Cell>
[[gnu::always_inline]] inline void store_as_cells(const std::int32_t* row, const std::int32_t* top,
                                                  Cell* cells, std::size_t columns) {
  constexpr std::int32_t most = std::numeric_limits<Cell>::max();
  for (std::size_t c = 0; c < columns; ++c)
    cells[c] = static_cast<Cell>(std::min(top[c] - row[c], most));
}
ISOLANG_VECTORISED void store_row(const std::int32_t* row, const std::int32_t* top,
                                  std::uint8_t* cells, std::size_t columns) {
  store_as_cells(row, top, cells, columns);
}
ISOLANG_VECTORISED void store_row(const std::int32_t* row, const std::int32_t* top,
                                  std::uint16_t* cells, std::size_t columns) {
  store_as_cells(row, top, cells, columns);
}

}  // namespace

void Clocks::build(const Adjacency& predecessors, const Adjacency* by_number,
                   std::span<const std::int32_t> order, bool grown, std::size_t max_bytes,
                   Budget& budget) {
  grown = grown && place_.size() == order.size() && !(joined_ && leads_off_chain(predecessors));
  const bool other_chains = (by_number != nullptr || !grown) &&
                            find_chains(by_number ? *by_number : predecessors, order, grown, max_bytes);
  const auto fill_rows = [&](bool joining) {
    for (std::size_t i = 0; i < order.size(); ++i)
      place_[order[i]].slot = static_cast<std::int32_t>(i);
    changed_.assign(order.size(), 0);
    const std::size_t blocks = (order.size() + kBlock - 1) / kBlock;
    top_.resize(blocks * columns_);
    floor_.resize(blocks * columns_);
    // Cells of two bytes may take a small part of the memory: those of one byte say nearly as much, as chains that lag
    // far behind are few.
    narrow_ = order.size() * columns_ * sizeof(std::uint16_t) > max_bytes / 16;
    return narrow_ ? fill(bytes_, predecessors, order, joining, budget)
                   : fill(words_, predecessors, order, joining, budget);
  };
  if (!other_chains || !joined(fill_rows, predecessors, order, max_bytes)) fill_rows(false);
}

// Returns true if rows and chains could be found together. Otherwise it restores the previous
// chains.
template <typename Fill>
bool Clocks::joined(const Fill& fill_rows, const Adjacency& predecessors,
                    std::span<const std::int32_t> order, std::size_t max_bytes) {
  joined_ = false;
  if (chains_ < 2 * few_) return false;
  const std::vector<Place> found = place_;
  const std::size_t chains = chains_, columns = columns_;
  // A node without successors needs no chain, for example an indeterminate transaction that no
  // transaction reads from.
  for (Place& p : place_) p.column = -1;
  for (const std::int32_t v : order)
    for (const std::int32_t u : predecessors.of(v)) place_[u].column = 0;
  const std::vector<Place> needed = place_;
  for (std::size_t most = few_; most <= kMaxColumns; most *= 2) {
    if (chains < 2 * most || order.size() * most > max_bytes) break;
    chains_ = columns_ = most;
    place_ = needed;
    const std::size_t joined = fill_rows(true);
    joined_ = joined == order.size();
    if (joined_) return true;
    bytes_ = {}, words_ = {};
    if (2 * most == kMaxColumns && joined * kFarEnough < order.size()) break;
    few_ = std::min(kMaxColumns, most * 2);
  }
  sum_.assign(order.size(), kNoSum);
  place_ = found;
  chains_ = chains;
  columns_ = columns;
  return false;
}

// Returns true if a node without a chain now has a successor that it did not have when chains were
// joined.
bool Clocks::leads_off_chain(const Adjacency& predecessors) const {
  for (std::size_t v = 0; v < place_.size(); ++v)
    for (const std::int32_t u : predecessors.of(static_cast<std::int32_t>(v)))
      if (place_[u].column < 0) return true;
  return false;
}

bool Clocks::find_chains(const Adjacency& predecessors, std::span<const std::int32_t> order,
                         bool grown, std::size_t max_bytes) {
  const std::size_t n = order.size();
  std::vector<std::int32_t> chain(n, -1), position(n, 0), tail;
  for (const std::int32_t v : order) {
    for (const std::int32_t u : predecessors.of(v)) {
      // mutant: chain-forks
      if (tail[chain[u]] != u) continue;
      chain[v] = chain[u];
      // mutant: flat-chain
      position[v] = position[u] + 1;
      tail[chain[u]] = v;
      break;
    }
    if (chain[v] < 0) {
      chain[v] = static_cast<std::int32_t>(tail.size());
      tail.push_back(v);
    }
  }
  if (grown && chains_ <= tail.size() + tail.size() / 8) return false;
  chains_ = tail.size();
  columns_ = std::min(
      {chains_, kMaxColumns, std::max<std::size_t>(1, max_bytes / std::max<std::size_t>(1, n))});
  // Where most chains get no column, most paths are unknown anyway, and a few columns serve as well as many.
  if (chains_ > kMaxColumns * kChainsEach) columns_ = std::min(columns_, kFewColumns);
  // A column costs the same for every chain, so short chains get none if the rows would need more than a certain share
  // of the memory.
  if (n * columns_ > max_bytes / 4) {
    const auto end = [&](std::int32_t v) { return position[v]; };
    const std::int32_t longest = position[*std::ranges::max_element(tail, {}, end)];
    const auto long_ones = std::ranges::count_if(
        tail, [&](std::int32_t v) { return end(v) >= longest / kShortChainFactor; });
    columns_ = std::min(columns_, idx(long_ones));
  }
  const std::size_t used = columns_;
  // The columns added here stay empty.
  if (used > kLanes) columns_ = (used + kLanes - 1) / kLanes * kLanes;
  std::vector<std::int32_t> column_of_chain(chains_);
  std::iota(column_of_chain.begin(), column_of_chain.end(), 0);
  if (used < chains_) {
    std::vector<std::int32_t> by_length(chains_);
    std::iota(by_length.begin(), by_length.end(), 0);
    std::ranges::stable_sort(by_length, std::greater<>(),
                             [&](std::int32_t c) { return position[tail[c]]; });
    std::ranges::fill(column_of_chain, -1);
    for (std::size_t i = 0; i < used; ++i)
      column_of_chain[by_length[i]] = static_cast<std::int32_t>(i);
  }
  place_.resize(n);
  for (std::size_t v = 0; v < n; ++v) place_[v] = {column_of_chain[chain[v]], position[v]};
  sum_.assign(n, kNoSum);
  return true;
}

template <typename Cell>
std::size_t Clocks::fill(std::vector<Cell>& cells, const Adjacency& predecessors,
                         std::span<const std::int32_t> order, bool joining, Budget& budget) {
  cells.reserve(order.size() * columns_);
  std::vector<std::int32_t> exact(kBlock * columns_), last(columns_, -1);
  std::size_t used = 0;  // columns in use, when joining
  for (std::size_t first = 0; first < order.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, order.size() - first);
    // A joining that fails early touches no memory for the rest.
    if (const std::size_t end = (first + count) * columns_; cells.size() < end) cells.resize(end);
    std::int32_t* const top = top_.data() + first / kBlock * columns_;
    std::int32_t* const floor = floor_.data() + first / kBlock * columns_;
    std::fill_n(floor, columns_, std::numeric_limits<std::int32_t>::max());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t v = order[first + i];
      std::size_t rows = kPassesOfNode;
      const std::span row(exact.data() + i * columns_, columns_);
      std::ranges::fill(row, -1);
      // The latest predecessor comes first, because it usually covers most of the other
      // predecessors, which then cost one comparison each.
      for (const std::int32_t u : predecessors.of(v)) {
        const Place& from = place_[u];
        // mutant: covered-early
        if (from.column >= 0 && row[from.column] >= from.position) continue;
        ++rows;
        if (idx(from.slot) < first) {
          raise(row, u);
          continue;
        }
        raise_row(row.data(), exact.data() + (idx(from.slot) - first) * columns_, columns_);
      }
      if (joining && place_[v].column >= 0) {
        // A chain continues at any node that its last node reaches.
        std::size_t chain = 0;
        // mutant: chain-of-strangers
        while (chain < used && row[chain] != last[chain]) ++chain;
        if (chain == columns_) return first + i;
        used = std::max(used, chain + 1);
        place_[v].column = static_cast<std::int32_t>(chain);
        place_[v].position = last[chain] + 1;
      }
      // mutant: node-not-counted
      if (const Place& at = place_[v]; at.column >= 0) {
        row[at.column] = at.position;
        last[at.column] = std::max(last[at.column], at.position);
      }
      const std::int32_t sum = sum_and_lower(row.data(), floor, columns_);
      budget.spend(rows * polls_of_row());
      changed_[v] = sum != sum_[v];
      sum_[v] = sum;
    }
    std::ranges::copy(last, top);
    for (std::size_t i = 0; i < count; ++i)
      store_row(exact.data() + i * columns_, top, cells.data() + (first + i) * columns_, columns_);
  }
  return order.size();
}

std::vector<std::int32_t> Clocks::middles() const {
  if (chains_ > columns_ || joined_) return {};
  const std::size_t n = place_.size();
  std::vector<std::size_t> first(
      columns_ + 1, 0);  // per column, its start in an array of all nodes by column and position
  for (const Place& p : place_) ++first[idx(p.column) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  const auto at = [&](const Place& p) { return first[p.column] + idx(p.position); };
  const auto length = [&](std::size_t column) { return first[column + 1] - first[column]; };
  std::vector<std::int32_t> node(n);
  for (std::size_t v = 0; v < n; ++v) node[at(place_[v])] = static_cast<std::int32_t>(v);
  std::vector<std::size_t> sample(columns_);
  std::iota(sample.begin(), sample.end(), std::size_t{0});
  std::ranges::stable_sort(sample, std::greater<>(), length);
  sample.resize(std::min(sample.size(), kSampledChains));
  std::size_t nodes = 0;
  for (const std::size_t c : sample) nodes += length(c);
  // If a node first reaches a chain at some node of that chain, then that node and the rest of the
  // chain follow it.
  std::vector<std::int32_t> followed(n, 0), row(columns_), next(columns_);
  for (const std::size_t c : sample) {
    std::ranges::fill(next, 0);
    for (std::size_t i = first[c]; i < first[c + 1]; ++i) {
      std::ranges::fill(row, -1);
      raise(row, node[i]);
      for (std::size_t a = 0; a < columns_; ++a)
        for (; next[a] <= row[a]; ++next[a])
          followed[first[a] + idx(next[a])] += static_cast<std::int32_t>(first[c + 1] - i);
    }
  }
  const double scale = static_cast<double>(n) / static_cast<double>(nodes);
  std::vector<std::int32_t> middle(n);
  for (std::size_t v = 0; v < n; ++v)
    middle[v] =
        sum_[v] - static_cast<std::int32_t>(scale * static_cast<double>(followed[at(place_[v])]));
  return middle;
}

void Clocks::raise(std::span<std::int32_t> row, std::int32_t v) const {
  const Place& at = place_[v];
  const std::size_t cells = idx(at.slot) * columns_, block = idx(at.slot) / kBlock * columns_;
  const std::int32_t *const top = top_.data() + block, *const floor = floor_.data() + block;
  if (narrow_)
    raise_row(row.data(), bytes_.data() + cells, top, floor, columns_);
  else
    raise_row(row.data(), words_.data() + cells, top, floor, columns_);
  if (at.column >= 0) row[at.column] = std::max(row[at.column], at.position);
}

void Clocks::prefetch_row(std::int32_t v) const {
  const std::size_t first = idx(place_[v].slot) * columns_;
  const char* const row = narrow_ ? reinterpret_cast<const char*>(bytes_.data() + first)
                                  : reinterpret_cast<const char*>(words_.data() + first);
  const std::size_t size = columns_ * (narrow_ ? 1 : 2);
  for (std::size_t i = 0; i < size; i += 64) prefetch(row + i);
}

}  // namespace isolang
