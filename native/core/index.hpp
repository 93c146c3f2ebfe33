// `idx` is the only integer cast of this code. Numbers of transactions, operations, keys and nodes are signed, but
// sizes of containers are unsigned.
//
// A signed number indexes a container without a cast, because the conversion is implicit. Where a
// number and a size meet in a comparison or a sum, `idx` makes the conversion visible.
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
