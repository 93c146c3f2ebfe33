// Columns that take less memory than a number for each entry, because in nearly every history their entries follow a
// simple rule. Reading an entry looks like reading one of a vector; `set` changes one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/index.hpp"

namespace isolang {

// All entries of a compact column as numbers in a row, for Python. They are made when they are first asked for, and are
// not copied with the column.
template <typename T>
class Expanded {
 public:
  Expanded() = default;
  Expanded(const Expanded&) {}
  Expanded& operator=(const Expanded&) {
    numbers.clear();
    return *this;
  }
  std::vector<T> numbers;
};

// Stores nothing as long as all entries are equal to the default.
template <typename T, T kDefault>
class Mostly {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool all_default() const { return entries_.empty(); }
  T operator[](std::size_t i) const { return entries_.empty() ? kDefault : entries_[i]; }
  T back() const { return (*this)[size_ - 1]; }

  // Makes room for entries of which some differ from the default.
  void reserve(std::size_t size) { entries_.reserve(size); }
  void push_back(T entry) {
    if (entry != kDefault && entries_.empty()) entries_.assign(size_, kDefault);
    if (entry != kDefault || !entries_.empty()) entries_.push_back(entry);
    ++size_;
  }
  void set(std::size_t i, T entry) {
    if (entry == (*this)[i]) return;
    if (entries_.empty()) entries_.assign(size_, kDefault);
    entries_[i] = entry;
    if (i < expanded_.numbers.size()) expanded_.numbers[i] = entry;
  }
  // Shortens the column, or adds entries that are equal to the default.
  void resize(std::size_t size) {
    if (!entries_.empty()) entries_.resize(size, kDefault);
    size_ = size;
  }
  void assign(std::vector<T> entries) {
    size_ = entries.size();
    if (std::ranges::all_of(entries, [](T entry) { return entry == kDefault; })) entries.clear();
    entries_ = std::move(entries);
    expanded_ = {};
  }

  // Returns all entries. Call this only while holding the GIL.
  const std::vector<T>& expanded() const {
    if (!entries_.empty()) return entries_;
    expanded_.numbers.resize(size_, kDefault);
    return expanded_.numbers;
  }

 private:
  std::vector<T> entries_;  // empty if all of them are equal to the default
  std::size_t size_ = 0;
  mutable Expanded<T> expanded_;
};

// Stores numbers that fit 32 bits, and is read as a column of larger ones.
class Narrow {
 public:
  Narrow() = default;
  explicit Narrow(std::vector<std::int32_t> entries) : entries_(std::move(entries)) {}
  std::size_t size() const { return entries_.size(); }
  std::int64_t operator[](std::size_t i) const { return entries_[i]; }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  // Returns all entries. Call this only while holding the GIL.
  const std::vector<std::int64_t>& expanded() const {
    auto& numbers = expanded_.numbers;
    if (numbers.size() != entries_.size()) numbers.assign(entries_.begin(), entries_.end());
    return numbers;
  }

 private:
  std::vector<std::int32_t> entries_;
  mutable Expanded<std::int64_t> expanded_;
};

// Stores nothing as long as each entry is its own number.
class Ordinals {
 public:
  std::size_t size() const { return size_; }
  bool all_ordinal() const { return entries_.empty(); }
  std::int64_t operator[](std::size_t i) const {
    return entries_.empty() ? static_cast<std::int64_t>(i) : entries_[i];
  }
  const std::int64_t* data() const { return entries_.data(); }  // null if all entries are their numbers
  void push_back(std::int64_t entry) {
    if (entries_.empty() && entry != static_cast<std::int64_t>(size_)) entries_ = expanded_of(size_);
    if (!entries_.empty() || entry != static_cast<std::int64_t>(size_)) entries_.push_back(entry);
    ++size_;
  }

  // Returns all entries. Call this only while holding the GIL.
  const std::vector<std::int64_t>& expanded() const {
    if (!entries_.empty()) return entries_;
    if (expanded_.numbers.size() != size_) expanded_.numbers = expanded_of(size_);
    return expanded_.numbers;
  }

 private:
  static std::vector<std::int64_t> expanded_of(std::size_t size) {
    std::vector<std::int64_t> entries(size);
    std::iota(entries.begin(), entries.end(), 0);
    return entries;
  }
  std::vector<std::int64_t> entries_;
  std::size_t size_ = 0;
  mutable Expanded<std::int64_t> expanded_;
};

// Stores runs of entries whose neighbours differ by the same step, such as the lines of operations: each is on the next
// line, or all operations of a transaction are on one line.
class Positions {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t operator[](std::size_t i) const {
    const auto after = std::ranges::upper_bound(runs_, i, {}, &Run::first);
    const Run& run = *(after - 1);
    return static_cast<std::int64_t>(run.start + (i - run.first) * run.step);
  }

  void push_back(std::int64_t position) {
    const auto at = static_cast<std::uint64_t>(position);
    const std::size_t length = runs_.empty() ? 0 : size_ - runs_.back().first;
    if (length == 1) {
      runs_.back().step = at - runs_.back().start;
    } else if (length == 0 || at != next_) {
      runs_.push_back({size_, at, 0});
    }
    next_ = at + runs_.back().step;
    ++size_;
  }
  void assign(const std::vector<std::int64_t>& positions) {
    *this = {};
    for (const std::int64_t position : positions) push_back(position);
  }

  // Returns all entries. Call this only while holding the GIL.
  const std::vector<std::int64_t>& expanded() const {
    auto& numbers = expanded_.numbers;
    if (numbers.size() == size_) return numbers;
    numbers.clear();
    numbers.reserve(size_);
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      std::uint64_t at = runs_[r].start;
      for (const std::size_t end = r + 1 < runs_.size() ? runs_[r + 1].first : size_; numbers.size() < end;
           at += runs_[r].step)
        numbers.push_back(static_cast<std::int64_t>(at));
    }
    return numbers;
  }

 private:
  struct Run {
    std::size_t first;          // the number of its first entry
    std::uint64_t start, step;  // modulo 2^64, as a difference of two positions may be too large for a signed number
  };
  std::vector<Run> runs_;
  std::size_t size_ = 0;
  std::uint64_t next_ = 0;  // the entry that would prolong the last run
  mutable Expanded<std::int64_t> expanded_;
};

}  // namespace isolang
