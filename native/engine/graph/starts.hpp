// Tests whether a node reaches one of a few start nodes. The first few queries test each start separately. After that,
// the number of queries justifies a higher cost: for each target, a row of clocks that combines all of its starts is
// computed, and later queries look up this row.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/clocks.hpp"

namespace isolang {

class Starts {
 public:
  explicit Starts(const Clocks& clocks) : clocks_(clocks) {}

  // Begins a new set of starts. Each start belongs to one of several targets. A target represents one kind of query.
  void begin(std::size_t targets) {
    targets_ = targets;
    starts_.clear();
    top_ = -1;
    combined_ = false;
    questions_ = 1 + clocks_.columns() / kColumnsPerQuestion;
  }
  void add(std::size_t target, std::int32_t node) {
    starts_.push_back({target, node});
    top_ = std::max(top_, clocks_.rank(node));
  }
  // Returns the highest rank of the starts. A node of higher rank reaches none of them.
  std::int32_t top() const { return top_; }

  // Returns true if, for some target, the node of `mark_of(target)` reaches a start of that target.
  template <typename MarkOf>
  bool reached(MarkOf mark_of) {
    if (questions_ > 0) {
      --questions_;
      for (const auto& [target, node] : starts_)
        if (clocks_.reaches(mark_of(target), node)) return true;
      return false;
    }
    for (std::size_t t = 0; t < targets_; ++t) {
      const Clocks::Mark mark = mark_of(t);
      // mutant: row-reaches-early
      if (row(t)[mark.column] >= mark.position) return true;
    }
    return false;
  }
  // Returns true if the node with this mark reaches a start of the target.
  bool reached(std::size_t target, Clocks::Mark mark) {
    if (questions_ > 0) {
      --questions_;
      return std::ranges::any_of(starts_, [&](const Start& start) {
        return start.target == target && clocks_.reaches(mark, start.node);
      });
    }
    return row(target)[mark.column] >= mark.position;
  }
  // Returns the row raised by the starts of the target: see Clocks::mark.
  const std::int32_t* row(std::size_t target) {
    if (!std::exchange(combined_, true)) combine();
    return rows_.data() + target * clocks_.columns();
  }

 private:
  // Raising a row of this many columns takes as long as reading one cell.
  static constexpr std::size_t kColumnsPerQuestion = 8;

  struct Start {
    std::size_t target;
    std::int32_t node;
  };

  // A start that reaches another start adds nothing to the row.
  void combine() {
    const std::size_t columns = clocks_.columns();
    rows_.assign(targets_ * columns, -1);
    for (const auto& [target, node] : starts_) {
      const auto row = std::span(rows_).subspan(target * columns, columns);
      const Clocks::Mark mark = clocks_.mark(node);
      if (row[mark.column] < mark.position) clocks_.raise(row, node);
    }
  }

  const Clocks& clocks_;
  std::size_t targets_ = 0, questions_ = 0;
  std::int32_t top_ = -1;
  bool combined_ = false;
  std::vector<Start> starts_;
  std::vector<std::int32_t> rows_;
};

}  // namespace isolang
