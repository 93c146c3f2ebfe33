// `required` returns the value of an optional where no test in the same function shows that there is one. If it is empty,
// the check of one history ends with an internal error. Undefined behaviour could end the process instead.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace isolang {

template <typename Optional>
constexpr decltype(auto) required(Optional&& optional, const char* name) {
  if (!optional.has_value()) throw std::logic_error(std::string(name) + ": no value");
  return *std::forward<Optional>(optional);
}

}  // namespace isolang
