// A sequence of plain records that can grow in place. A full vector moves to new memory, whose
// pages the system has to clear. This class lets the allocator remap a large block instead.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "core/faults.hpp"
#include "core/large_pages.hpp"

namespace isolang {

template <typename T>
class Growing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Growing() = default;
  Growing(const Growing&) = delete;
  Growing(Growing&& other) noexcept { swap(other); }
  Growing& operator=(Growing other) noexcept {
    swap(other);
    return *this;
  }
  ~Growing() { std::free(data_); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& operator[](std::size_t i) { return data_[i]; }
  operator std::span<const T>() const { return {data_, size_}; }

  void push_back(const T& item) {
    if (size_ == room_) grow(T(item));
    else data_[size_++] = item;
  }
  void append(std::span<const T> items) {
    reserve(size_ + items.size());
    for (const T& item : items) data_[size_++] = item;
  }
  // Forgets all items but the first ones.
  void shrink(std::size_t size) { size_ = size; }
  void reserve(std::size_t room) {
    if (room > room_) move_to(room);
  }

 private:
  void swap(Growing& other) noexcept {
    std::swap(data_, other.data_), std::swap(size_, other.size_), std::swap(room_, other.room_);
  }
  [[gnu::noinline]] void grow(T item) {
    move_to(room_ < 16 ? 32 : 2 * room_);
    data_[size_++] = item;
  }
  void move_to(std::size_t room) {
    if (faults::fails_allocation()) throw std::bad_alloc();
    void* const moved = std::realloc(static_cast<void*>(data_), room * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    room_ = room;
    if (room * sizeof(T) >= kLargeBlock) advise_large_pages(moved, room * sizeof(T));
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace isolang
