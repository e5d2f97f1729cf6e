// The products of attention's tiles, the copies that lay tiles out for them, and softmax of a row. Rows come
// in groups of kTileRows, columns in panels of two vectors: twelve accumulators on 16 registers, twenty-four
// on 32.
#pragma once

#include <limits>

#include "kernels/kernel.h"
#include "kernels/math.h"

namespace plmcore::PLM_ISA {

constexpr int kTileRows = PLM_VECTOR_BYTES == 64 ? 12 : 6;
template <class A> constexpr int kPanel = 2 * Lane<A>::n;

enum class Start {
  zero,
  zero_scaled,
  add,
  scaled
};  // c = ab, c = factor[row] ab, c += ab, c = factor[row] c + ab

// c [kTileRows][panel] = start + sum over k < K of a(row, k) * b[k][panel].  a(row, k) = a[row * lda + k], or
// a[k * lda + row] when kTransposed. Per k: two vector loads, kTileRows broadcasts, 2 kTileRows
// multiply-adds.
template <Start kStart, bool kTransposed, class A>
[[gnu::noinline]] void tile_product(const A* a, int64_t lda, const A* b, int64_t ldb, A* c, int64_t ldc,
                                    int64_t K, const A* factor) {
  using V = typename Lane<A>::Vec;
  constexpr int W = Lane<A>::n, R = kTileRows;
  V acc[R][2];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    acc[r][0] = acc[r][1] = V{};
    if constexpr (kStart == Start::add || kStart == Start::scaled) {
      acc[r][0] = load(c + r * ldc);
      acc[r][1] = load(c + r * ldc + W);
    }
    if constexpr (kStart == Start::scaled) {
      acc[r][0] *= factor[r];
      acc[r][1] *= factor[r];
    }
  }
  const A* p[R / 3];  // one pointer for three rows: the others are reached by index registers
#pragma GCC unroll 4
  for (int g = 0; g < R / 3; ++g) p[g] = a + 3 * g * lda;
  for (int64_t k = 0; k < K; ++k) {
    const V b0 = load(b), b1 = load(b + W);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const V x = splat(kTransposed ? a[r] : p[r / 3][r % 3 * lda]);
      acc[r][0] += x * b0;
      acc[r][1] += x * b1;
    }
    b += ldb;
    if constexpr (kTransposed) a += lda;
#pragma GCC unroll 4
    for (int g = 0; g < R / 3; ++g) ++p[g];
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    if constexpr (kStart == Start::zero_scaled) {
      acc[r][0] *= factor[r];
      acc[r][1] *= factor[r];
    }
    store(c + r * ldc, acc[r][0]);
    store(c + r * ldc + W, acc[r][1]);
  }
}

// ---- copies into tiles ----

// Rows of one head lie a whole row of all heads apart, which the processor's prefetcher does not follow.
constexpr int kRowsAhead = 10;
template <class T>
PLM_INLINE void prefetch_row(const T* row, int64_t D, bool write = false) {
  for (int64_t d = 0; d < D; d += 64 / static_cast<int64_t>(sizeof(T)))
    if (write) __builtin_prefetch(row + d, 1);
    else __builtin_prefetch(row + d, 0, 2);
}

// to[i][0, D) = from[i] * scale; columns up to `width` become 0.
template <class T, class A>
PLM_INLINE void load_rows(const T* from, int64_t stride, int64_t n, int64_t D, A* to, int64_t width,
                          A scale) {
  constexpr int W = Lane<A>::n;
  for (int64_t i = 0; i < n; ++i, from += stride, to += width) {
    prefetch_row(from + kRowsAhead * stride, D);
    int64_t d = 0;
    for (; d + W <= D; d += W) store(to + d, load(from + d) * scale);
    for (; d < D; ++d) to[d] = static_cast<A>(to_float(from[d])) * scale;
    for (; d < width; ++d) to[d] = 0;
  }
}
// to[i] = from[i][0, D) * scale
template <class T, class A>
PLM_INLINE void store_rows(const A* from, int64_t width, int64_t n, int64_t D, T* to, int64_t stride,
                           A scale) {
  constexpr int W = Lane<A>::n;
  for (int64_t i = 0; i < n; ++i, from += width, to += stride) {
    prefetch_row(to + kRowsAhead * stride, D, true);
    int64_t d = 0;
    for (; d + W <= D; d += W) store(to + d, load(from + d) * scale);
    for (; d < D; ++d) to[d] = from_float<T>(from[d] * scale);
  }
}

template <class A>
PLM_INLINE void fill(A* p, int64_t n, A value) {
  for (int64_t i = 0; i < n; ++i) p[i] = value;
}

// Panels of columns, each [n][panel] in one piece: to[c / panel][i][c % panel] = from[i][c], 0 for c >= D.
template <class T, class A>
PLM_INLINE void pack_panels(const T* from, int64_t stride, int64_t n, int64_t D, A* to) {
  constexpr int W = Lane<A>::n, P = kPanel<A>;
  for (int64_t i = 0; i < n; ++i, from += stride, to += P) {
    prefetch_row(from + kRowsAhead * stride, D);
    A* out = to;
    int64_t c = 0;
    for (; c + P <= D; c += P, out += n * P) {
      store(out, load(from + c));
      store(out + W, load(from + c + W));
    }
    for (int k = 0; c < D && k < P; ++k) out[k] = k < D - c ? static_cast<A>(to_float(from[c + k])) : A(0);
  }
}

