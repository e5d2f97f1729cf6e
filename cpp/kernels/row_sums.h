// Sums over a row of logits in one pass: blocks of it stay in the first cache between their maximum and their
// sum of exponentials, which is rescaled when a later block has a larger maximum.
#pragma once

#include "kernels/math.h"
#include "kernels/row.h"

namespace plmcore::PLM_ISA {

// The two parts of log sum exp(x): added, a large maximum would swallow the logarithm.
template <class A>
struct RowSums {
  A top, log_sum;  // max(x), log sum exp(x - top)
  double x, t, tx;  // sum(x), sum(t), sum(t x)
};

// kSum: also sum(x). t: soft targets or null.
template <bool kSum, class T, class A = typename Lane<T>::Scalar>
PLM_INLINE RowSums<A> row_sums(const T* x, const T* t, int64_t V) {
  using Vec = typename Lane<T>::Vec;
  constexpr int W = Lane<T>::n;
  constexpr int64_t kBlock = 2048;
  const A inf = static_cast<A>(__builtin_inf());
  A top = -inf, sum = 0;
  double sum_x = 0, sum_t = 0, sum_tx = 0;
  for (int64_t b = 0; b < V; b += kBlock) {
    const int64_t n = b + kBlock < V ? kBlock : V - b, full = n / W * W;
    const int rest = static_cast<int>(n - full);
    const T* p = x + b;
    Vec m0 = Vec{} - inf, m1 = m0, s0{}, s1{};
    int64_t i = 0;
    for (; i + 2 * W <= full; i += 2 * W) {
      const Vec u = load(p + i), v = load(p + i + W);
      m0 = max(u, m0);
      m1 = max(v, m1);
      if constexpr (kSum) s0 += u, s1 += v;
    }
    if (i < full) {
      const Vec u = load(p + i);
      m0 = max(u, m0);
      if constexpr (kSum) s0 += u;
    }
    if (rest) {
      m1 = max(load_part(p + full, rest, -__builtin_inff()), m1);
      if constexpr (kSum) s1 += load_part(p + full, rest);
    }
    if constexpr (kSum) sum_x += reduce_add(s0 + s1);
    if (t) {
      Vec st{}, stx{};
      over_row<T>(n, [&](int64_t k, int part) __attribute__((always_inline)) {
        const Vec w = load_at(t + b, k, part);
        st += w;
        stx += w * load_at(p, k, part);
      });
      sum_t += reduce_add(st);
      sum_tx += reduce_add(stx);
    }
    A higher = top;
    const Vec m = max(m0, m1);
    for (int k = 0; k < W; ++k) higher = m[k] > higher ? m[k] : higher;
    const A shift = higher == -inf ? A(0) : higher;  // nothing but -inf and NaN so far
    Vec e0{}, e1{};
    for (i = 0; i + 2 * W <= full; i += 2 * W) {
      prefetch_at(p + n, i);  // the next block comes while this one is summed
      e0 += exp_nonpositive(load(p + i) - shift);
      e1 += exp_nonpositive(load(p + i + W) - shift);
    }
    if (i < full) e0 += exp_nonpositive(load(p + i) - shift);
    if (rest) e1 += exp_nonpositive(load_part(p + full, rest, -__builtin_inff()) - shift);
    sum = (sum != 0 ? sum * std::exp(top - shift) : sum) + reduce_add(e0 + e1);
    top = higher;
  }
  return {top == -inf ? A(0) : top, std::log(sum), sum_x, sum_t, sum_tx};
}

}  // namespace plmcore::PLM_ISA
