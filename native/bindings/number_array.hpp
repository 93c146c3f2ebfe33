// The Python class `NumberArray`: numbers of the native core. It has the buffer protocol, integers as items and `tolist`;
// for anything else it behaves as the numpy array of the same numbers, and only then imports numpy, whose import takes
// longer than a small check.
#pragma once
#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace isolang {

class NumberArray {
 public:
  // The owner keeps the data alive.
  template <typename T>
  NumberArray(const T* data, std::size_t rows, std::size_t width, nanobind::object owner, bool writable)
      : data_(const_cast<T*>(data)), shape_{static_cast<Py_ssize_t>(rows), static_cast<Py_ssize_t>(width)},
        item_size_(sizeof(T)), format_(format_of<T>()), dimensions_(width == 0 ? 1 : 2), writable_(writable),
        owner_(std::move(owner)) {
    set_strides();
  }

  Py_ssize_t size() const { return shape_[0]; }
  Py_ssize_t count() const { return dimensions_ == 1 ? shape_[0] : shape_[0] * shape_[1]; }
  const char* format() const { return format_; }
  bool is_flat() const { return dimensions_ == 1; }
  std::int64_t at(Py_ssize_t i) const;
  NumberArray slice(Py_ssize_t start, Py_ssize_t size) const;
  void fill(Py_buffer& buffer, int flags);

 private:
  template <typename T>
  static constexpr const char* format_of() {
    static_assert(std::is_integral_v<T>);
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? "b" : "B";
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? "i" : "I";
    return std::is_signed_v<T> ? "q" : "Q";
  }
  void set_strides();

  void* data_;
  std::array<Py_ssize_t, 2> shape_;
  std::array<Py_ssize_t, 2> strides_{};
  Py_ssize_t item_size_;
  const char* format_;
  int dimensions_;
  bool writable_;
  nanobind::object owner_;
};

void register_number_array(nanobind::module_& m);

// Returns a read-only view of a column, which keeps its owner alive.
template <typename T>
NumberArray view(const std::vector<T>& column, nanobind::handle owner) {
  return {column.data(), column.size(), 0, nanobind::borrow(owner), false};
}

// Returns numbers that own their memory: rows of `width` numbers each, or single ones if `width` is 0.
template <typename T>
NumberArray owned_numbers(std::vector<T> numbers, std::size_t width = 0) {
  auto held = std::make_unique<std::vector<T>>(std::move(numbers));
  const std::size_t rows = width == 0 ? held->size() : held->size() / width;
  const T* const data = held->data();
  nanobind::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  held.release();
  return {data, rows, width, std::move(owner), true};
}

}  // namespace isolang
