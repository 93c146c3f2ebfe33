// An array of plain records that are all zero at first. Pages in which nothing is ever written take no memory: in a large
// history, few reads and writers have what such an array is about.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#include "core/faults.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace isolang {

template <typename T>
class Zeros {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Zeros() = default;
  explicit Zeros(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (faults::fails_allocation()) throw std::bad_alloc();
    void* const data = allocate(size * sizeof(T));
    if (data == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(data);
  }
  Zeros(const Zeros&) = delete;
  Zeros(Zeros&& other) noexcept { swap(other); }
  Zeros& operator=(Zeros other) noexcept {
    swap(other);
    return *this;
  }
  ~Zeros() {
    if (data_ != nullptr) release(data_, size_ * sizeof(T));
  }

  std::size_t size() const { return size_; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  void swap(Zeros& other) noexcept { std::swap(data_, other.data_), std::swap(size_, other.size_); }
#ifdef __linux__
  // Not from the heap: its pages may have been used before, and would have to be cleared.
  static constexpr std::size_t kMapped = std::size_t{1} << 17;
  static void* allocate(std::size_t bytes) {
    if (bytes < kMapped) return std::calloc(bytes, 1);
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }
  static void release(T* data, std::size_t bytes) {
    if (bytes < kMapped)
      std::free(data);
    else
      munmap(data, bytes);
  }
#else
  static void* allocate(std::size_t bytes) { return std::calloc(bytes, 1); }
  static void release(T* data, std::size_t) { std::free(data); }
#endif

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace isolang
