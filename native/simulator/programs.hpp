// Generates the programs of transactions: the kinds and keys of their operations, and the values that they write.
#pragma once
#include <cstdint>
#include <vector>

#include "simulator/random.hpp"
#include "simulator/workload.hpp"

namespace isolang::simulator {

struct Intent {
  bool write;
  std::int32_t key;    // number of the key in the history
  std::int32_t value;  // number of the written value, from 1
};

class Programs {
 public:
  Programs(const Options& options, Random& random);
  const std::vector<Intent>& next();  // valid until the next call
  // Returns how many keys have been used so far. The number grows if lists are used, because list keys are replaced.
  std::int32_t keys() const { return keys_; }
  std::int32_t fresh_key() { return keys_++; }

 private:
  void ordinary();
  void mini();
  void add(bool write, std::int32_t slot);
  bool touched(std::int32_t slot) const;
  std::int32_t draw_slot();
  std::int32_t written_value(std::int32_t slot);

  const Options& options_;
  Random& random_;
  std::int32_t keys_;
  std::vector<std::int32_t> key_of_slot_, writes_of_slot_;
  std::vector<Weighted> slots_, values_;  // empty if the distribution is uniform
  double draw_write_;
  std::vector<Intent> program_;
  std::vector<std::int32_t> slot_of_;  // the slot of each operation of the program
};

}  // namespace isolang::simulator
