// Sums over a tensor in pieces whose bounds depend on its size alone, added in order: the same bits for any
// number of threads.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

constexpr int64_t kPieces = 64;  // as many as row_chunks has at most

struct Sums {
  double a = 0, b = 0;
};

// The first k of a vector; the other lanes are 0.
template <class T>
PLM_INLINE auto load_first(const T* p, int k) {
  return k == Lane<T>::n ? load(p) : load_part(p, k);
}
template <class T, class V>
PLM_INLINE void store_first(T* p, V v, int k) {
  if (k == Lane<T>::n) store(p, v);
  else store_part(p, v, k);
}

// The squares of vectors of elements of T: in the vector's own type for 16 of them, then in double.
template <class T>
struct Squares {
  typename Lane<T>::Vec part{};
  double total = 0;
  int count = 0;

  template <class V>
  PLM_INLINE void add(V x, int k) {
    if (k < Lane<T>::n) {
      typename Lane<T>::Scalar lanes[Lane<T>::n] = {};
      store_part(lanes, x, k);
      x = load(lanes);
    }
    part = part + x * x;
    if (++count % 16 == 0) flush();
  }
  PLM_INLINE void flush() {
    total += static_cast<double>(reduce_add(part));
    part = typename Lane<T>::Vec{};
  }
  PLM_INLINE double sum() {
    flush();
    return total;
  }
};

// The sums of f(begin, end) over [0, n) in at most kPieces pieces of at least kGrain.
template <class F>
PLM_INLINE Sums sum_pieces(int64_t n, F f) {
  int64_t pieces = n < 2 * kGrain ? 1 : n / kGrain;
  if (pieces > kPieces) pieces = kPieces;
  Sums parts[kPieces], total;
  parallel_for(pieces, [&](int64_t i, int) {
    parts[i] = f(chunk_begin(n, pieces, i), chunk_begin(n, pieces, i + 1));
  });
  for (int64_t i = 0; i < pieces; ++i) {
    total.a += parts[i].a;
    total.b += parts[i].b;
  }
  return total;
}

}  // namespace plmcore::PLM_ISA
