// C[M, N] = A[M, K] B[N, K]^T with A int16, B int8 and C int32, exact: any order of the sum gives the same number.
//
// Two neighbours along k are one 32-bit unit: a vector of B holds kF columns of such pairs, a pair of A goes to all lanes, and one
// instruction multiplies and adds both. A is read where it lies; a panel of B, kNR8 columns of at most kInt8Depth, is
// widened and turned to [k / 2][kNR8][2] just before the rows of a tile pass over it, and stays in L1 meanwhile.
#pragma once

#include "kernels/int8_space.h"
#include "kernels/kernel.h"
#include "kernels/transpose8.h"

namespace plmcore::PLM_ISA {

constexpr int kMR8 = kF == 16 ? 12 : 6, kNR8 = 2 * kF;
static_assert(kNR8 <= kInt8Panel);

// Rows of A are lda apart; C is added to when `add`.
template <int R>
[[gnu::noinline]] static void int8_micro(int64_t pairs, const int16_t* __restrict a, int64_t lda, const int16_t* __restrict b,
                                         int32_t* __restrict c, int64_t ldc, bool add) {
  vi acc[R][2];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) acc[i][0] = acc[i][1] = vi{};
  const int16_t* row[(R + 2) / 3];  // one pointer for three rows: the others are reached by index registers
#pragma GCC unroll 4
  for (int g = 0; g < (R + 2) / 3; ++g) row[g] = a + 3 * g * lda;
#pragma GCC unroll 2
  for (int64_t p = 0; p < pairs; ++p, b += 2 * kNR8) {
    const vs b0 = load(b), b1 = load(b + kS);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      int32_t pair;
      __builtin_memcpy(&pair, row[i / 3] + i % 3 * lda, 4);
      const vs x = __builtin_bit_cast(vs, pair - vi{});
      acc[i][0] += multiply_pairs(x, b0);
      acc[i][1] += multiply_pairs(x, b1);
    }
#pragma GCC unroll 4
    for (int g = 0; g < (R + 2) / 3; ++g) row[g] += 2;
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    int32_t* to = c + i * ldc;
    store(to, add ? acc[i][0] + load(to) : acc[i][0]);
    store(to + kF, add ? acc[i][1] + load(to + kF) : acc[i][1]);
  }
}
template <int R = kMR8>
PLM_INLINE void int8_rows(int64_t rows, int64_t pairs, const int16_t* a, int64_t lda, const int16_t* b, int32_t* c, int64_t ldc, bool add) {
  if constexpr (R > 1)
    if (rows < R) return int8_rows<R - 1>(rows, pairs, a, lda, b, c, ldc, add);
  int8_micro<R>(pairs, a, lda, b, c, ldc, add);
}
// A block at the right edge goes through a full-width buffer.
static void int8_edge(int64_t rows, int64_t cols, int64_t pairs, const int16_t* a, int64_t lda, const int16_t* b, int32_t* c, int64_t ldc,
                      bool add) {
  alignas(64) int32_t t[kMR8 * kNR8];
  int8_rows(rows, pairs, a, lda, b, t, kNR8, false);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) c[i * ldc + j] = t[i * kNR8 + j] + (add ? c[i * ldc + j] : 0);
}

// B [cols][kc], rows K apart -> [kc / 2][kNR8][2]; columns and an odd k beyond the matrix as zeros.
static void int8_panel(const int8_t* b, int64_t K, int64_t cols, int64_t kc, int16_t* out) {
  int64_t k = 0;
  if (cols == kNR8)
    for (; k + 16 <= kc; k += 16)
      for (int g = 0; g < kNR8; g += 8) {
        v8 r[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) r[i] = __builtin_bit_cast(v8, widen(b + (g + i) * K + k));
        transpose8(r);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) __builtin_memcpy(out + (k / 2 + i) * 2 * kNR8 + 2 * g, &r[i], sizeof r[i]);
      }
  for (; k < kc; k += 2)
    for (int64_t c = 0; c < kNR8; ++c) {
      int16_t* to = out + k * kNR8 + 2 * c;
      to[0] = c < cols ? b[c * K + k] : 0;
      to[1] = c < cols && k + 1 < kc ? b[c * K + k + 1] : 0;
    }
}

// Rows of A are lda apart, lda even and at least K; where K is odd, A has a zero behind it. epilogue(i, j, rows, columns) runs after the
// tile at row i, column j.
template <class F>
PLM_INLINE void int8_gemm(const KernelArgs& args, int64_t M, int64_t N, int64_t K, const int16_t* A, int64_t lda, const int8_t* B,
                          int32_t* C, F epilogue) {
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t blocks = ceil_div(M, kInt8Rows), m = ceil_div(ceil_div(M, blocks), kMR8) * kMR8, rows = ceil_div(M, m);
  int64_t n = kInt8Columns;
  while (n > 64 && rows * ceil_div(N, n) < 8) n /= 2;
  const int64_t depth = ceil_div(ceil_div(K, ceil_div(K, kInt8Depth)), 16) * 16;
  parallel_for(rows * ceil_div(N, n), [&](int64_t t, int worker) {
    const int64_t i0 = t % rows * m, j0 = t / rows * n, i1 = i0 + m < M ? i0 + m : M, j1 = j0 + n < N ? j0 + n : N;
    int16_t* panel = args.worker_as<int16_t>(worker);
    for (int64_t k = 0; k < K; k += depth) {
      const int64_t kc = k + depth < K ? depth : K - k;
      for (int64_t j = j0; j < j1; j += kNR8) {
        const int64_t cols = j1 - j < kNR8 ? j1 - j : kNR8;
        int8_panel(B + j * K + k, K, cols, kc, panel);
        for (int64_t i = i0; i < i1; i += kMR8) {
          const int64_t left = i1 - i < kMR8 ? i1 - i : kMR8;
          const int16_t* a = A + i * lda + k;
          if (cols == kNR8) int8_rows(left, (kc + 1) / 2, a, lda, panel, C + i * N + j, N, k > 0);
          else int8_edge(left, cols, (kc + 1) / 2, a, lda, panel, C + i * N + j, N, k > 0);
        }
      }
    }
    epilogue(i0, j0, i1 - i0, j1 - j0);
  });
}

}  // namespace plmcore::PLM_ISA
