// Y[M, N] = X[M, K] W[N, K]^T for few rows of X: bound by reading W. With two parts X has 2 M rows, and
// Y[i] = 128 (X W^T)[2 i] + (X W^T)[2 i + 1]. Several rows of W are read at once from places far apart,
// each one long run for the hardware's prefetcher; W stays in registers while the rows of X pass.
#pragma once

#include "kernels/dot.h"
#include "kernels/gemm_space.h"

namespace plmcore::PLM_ISA {

constexpr int64_t kFewRowsAhead = 3072;  // elements of W; the hardware's prefetcher begins anew at every page

constexpr int ceil_to_vector(int n) { return (n + kF - 1) / kF * kF; }
// sums[i] = the sum of the lanes of v[i].
template <int n, class V, class S>
PLM_INLINE void sum_all(const V* v, S* sums) {
  store(sums, lane_sums<(n < kF ? n : kF)>(v));
  if constexpr (n > kF) sum_all<n - kF>(v + kF, sums + kF);
}

// R rows of W at distance ldw against those of X for MB rows of Y. The order over k is fixed by K alone.
template <int MB, int R, int parts, class X, class W, class D = Dot<X, W>>
[[gnu::noinline]] static void few_rows_block(int64_t K, const X* __restrict x, int64_t ldx,
                                             const W* __restrict w, int64_t ldw,
                                             typename D::Sum* __restrict y, int64_t ldy, int64_t step) {
  constexpr int rows = MB * parts;
  typename D::Vec acc[rows][R] = {};
  int64_t k = 0;
  for (; k + D::step <= K; k += D::step) {
    decltype(D::weights(w)) wv[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if (std::is_same_v<X, int8_t>) __builtin_prefetch(w + r * ldw + k + kFewRowsAhead);
      wv[r] = D::weights(w + r * ldw + k);
    }
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) {
      const auto xv = D::activations(x + m * ldx + k);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[m][r] = D::add(acc[m][r], xv, wv[r]);
    }
  }
  typename D::Sum sums[ceil_to_vector(rows * R)];
  sum_all<rows * R>(&acc[0][0], sums);
#pragma GCC unroll 8
  for (int m = 0; m < MB; ++m)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto sum = [&](int i) __attribute__((always_inline)) {
        typename D::Sum s = sums[i * R + r];
        for (int64_t q = k; q < K; ++q) s += D::product(x[i * ldx + q], w[r * ldw + q]);
        return s;
      };
      if constexpr (parts == 1) y[m * ldy + r * step] = sum(m);
      else
        y[m * ldy + r * step] = static_cast<int32_t>(128u * static_cast<uint32_t>(sum(2 * m)) +
                                                     static_cast<uint32_t>(sum(2 * m + 1)));
    }
}
template <int MB, int R, int parts, class X, class W, class Y>
PLM_INLINE void few_rows_range(int64_t K, int64_t begin, int64_t end, const X* x, int64_t ldx, const W* w,
                               Y* y, int64_t ldy) {
  const int64_t q = (end - begin) / R;  // stream r reads rows begin + r * q, ...
  for (int64_t i = 0; i < q; ++i)
    few_rows_block<MB, R, parts>(K, x, ldx, w + (begin + i) * K, q * K, y + begin + i, ldy, q);
  for (int64_t n = begin + q * R; n < end; ++n)
    few_rows_block<MB, 1, parts>(K, x, ldx, w + n * K, K, y + n, ldy, 1);
}

// Columns [begin, end) of all M rows of Y, which are ldy apart; those of X are ldx apart.
template <int parts, class X, class W>
PLM_INLINE void few_rows_columns(int64_t M, int64_t K, int64_t begin, int64_t end, const X* x0, int64_t ldx,
                                 const W* w, typename Dot<X, W>::Sum* y0, int64_t ldy) {
  constexpr bool bytes = std::is_same_v<X, int8_t>;  // these have 32 registers
  constexpr int once = bytes ? 8 / parts : 4;  // rows of Y at once, at most
  constexpr int beside3 = bytes ? 4 / parts : 3;  // rows of W beside 3 of them, and beside 4
  constexpr int beside4 = !bytes && sizeof(W) == 1 ? 2 : beside3;
  for (int64_t m = 0; m < M;) {
    const int64_t left = M - m;
    int64_t mb = left;
    if (left >= 8) mb = once;
    else if (left >= 5) mb = left == 7 ? 4 : 3;  // 5 = 3+2, 6 = 3+3, 7 = 4+3
    const X* x = x0 + m * parts * ldx;
    auto* y = y0 + m * ldy;
    switch (mb) {
      case 1: few_rows_range<1, 4, parts>(K, begin, end, x, ldx, w, y, ldy); break;
      case 2: few_rows_range<2, 4, parts>(K, begin, end, x, ldx, w, y, ldy); break;
      case 3: few_rows_range<3, beside3, parts>(K, begin, end, x, ldx, w, y, ldy); break;
      case 4: few_rows_range<4, beside4, parts>(K, begin, end, x, ldx, w, y, ldy); break;
      default: few_rows_range<once, once == 8 ? 2 : beside4, parts>(K, begin, end, x, ldx, w, y, ldy);
    }
    m += mb;
  }
}

// Rows of X are ldx apart. epilogue(begin, end) runs after columns [begin, end) of all rows of Y.
template <int parts = 1, class X, class W, class F>
PLM_INLINE void few_rows(int64_t M, int64_t N, int64_t K, const X* x, int64_t ldx, const W* w,
                         typename Dot<X, W>::Sum* y, F epilogue) {
  constexpr int once = std::is_same_v<X, int8_t> ? 8 / parts : 4;
  // A chunk of W: half a megabyte; a quarter of it where it is read twice and should stay in L2.
  const int64_t elements = (M <= once ? 512 << 10 : 128 << 10) / static_cast<int64_t>(sizeof(W)),
                most = N / 16 > 12 ? N / 16 : 12;
  int64_t chunk = elements / (K > 0 ? K : 1) / 12 * 12;
  if (chunk > most) chunk = most;
  if (chunk < 12) chunk = 12;
  for_chunks(N, chunk, [&](int64_t b, int64_t e) {
    few_rows_columns<parts>(M, K, b, e, x, ldx, w, y, N);
    epilogue(b, e);
  });
}

}  // namespace plmcore::PLM_ISA