// Four elements from each of p, p + step, p + 2 step, ...: one 16-byte lane each.
PLM_INLINE vf load_quads(const float* p, int64_t step) {
  typedef float quad __attribute__((vector_size(16)));
  const auto at = [&](int lane) {
    quad x;
    __builtin_memcpy(&x, p + lane * step, sizeof x);
    return x;
  };
#if PLM_VECTOR_BYTES == 16
  return at(0);
#elif PLM_VECTOR_BYTES == 32
  return __builtin_shufflevector(at(0), at(1), 0, 1, 2, 3, 4, 5, 6, 7);
#else
  const auto a = __builtin_shufflevector(at(0), at(1), 0, 1, 2, 3, 4, 5, 6, 7),
             b = __builtin_shufflevector(at(2), at(3), 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
}

// In each 16-byte lane, elements from..from+1 of a and b one by one (kPairs: from, from + 1 of a, then of b).
template <int from, bool kPairs, size_t... i>
PLM_INLINE vf unpack(vf a, vf b, std::index_sequence<i...>) {
  return __builtin_shufflevector(
      a, b, (i / 4 * 4 + from + (kPairs ? i % 2 + i / 2 % 2 * kF : i / 2 % 2 + i % 2 * kF))...);
}

// One panel of the transpose, to[d][k] = from[k][d] * scale for d < D. Four columns of a vector's rows at a
// time: a register holds four elements of row k in each 16-byte lane, and a 4x4 transpose inside the lanes
// gives the columns.
template <class A>
PLM_INLINE void transpose_panel(const A* from, int64_t stride, int64_t D, A* to, A scale) {
  constexpr int P = kPanel<A>;
  int64_t d = 0;
  if constexpr (std::is_same_v<A, float>) {
    constexpr auto lanes = std::make_index_sequence<kF>{};
    for (; d + 4 <= D; d += 4)
      for (int half = 0; half < P; half += kF) {
        const float* p = from + half * stride + d;
        const vf a = load_quads(p, 4 * stride), b = load_quads(p + stride, 4 * stride),
                 c = load_quads(p + 2 * stride, 4 * stride), e = load_quads(p + 3 * stride, 4 * stride);
        const vf ab = unpack<0, false>(a, b, lanes), ce = unpack<0, false>(c, e, lanes),
                 ab2 = unpack<2, false>(a, b, lanes), ce2 = unpack<2, false>(c, e, lanes);
        float* out = to + d * P + half;
        store(out, unpack<0, true>(ab, ce, lanes) * scale);
        store(out + P, unpack<2, true>(ab, ce, lanes) * scale);
        store(out + 2 * P, unpack<0, true>(ab2, ce2, lanes) * scale);
        store(out + 3 * P, unpack<2, true>(ab2, ce2, lanes) * scale);
      }
  }
  for (; d < D; ++d)
    for (int k = 0; k < P; ++k) to[d * P + k] = from[k * stride + d] * scale;
}

// Panels of the transpose: to[i / panel][d][i % panel] = from[i][d] * scale, 0 for i >= n. `staging` holds
// one panel's rows.
template <class T, class A>
PLM_INLINE void pack_transposed(const T* from, int64_t stride, int64_t n, int64_t D, A* to, A scale,
                                A* staging) {
  constexpr int P = kPanel<A>;
  for (int64_t i = 0; i < n; i += P, from += P * stride, to += D * P) {
    const int64_t rows = n - i < P ? n - i : P;
    for (int64_t r = P; r < 2 * P && i + r < n; ++r) prefetch_row(from + r * stride, D);
    if constexpr (std::is_same_v<T, A>)
      if (rows == P) {
        transpose_panel(from, stride, D, to, scale);
        continue;
      }
    load_rows(from, stride, rows, D, staging, D, A(1));
    fill(staging + rows * D, (P - rows) * D, A(0));
    transpose_panel(staging, D, D, to, scale);
  }
}

// ---- softmax ----

// The weights of kSoftmaxRows rows from their scores s[row][0, n), in place; n is a whole number of panels. m
// and l are the running maximum and sum; factor gets what earlier sums are multiplied by, unless these are
// the first scores.
// Side by side, so that the latencies of one row's reductions hide behind another's.
constexpr int kSoftmaxRows = 3;
template <class A>
PLM_INLINE void softmax_rows(A* s, int64_t lds, int64_t n, A* m, A* l, A* factor, bool first) {
  using V = typename Lane<A>::Vec;
  constexpr int W = Lane<A>::n, R = kSoftmaxRows;
  constexpr A kNever = -std::numeric_limits<A>::infinity();
  V top[R], sum[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) top[r] = splat(m[r]);
  for (int64_t j = 0; j < n; j += 2 * W)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) top[r] = max(top[r], max(load(s + r * lds + j), load(s + r * lds + j + W)));
  A shift[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const A highest = reduce_max(top[r]);
    shift[r] = highest == kNever ? A(0) : highest;  // nothing seen yet: all weights 0
    if (!first) l[r] *= factor[r] = exp2_nonpositive(splat(m[r] - shift[r]))[0];
    m[r] = highest;
    sum[r] = V{};
  }
  for (int64_t j = 0; j < n; j += W)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const V e = exp2_nonpositive(load(s + r * lds + j) - shift[r]);
      sum[r] += e;
      store(s + r * lds + j, e);
    }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) l[r] = (first ? A(0) : l[r]) + reduce_add(sum[r]);
}

}  // namespace plmcore::PLM_ISA
