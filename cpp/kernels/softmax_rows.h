// Rows of softmax and log_softmax: the largest element and the sum of e^(x - max).
#pragma once

#include "kernels/math.h"
#include "kernels/norm.h"

namespace plmcore::PLM_ISA {

// The largest element; a NaN may get lost here, e^(NaN - max) brings it back.
template <class T>
PLM_INLINE typename Lane<T>::Scalar row_max(const T* x, int64_t n) {
  using V = typename Lane<T>::Vec;
  using A = typename Lane<T>::Scalar;
  constexpr int W = Lane<T>::n;
  constexpr A low = -__builtin_inff();
  V m0 = splat(low), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    m0 = max(m0, load(x + i));
    m1 = max(m1, load(x + i + W));
    m2 = max(m2, load(x + i + 2 * W));
    m3 = max(m3, load(x + i + 3 * W));
  }
  for (; i + W <= n; i += W) m0 = max(m0, load(x + i));
  if (i < n) m1 = max(m1, load_part(x + i, static_cast<int>(n - i), low));
  return reduce_max(max(max(m0, m1), max(m2, m3)));
}

// The sum of e^(x - m); f(i, part, v) also gets every vector of the terms. Two chains of sums, in a fixed
// order.
template <class T, class A, class F>
PLM_INLINE A row_exp_sum(const T* x, int64_t n, A m, F f) {
  using V = typename Lane<T>::Vec;
  constexpr int W = Lane<T>::n;
  V s0{}, s1{};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    const V a = exp_nonpositive(load(x + i) - m), b = exp_nonpositive(load(x + i + W) - m);
    f(i, -1, a);
    f(i + W, -1, b);
    s0 += a;
    s1 += b;
  }
  for (; i < n; i += W) {
    const int part = n - i < W ? static_cast<int>(n - i) : -1;
    const V a = exp_nonpositive(load_at(x, i, part, -__builtin_inff()) - m);
    f(i, part, a);
    s0 += a;
  }
  return reduce_add(s0 + s1);
}

}  // namespace plmcore::PLM_ISA
