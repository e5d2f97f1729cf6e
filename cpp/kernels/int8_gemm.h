// C[M, N] = A[M, K] B[N, K]^T with A int16 or int8, B int8 and C int32, exact: any order of the sum gives the
// same number. With A int8 the sums are those of Dot<int8_t, int8_t>. With two parts A has 2 M rows, and C[i]
// = 128 (A B^T)[2 i] + (A B^T)[2 i + 1].
//
// Two or four neighbours along k are one 32-bit unit: a vector of B holds kF columns of such units, a unit of
// A goes to all lanes, and one instruction multiplies and adds. A is read where it lies; a panel of B, kNR8
// columns of a depth of k, is turned to [k / unit][kNR8][unit] just before the rows of a tile pass over it,
// and stays in L1 meanwhile.
#pragma once

#include "kernels/dot.h"
#include "kernels/int8_space.h"
#include "kernels/transpose8.h"

namespace plmcore::PLM_ISA {

constexpr int kMR8 = kF == 16 ? 12 : 6, kNR8 = 2 * kF;
static_assert(kNR8 <= kInt8Panel);

// Columns of B, of the depth of a panel, to bring near for the next one.
struct Int8Ahead {
  const int8_t* first;
  int64_t columns, ld, depth;
  PLM_INLINE void fetch(int64_t begin, int64_t end) const {  // a part of the depth
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = (begin + 63) / 64 * 64; k < end; k += 64) __builtin_prefetch(first + c * ld + k, 0, 2);
  }
};

// R rows of A, lda apart, to R / parts rows of C, which is added to when `add`. C and what lies ahead are
// fetched a little at a time, as all at once would stop the work until the last of it is under way.
template <int R, int parts, class X, class D = Dot<X, int8_t>>
[[gnu::noinline]] static void int8_micro(int64_t units, const X* __restrict a, int64_t lda,
                                         const X* __restrict b, int32_t* __restrict c, int64_t ldc, bool add,
                                         const Int8Ahead& ahead) {
  vi acc[R][2];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) acc[i][0] = acc[i][1] = vi{};
  const X* row[(R + 2) / 3];  // one pointer for three rows: the others are reached by index registers
#pragma GCC unroll 4
  for (int g = 0; g < (R + 2) / 3; ++g) row[g] = a + 3 * g * lda;
  int64_t p = 0;
  for (int turn = 0; turn < R; ++turn) {
    __builtin_prefetch(c + turn / parts * ldc, 1);
    __builtin_prefetch(c + turn / parts * ldc + kF, 1);
    ahead.fetch(ahead.depth * turn / R, ahead.depth * (turn + 1) / R);
    const int64_t end = units * (turn + 1) / R;
#pragma GCC unroll 2
    for (; p < end; ++p, b += 2 * D::step) {
      const auto b0 = D::activations(b),
                 b1 = D::activations(b + D::step);  // in the panel they have the activations' type
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        int32_t unit;
        __builtin_memcpy(&unit, row[i / 3] + i % 3 * lda, 4);
        const auto x = __builtin_bit_cast(decltype(D::activations(a)), unit - vi{});
        acc[i][0] = D::add(acc[i][0], x, b0);
        acc[i][1] = D::add(acc[i][1], x, b1);
      }
#pragma GCC unroll 4
      for (int g = 0; g < (R + 2) / 3; ++g) row[g] += Int8Blocks<X>::unit;
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R / parts; ++i)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      int32_t* to = c + i * ldc + h * kF;
      const vi sum = parts == 1 ? acc[i][h] : (acc[parts * i][h] << 7) + acc[parts * i + parts - 1][h];
      store(to, add ? sum + load(to) : sum);
    }
}
template <int parts, int R = kMR8, class X>
PLM_INLINE void int8_rows(int64_t rows, int64_t units, const X* a, int64_t lda, const X* b, int32_t* c,
                          int64_t ldc, bool add, const Int8Ahead& ahead) {
  if constexpr (R > parts)
    if (rows * parts < R) return int8_rows<parts, R - parts>(rows, units, a, lda, b, c, ldc, add, ahead);
  int8_micro<R, parts>(units, a, lda, b, c, ldc, add, ahead);
}
// A block at the right edge goes through a full-width buffer.
template <int parts, class X>
static void int8_edge(int64_t rows, int64_t cols, int64_t units, const X* a, int64_t lda, const X* b,
                      int32_t* c, int64_t ldc, bool add) {
  alignas(64) int32_t t[kMR8 * kNR8];
  int8_rows<parts>(rows, units, a, lda, b, t, kNR8, false, {});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) c[i * ldc + j] = t[i * kNR8 + j] + (add ? c[i * ldc + j] : 0);
}

