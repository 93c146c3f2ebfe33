// `Programs::next` returns the operations of the next transaction. Keys are drawn by weights, and every write gets a
// value allowed by the options.
#include "simulator/programs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/index.hpp"

namespace isolang::simulator {
namespace {

std::vector<double> zipfian(std::int64_t n, double theta) {
  std::vector<double> weights(idx(n));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::pow(static_cast<double>(i + 1), -theta);
  return weights;
}

std::vector<double> key_weights(const Options& o) {
  const auto n = idx(o.keys);
  if (o.key_distribution == KeyDistribution::zipfian) return zipfian(o.keys, o.theta);
  std::vector<double> weights(n, 1.0);
  if (o.key_distribution == KeyDistribution::hotspot) {
    const auto hot = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::lround(o.hot_keys * static_cast<double>(n))), 1, n);
    const double cold_share = hot < n ? (1 - o.hot_share) / static_cast<double>(n - hot) : 0;
    for (std::size_t i = 0; i < n; ++i)
      weights[i] = i < hot ? o.hot_share / static_cast<double>(hot) : cold_share;
  } else {  // exponential as in YCSB: 95 % of the operations are on the first 6/7 of the keys
    const double gamma = -std::log(0.05) / (static_cast<double>(n) * 6 / 7);
    for (std::size_t i = 0; i < n; ++i) weights[i] = std::exp(-gamma * static_cast<double>(i));
  }
  return weights;
}

}  // namespace

Programs::Programs(const Options& options, Random& random)
    : options_(options),
      random_(random),
      keys_(static_cast<std::int32_t>(options.keys)),
      key_of_slot_(idx(options.keys)),
      writes_of_slot_(idx(options.keys), 0) {
  std::iota(key_of_slot_.begin(), key_of_slot_.end(), 0);
  if (options.key_distribution != KeyDistribution::uniform)
    slots_.emplace_back(key_weights(options));
  if (options.values > 0 && options.value_theta > 0)
    values_.emplace_back(zipfian(options.values, options.value_theta));
  // If w of the draws are writes and a share m of these adds a read, then reads are a share of (1 - w + w m) / (1 + w
  // m) of all operations.
  const double writes = 1 - options.read_share;
  draw_write_ = options.mini ? writes / options.read_share
                             : writes / (1 - options.read_modify_write * writes);
}

const std::vector<Intent>& Programs::next() {
  program_.clear();
  slot_of_.clear();
  options_.mini ? mini() : ordinary();
  return program_;
}

void Programs::ordinary() {
  const auto size = idx(options_.operations);
  // Own appends are at the end of the final list. A store that lets others append meanwhile cannot know that list yet,
  // so it must not read after an append.
  const bool no_read_after_append =
      options_.lists && !options_.mechanism.exclusive && options_.mechanism.reads != Reads::instant;
  while (program_.size() < size) {
    const std::int32_t slot = draw_slot();
    bool write = random_.chance(draw_write_);
    if (write && random_.chance(options_.read_modify_write) && !touched(slot)) {
      add(false, slot);
      if (program_.size() == size) break;
    } else if (!write && no_read_after_append) {
      for (std::size_t i = 0; i < program_.size(); ++i)
        write |= slot_of_[i] == slot && program_[i].write;
    }
    add(write, slot);
  }
}

void Programs::mini() {
  const std::int32_t drawn[] = {draw_slot(), draw_slot()};
  const int different = drawn[0] != drawn[1] && random_.chance(0.5) ? 2 : 1;
  for (int i = 0; i < different; ++i) {
    add(false, drawn[i]);
    if (random_.chance(draw_write_)) add(true, drawn[i]);
  }
}

void Programs::add(bool write, std::int32_t slot) {
  const auto at = idx(slot);
  program_.push_back({write, key_of_slot_[at], write ? written_value(slot) : 0});
  slot_of_.push_back(slot);
  if (write && options_.lists && writes_of_slot_[at] >= options_.appends) {
    key_of_slot_[at] = fresh_key();
    writes_of_slot_[at] = 0;
  }
}

bool Programs::touched(std::int32_t slot) const {
  return std::ranges::find(slot_of_, slot) != slot_of_.end();
}

std::int32_t Programs::draw_slot() {
  if (!slots_.empty()) return slots_.front().draw(random_);
  return static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(options_.keys)));
}

std::int32_t Programs::written_value(std::int32_t slot) {
  const std::int32_t count = ++writes_of_slot_[slot];
  if (options_.values == 0 || options_.lists) return count;
  if (!values_.empty()) return values_.front().draw(random_) + 1;
  return static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(options_.values))) + 1;
}

}  // namespace isolang::simulator
