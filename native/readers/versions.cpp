// `nil_for_unwritten_zeros` replaces 0 by nil in reads of keys to which no transaction wrote 0.
#include "readers/versions.hpp"

namespace isolang {

void nil_for_unwritten_zeros(Reading& reading) {
  History& h = reading.history;
  std::int64_t found = 0;
  if (const std::int32_t zero = h.values.find_integer(0); zero >= 0) {
    const auto write = static_cast<std::uint8_t>(OpKind::write);
    std::vector<char> written(static_cast<std::size_t>(h.n_keys()), 0);
    for (std::size_t i = 0; i < h.op_kind.size(); ++i)
      if (h.op_kind[i] == write && h.op_value[i] == zero) written[static_cast<std::size_t>(h.op_key[i])] = 1;
    for (std::size_t i = 0; i < h.op_kind.size(); ++i) {
      if (h.op_kind[i] == write || h.op_value[i] != zero || written[static_cast<std::size_t>(h.op_key[i])]) continue;
      h.op_value[i] = kNil;
      ++found;
    }
  }
  reading.remarks.emplace_back("zero_reads", found);
}

}  // namespace isolang
