// `required` takes the value of an optional in code that no test shows to be reached only with a value. An empty
// optional is then an internal error, which is told of one history, and not undefined behaviour, which ends the process.
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
