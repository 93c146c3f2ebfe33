// The pairs of writers of a key with few writers are stored as rows of bits. For any other key, a
// single bit is stored. `note` adds what a pass has decided about one writer.
#include "engine/prune/writer_pairs.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "core/bits.hpp"
#include "core/index.hpp"

namespace isolang {
namespace {
constexpr std::size_t kMaxWords = std::size_t{1} << 24;  // 128 MiB
constexpr std::int32_t kUncounted = std::numeric_limits<std::int32_t>::max();

}  // namespace

WriterPairs::WriterPairs(const Problem& p) : problem_(p) {
  latest_.resize(p.writer_txn.size());
  std::iota(latest_.begin(), latest_.end(), 0);
  place_.resize(p.writer_txn.size());
  open_.assign(p.writer_txn.size(), kUncounted);
  unsettled_.resize(idx(p.keys));
  precede_.resize(idx(p.keys));
  decided_.assign(idx(p.keys), 0);
  settled_.assign(idx(p.keys), 0);
  for (std::int32_t key = 0; key < p.keys; ++key) number(key);
}

void WriterPairs::allocate_rows(std::span<const std::int32_t> keys) {
  std::size_t total = 0;
  for (const std::int32_t key : keys) {
    const std::size_t need = (count(key) + 1) * words(key);
    if (total + need > kMaxWords) continue;
    total += need;
    std::fill_n(open_.begin() + problem_.key_start[key], count(key),
                static_cast<std::int32_t>(count(key)) - 1);
  }
  bits_.assign(total, 0);
  auto bits = std::span(bits_);
  const auto take = [&](std::size_t size) {
    const auto taken = bits.first(size);
    bits = bits.subspan(size);
    return taken;
  };
  for (const std::int32_t key : keys) {
    if (count(key) == 0 || open_[first(key)] == kUncounted) continue;
    precede_[key] = take(count(key) * words(key));
    unsettled_[key] = take(words(key));
  }
}

void WriterPairs::number(std::int32_t key) {
  const auto list = writers(key);
  for (std::size_t i = 0; i < list.size(); ++i) place_[list[i]] = static_cast<std::int32_t>(i);
}

void WriterPairs::note(std::int32_t key, std::int32_t after, std::span<const std::uint64_t> row) {
  std::uint64_t* const rows = precede_[key].data();
  const std::int32_t* const writers = latest_.data() + first(key);
  const std::size_t width = row.size(), self = place(after);
  for (std::size_t word = 0; word < width; ++word) {
    std::uint64_t& known = rows[self * width + word];
    for (std::uint64_t fresh = row[word] & ~known; fresh != 0; fresh &= fresh - 1) {
      const std::size_t other = word * kWordBits + idx(std::countr_zero(fresh));
      if (has_bit(rows + other * width, self)) continue;
      --open_[after];
      --open_[writers[other]];
    }
    known |= row[word];
  }
}

void WriterPairs::unsettle(std::int32_t key, std::int32_t writer) {
  // mutant: pair-stays-settled
  settled_[key] = 0;
  if (const auto row = unsettled_[key]; !row.empty()) set_bit(row, place(writer));
}

bool WriterPairs::decided(std::int32_t key) const {
  if (!has_rows(key)) return decided_[key] != 0;
  const auto of_key = std::span(open_).subspan(first(key), count(key));
  return !of_key.empty() && std::ranges::all_of(of_key.subspan(1), [](std::int32_t open) {
    return open == 0;
  });  // the first writer is T0
}

bool WriterPairs::is_settled(std::int32_t key, std::int32_t writer) const {
  const std::span<const std::uint64_t> unsettled = unsettled_[key];
  const auto row = precede(key).subspan(place(writer) * words(key), words(key));
  for (std::size_t word = 0; word < row.size(); ++word)
    if ((row[word] & unsettled[word]) != 0) return false;
  return true;
}

bool WriterPairs::is_settled(std::int32_t key) const {
  if (!has_rows(key)) return settled_[key] != 0;
  return std::ranges::all_of(writers(key), [&](std::int32_t w) { return is_settled(key, w); });
}

}  // namespace isolang
