// Y[M, N] = X[M, K] W[N, K]^T for M <= 8: bound by reading W. Several rows of W are read at once from places far apart,
// each one long run for the hardware's prefetcher; W stays in registers while the rows of X pass.
#pragma once

#include "kernels/gemm_space.h"
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

// R rows of W at distance ldw against MB rows of X. The order over k is fixed by K alone.
template <int MB, int R>
[[gnu::noinline]] static void few_rows_block(int64_t K, const float* __restrict x, int64_t ldx, const float* __restrict w, int64_t ldw,
                                             float* __restrict y, int64_t ldy, int64_t step) {
  vf acc[MB][R] = {};
  int64_t k = 0;
  for (; k + kF <= K; k += kF) {
    vf wv[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) wv[r] = load(w + r * ldw + k);
#pragma GCC unroll 8
    for (int m = 0; m < MB; ++m) {
      const vf xv = load(x + m * ldx + k);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[m][r] += xv * wv[r];
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < MB; ++m)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float s = reduce_add(acc[m][r]);
      for (int64_t q = k; q < K; ++q) s += x[m * ldx + q] * w[r * ldw + q];
      y[m * ldy + r * step] = s;
    }
}
template <int MB, int R>
PLM_INLINE void few_rows_range(int64_t K, int64_t begin, int64_t end, const float* x, int64_t ldx, const float* w, float* y, int64_t ldy) {
  const int64_t q = (end - begin) / R;  // stream r reads rows begin + r * q, ...
  for (int64_t i = 0; i < q; ++i) few_rows_block<MB, R>(K, x, ldx, w + (begin + i) * K, q * K, y + begin + i, ldy, q);
  for (int64_t n = begin + q * R; n < end; ++n) few_rows_block<MB, 1>(K, x, ldx, w + n * K, K, y + n, ldy, 1);
}

// epilogue(begin, end) runs after columns [begin, end) of all rows of Y.
template <class F>
PLM_INLINE void few_rows(int64_t M, int64_t N, int64_t K, const float* X, const float* W, float* Y, F epilogue) {
  // A chunk of W: half a megabyte; a quarter of it where it is read twice and should stay in L2.
  const int64_t floats = M <= 4 ? 128 << 10 : 32 << 10, most = N / 16 > 12 ? N / 16 : 12;
  int64_t chunk = floats / (K > 0 ? K : 1) / 12 * 12;
  chunk = chunk < 12 ? 12 : chunk > most ? most : chunk;
  for_chunks(N, chunk, [&](int64_t b, int64_t e) {
    for (int64_t m = 0; m < M;) {
      const int64_t left = M - m, mb = left >= 7 || left == 4 ? 4 : left >= 5 ? 3 : left;  // 5 = 3+2, 6 = 3+3, 7 = 4+3
      const float* x = X + m * K;
      float* y = Y + m * N;
      switch (mb) {
        case 1: few_rows_range<1, 4>(K, b, e, x, K, W, y, N); break;
        case 2: few_rows_range<2, 4>(K, b, e, x, K, W, y, N); break;
        case 3: few_rows_range<3, 3>(K, b, e, x, K, W, y, N); break;
        default: few_rows_range<4, 3>(K, b, e, x, K, W, y, N);
      }
      m += mb;
    }
    epilogue(b, e);
  });
}

}  // namespace plmcore::PLM_ISA
