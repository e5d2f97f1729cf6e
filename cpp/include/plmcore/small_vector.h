// A vector whose first N elements live inside the object. Ops have few inputs and outputs; their lists should
// not touch the heap.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

namespace plmcore {

template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  explicit SmallVector(size_t n) { resize(n); }
  SmallVector(std::initializer_list<T> items) {
    for (const T& t : items) push_back(t);
  }
  SmallVector(const SmallVector& o) {
    for (const T& t : o) push_back(t);
  }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  ~SmallVector() {
    clear();
    release();
  }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) {
      clear();
      for (const T& t : o) push_back(t);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      clear();
      release();
      take(o);
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  template <class... A>
  T& emplace_back(A&&... a) {
    if (size_ == capacity_) grow();
    T* p = new (static_cast<void*>(data_ + size_)) T(std::forward<A>(a)...);
    ++size_;
    return *p;
  }
  void push_back(const T& t) { emplace_back(t); }
  void push_back(T&& t) { emplace_back(std::move(t)); }
  void resize(size_t n) {
    while (size_ > n) data_[--size_].~T();
    while (size_ < n) emplace_back();
  }
  void clear() { resize(0); }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void release() {
    if (data_ != inline_data()) ::operator delete(static_cast<void*>(data_), std::align_val_t(alignof(T)));
    data_ = inline_data();
    capacity_ = N;
  }
  void take(SmallVector& o) {
    if (o.data_ != o.inline_data()) {
      data_ = std::exchange(o.data_, o.inline_data());
      capacity_ = std::exchange(o.capacity_, N);
      size_ = std::exchange(o.size_, 0);
    } else {
      for (T& t : o) emplace_back(std::move(t));
      o.clear();
    }
  }
  void grow() {
    const size_t n = capacity_ * 2;
    T* p = static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
    for (size_t i = 0; i < size_; ++i) {
      new (static_cast<void*>(p + i)) T(std::move(data_[i]));
      data_[i].~T();
    }
    release();
    data_ = p;
    capacity_ = n;
  }

  alignas(T) std::byte inline_[N * sizeof(T)];
  T* data_ = inline_data();
  size_t size_ = 0, capacity_ = N;
};

}  // namespace plmcore
