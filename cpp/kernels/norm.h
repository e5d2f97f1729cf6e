// Rows of layer_norm, shared by layer_norm and residual_layer_norm.
#pragma once

#include "kernels/column_sums.h"
#include "kernels/row.h"

namespace plmcore::PLM_ISA {

template <class A>
struct RowStats {
  A mean, rstd;
};

// Mean, then the mean square of the differences: two passes, no cancellation.
template <class T, class A = typename Lane<T>::Scalar>
PLM_INLINE RowStats<A> row_stats(const T* x, int64_t C, A eps) {
  constexpr int W = Lane<T>::n;
  using V = typename Lane<T>::Vec;
  V s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 4 * W <= C; i += 4 * W) {
    s0 += load(x + i);
    s1 += load(x + i + W);
    s2 += load(x + i + 2 * W);
    s3 += load(x + i + 3 * W);
  }
  for (; i + W <= C; i += W) s0 += load(x + i);
  if (i < C) s1 += load_part(x + i, static_cast<int>(C - i));
  const A mean = reduce_add((s0 + s1) + (s2 + s3)) / static_cast<A>(C);
  s0 = s1 = s2 = s3 = V{};
  for (i = 0; i + 4 * W <= C; i += 4 * W) {
    const V a = load(x + i) - mean, b = load(x + i + W) - mean, c = load(x + i + 2 * W) - mean,
            d = load(x + i + 3 * W) - mean;
    s0 += a * a;
    s1 += b * b;
    s2 += c * c;
    s3 += d * d;
  }
  for (; i + W <= C; i += W) {
    const V a = load(x + i) - mean;
    s0 += a * a;
  }
  if (i < C) {
    const V a = load_part(x + i, static_cast<int>(C - i), static_cast<float>(mean)) - mean;
    for (int k = 0; k < C - i; ++k) s1[k] += a[k] * a[k];
  }
  const A var = reduce_add((s0 + s1) + (s2 + s3)) / static_cast<A>(C);
  return {mean, A(1) / static_cast<A>(__builtin_sqrt(var + eps))};
}

// `ahead` are rows that will be read next: memory would be idle while this row, which is in cache, is
// written.
template <class T, class A, class... P>
PLM_INLINE void normalise_row(const T* x, const T* gamma, const T* beta, T* y, int64_t C, RowStats<A> s,
                              const P*... ahead) {
  over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
    (prefetch_at(ahead, i), ...);
    store_at(y, i, part,
             (load_at(x, i, part) - s.mean) * s.rstd * load_at(gamma, i, part) + load_at(beta, i, part));
  });
}

// The backward pass of a row. With xh = (x - mean) * rstd and d = dy * gamma:
//   dx = rstd * (d - mean(d) - xh * mean(d * xh)) + ds,  dgamma += dy * xh,  dbeta += dy
// The rows after it are asked for while dx is written. kExtra: there is a ds.
template <bool kExtra, class T, class A>
PLM_INLINE void normalise_row_grad(const T* x, const T* gamma, RowStats<A> s, const T* dy, const T* ds, T* dx,
                                   A* dgamma, A* dbeta, int64_t C) {
  using V = typename Lane<T>::Vec;
  V sum_d{}, sum_dx{};
  over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
    const V g = load_at(dy, i, part), xh = (load_at(x, i, part) - s.mean) * s.rstd,
            d = g * load_at(gamma, i, part);
    sum_d += d;
    sum_dx += d * xh;
    store_at(dgamma, i, part, load_at(dgamma, i, part) + g * xh);
    store_at(dbeta, i, part, load_at(dbeta, i, part) + g);
  });
  const A md = reduce_add(sum_d) / static_cast<A>(C), mdx = reduce_add(sum_dx) / static_cast<A>(C);
  over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
    prefetch_at(x + C, i);
    prefetch_at(dy + C, i);
    if constexpr (kExtra) prefetch_at(ds + C, i);
    const V xh = (load_at(x, i, part) - s.mean) * s.rstd, d = load_at(dy, i, part) * load_at(gamma, i, part);
    V v = (d - md - xh * mdx) * s.rstd;
    if constexpr (kExtra) v += load_at(ds, i, part);
    store_at(dx, i, part, v);
  });
}

// The whole backward pass: inputs x (or s), gamma, mean, rstd, dy, ds or none; outputs dx, dgamma, dbeta. The
// workspace holds [chunks][2][C] sums.
template <class T, bool kExtra>
PLM_INLINE void layer_norm_backward(const KernelArgs& args) {
  using A = typename Lane<T>::Scalar;
  const int64_t C = args.in[0].last(), rows = args.in[0].rows(), chunks = row_chunks(rows);
  const T *x = args.in[0].as<T>(), *gamma = args.in[1].as<T>(), *dy = args.in[4].as<T>(),
          *ds = kExtra ? args.in[5].as<T>() : nullptr;
  const A *mean = args.in[2].as<A>(), *rstd = args.in[3].as<A>();
  T* dx = args.out[0].as<T>();
  A* sums = args.shared_as<A>();
  parallel_for(chunks, [&](int64_t k, int) {
    A *dgamma = sums + k * 2 * C, *dbeta = dgamma + C;
    for (int64_t c = 0; c < 2 * C; ++c) dgamma[c] = 0;
    for (int64_t r = chunk_begin(rows, chunks, k), end = chunk_begin(rows, chunks, k + 1); r < end; ++r)
      normalise_row_grad<kExtra>(x + r * C, gamma, RowStats<A>{mean[r], rstd[r]}, dy + r * C,
                                 kExtra ? ds + r * C : nullptr, dx + r * C, dgamma, dbeta, C);
  });
  add_chunks(sums, chunks, 2 * C, C, args.out[1].as<T>());
  add_chunks(sums + C, chunks, 2 * C, C, args.out[2].as<T>());
}

}  // namespace plmcore::PLM_ISA