// Eight units of a row of B, and one of its numbers, as they lie in a panel.
PLM_INLINE v8 panel_units(const int8_t* b, const int16_t*) { return __builtin_bit_cast(v8, widen(b)); }
PLM_INLINE int16_t panel_value(int8_t b, const int16_t*) { return b; }
PLM_INLINE v8 panel_units(const int8_t* b, const int8_t*) {
  v8 v;
  __builtin_memcpy(&v, b, sizeof v);
  return v ^ static_cast<int32_t>(0x80808080);
}
PLM_INLINE int8_t panel_value(int8_t b, const int8_t*) { return static_cast<int8_t>(b ^ -128); }

// B [cols][kc], rows K apart -> [kc / unit][kNR8][unit]. Beyond kc there is anything: the activations are
// zeros there.
template <class X>
static void int8_panel(const int8_t* b, int64_t K, int64_t cols, int64_t kc, X* out) {
  constexpr int64_t unit = Int8Blocks<X>::unit;
  int64_t k = 0;
  if (cols == kNR8)
    for (; k + 8 * unit <= kc; k += 8 * unit)
      for (int g = 0; g < kNR8; g += 8) {
        v8 r[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) r[i] = panel_units(b + (g + i) * K + k, out);
        transpose8(r);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
          __builtin_memcpy(out + (k / unit + i) * unit * kNR8 + unit * g, &r[i], sizeof r[i]);
      }
  for (; k < kc; k += unit)
    for (int64_t c = 0; c < kNR8; ++c)
      for (int64_t u = 0; u < unit; ++u)
        out[k * kNR8 + unit * c + u] = c < cols && k + u < kc ? panel_value(b[c * K + k + u], out) : X{};
}

// Rows of A are lda apart, lda whole units and at least K; A is zero between K and the next unit. epilogue(i,
// j, rows, columns) runs after the block of C at row i, column j.
template <int parts, class X, class F>
PLM_INLINE void int8_gemm(const KernelArgs& args, int64_t M, int64_t N, int64_t K, const X* A, int64_t lda,
                          const int8_t* B, int32_t* C, F epilogue) {
  using Blocks = Int8Blocks<X>;
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  constexpr int64_t mr = kMR8 / parts;
  const int64_t tiles = ceil_div(M * parts, Blocks::rows), m = ceil_div(ceil_div(M, tiles), mr) * mr,
                rows = ceil_div(M, m);
  int64_t n = Blocks::columns;
  while (n > 64 && rows * ceil_div(N, n) < 8) n /= 2;
  const int64_t depth = ceil_div(ceil_div(K, ceil_div(K, Blocks::depth)), 32) * 32;
  parallel_for(rows * ceil_div(N, n), [&](int64_t t, int worker) {
    const int64_t i0 = t % rows * m, j0 = t / rows * n, i1 = i0 + m < M ? i0 + m : M,
                  j1 = j0 + n < N ? j0 + n : N;
    X* panel = args.worker_as<X>(worker);
    for (int64_t k = 0; k < K; k += depth) {
      const int64_t kc = k + depth < K ? depth : K - k, units = ceil_div(kc, Blocks::unit);
      for (int64_t j = j0; j < j1; j += kNR8) {
        const int64_t cols = j1 - j < kNR8 ? j1 - j : kNR8;
        int8_panel(B + j * K + k, K, cols, kc, panel);
        const int64_t each =
            ceil_div(kNR8 * mr, i1 - i0);  // columns of the next panel to fetch beside a block
        for (int64_t i = i0, next = j + kNR8; i < i1; i += mr, next += each) {
          const int64_t left = i1 - i < mr ? i1 - i : mr,
                        more = next < j1 ? (j1 - next < each ? j1 - next : each) : 0;
          const X* a = A + i * parts * lda + k;
          if (cols == kNR8)
            int8_rows<parts>(left, units, a, lda, panel, C + i * N + j, N, k > 0,
                             {B + next * K + k, more, K, kc});
          else int8_edge<parts>(left, cols, units, a, lda, panel, C + i * N + j, N, k > 0);
          if (k + kc == K) epilogue(i, j, left, cols);
        }
      }
    }
  });
}

}  // namespace plmcore::PLM_ISA
