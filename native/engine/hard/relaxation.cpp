// Describes the chains of steps. The runs are templates or inline functions in the header.
#include "engine/hard/relaxation.hpp"

namespace isolang {

void Relaxation::want(std::span<const std::int32_t> some) {
  const auto first = static_cast<std::int32_t>(some_.size());
  if (some.size() == 1) {
    wants_.push_back({some[0], first, first});
    return;
  }
  some_.insert(some_.end(), some.begin(), some.end());
  wants_.push_back({-1, first, static_cast<std::int32_t>(some_.size())});
}

void Relaxation::end_step() {
  Step s{};
  if (!steps_.empty()) {
    s.want = steps_.back().wants_end;
    s.give = steps_.back().gives_end;
    s.need = steps_.back().needs_end;
    s.floor = steps_.back().floors_end;
    s.count = steps_.back().counts_end;
  }
  s.wants_end = static_cast<std::int32_t>(wants_.size());
  s.gives_end = static_cast<std::int32_t>(gives_.size());
  s.needs_end = static_cast<std::int32_t>(needs_.size());
  s.floors_end = static_cast<std::int32_t>(floors_.size());
  s.counts_end = static_cast<std::int32_t>(counts_.size());
  steps_.push_back(s);
}

}  // namespace isolang
