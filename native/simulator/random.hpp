// Random numbers that are the same on every machine, unlike those of the standard distributions,
// and weighted draws in O(1).
#pragma once
#include <cstdint>
#include <vector>

#include "core/index.hpp"

namespace isolang::simulator {

// xoshiro256** of Blackman and Vigna, seeded by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t z = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31);
    }
  }
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9, t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // in [0, 1)
  bool chance(double p) { return unit() < p; }
  // Returns a number in [0, n), for n < 2^32. The multiplication has a bias of at most n / 2^32, which does not matter
  // for a workload.
  std::uint64_t below(std::uint64_t n) { return ((next() >> 32) * n) >> 32; }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

// Draws i with probability weight[i] / sum: Vose's alias method.
class Weighted {
 public:
  explicit Weighted(std::vector<double> weights);
  std::int32_t draw(Random& random) const {
    const auto i = idx(random.below(keep_.size()));
    return random.unit() < keep_[i] ? static_cast<std::int32_t>(i) : other_[i];
  }

 private:
  std::vector<double> keep_;
  std::vector<std::int32_t> other_;
};

}  // namespace isolang::simulator
