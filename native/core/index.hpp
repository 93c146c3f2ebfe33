// The one cast of this code: numbers of transactions, operations, keys and nodes are signed, sizes
// of containers are not.
//
// Containers are indexed by the signed numbers as they are, for the conversion is implicit; where a
// number meets a size in a comparison or a sum, `idx` says so.
#pragma once
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace isolang {

template <typename T>
  requires std::integral<T> || std::is_enum_v<T>
constexpr std::size_t idx(T number) {
  return static_cast<std::size_t>(number);
}

}  // namespace isolang
