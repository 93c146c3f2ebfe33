// Builds the table of the alias method (Walker 1977): each column has a probability and one alternative, so a draw
// takes constant time.
#include "simulator/random.hpp"

#include <numeric>

#include "core/index.hpp"

namespace isolang::simulator {

Weighted::Weighted(std::vector<double> weights) : keep_(std::move(weights)), other_(keep_.size()) {
  const double mean =
      std::accumulate(keep_.begin(), keep_.end(), 0.0) / static_cast<double>(keep_.size());
  std::vector<std::int32_t> poor, rich;
  for (std::size_t i = 0; i < keep_.size(); ++i) {
    keep_[i] /= mean;
    other_[i] = static_cast<std::int32_t>(i);
    (keep_[i] < 1 ? poor : rich).push_back(static_cast<std::int32_t>(i));
  }
  while (!poor.empty() && !rich.empty()) {  // a rich column fills the poor one up to 1
    const auto p = idx(poor.back()), r = idx(rich.back());
    poor.pop_back();
    other_[p] = static_cast<std::int32_t>(r);
    keep_[r] -= 1 - keep_[p];
    if (keep_[r] < 1) {
      poor.push_back(static_cast<std::int32_t>(r));
      rich.pop_back();
    }
  }
  for (const auto* rest : {&poor, &rich})  // 1, up to rounding errors
    for (const std::int32_t i : *rest) keep_[i] = 1;
}

}  // namespace isolang::simulator
