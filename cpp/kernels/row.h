// Loops over a row in vectors.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

// f(i, part) over a row in vectors; part < width of a vector for the tail, -1 for full vectors.
template <class T, class F>
PLM_INLINE void over_row(int64_t C, F f) {
  constexpr int W = Lane<T>::n;
  int64_t i = 0;
  for (; i + W <= C; i += W) f(i, -1);
  if (i < C) f(i, static_cast<int>(C - i));
}
template <class T>
PLM_INLINE auto load_at(const T* p, int64_t i, int part, float fill = 0) {
  return part < 0 ? load(p + i) : load_part(p + i, part, fill);
}
template <class T, class V>
PLM_INLINE void store_at(T* p, int64_t i, int part, V v) {
  if (part < 0) store(p + i, v);
  else store_part(p + i, v, part);
}

// Asks for the cache line of p[i], once per line: called for every vector of a row, it brings the row at p
// while the present one is worked on.
template <class T>
PLM_INLINE void prefetch_at(const T* p, int64_t i) {
  constexpr int64_t kLine = 64 / sizeof(T);
  if (i % kLine == 0) __builtin_prefetch(p + i);
}

}  // namespace plmcore::PLM_ISA
