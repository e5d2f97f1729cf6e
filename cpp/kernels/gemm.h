// C[M, N] = op(A) op(B) in tiles on the pool, row-major, with an epilogue on each finished tile while it is
// in cache.
//
// Two engines behind one interface. The own one packs blocks of A to [k][kMR] and of B to [k][kNR] and runs a
// register kernel of kMR x kNR; it takes any float type, converting while packing. On vectors of 32 and 64
// bytes it beats MKL's plain products; on others float32 tiles go to the BLAS, and those of float64
// everywhere. Either way a tile's bits depend on M, N, K alone, never on the threads.
#pragma once

#include "blas/blas.h"
#include "kernels/gemm_space.h"
#include "kernels/kernel.h"
#include "kernels/transpose8.h"

namespace plmcore::PLM_ISA {

constexpr int kMR = kF == 16 ? 12 : 6, kNR = 2 * kF;  // kMR * 2 accumulators, two vectors of B, one of A
// Of k at a time. On 32 registers a row of B lasts so long that a panel may come from L2, fetched kPanelAhead
// rows before its use, and sums stay in registers for twice as long; on 16 a panel stays in L1.
constexpr int64_t kDepth = kF == 16 ? kGemmDepth : kGemmDepth / 2;
constexpr int kPanelAhead = kF == 16 ? 32 : 0;

PLM_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
PLM_INLINE int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// A matrix seen as rows along `x` and columns along the summed index k.
template <class T>
struct Operand {
  const T* p;
  int64_t ld;
  bool k_contiguous;  // element (x, k) at p[x * ld + k]; otherwise at p[k * ld + x]
};

// acc[R][V vectors] += a[R][kc] * bp[kc][V of kNR], then into C (added to it when `add`). A is packed,
// [kc][kMR], or (kRows) its rows are read where they lie, lda apart. `later`: what calls to come will read,
// brought from far memory while this one computes: two lines per row of A or, on 32 registers, one per k.
template <int R, bool kRows, int V>
[[gnu::noinline]] static void micro(int64_t kc, const float* __restrict a, int64_t lda,
                                    const float* __restrict bp, float* __restrict c, int64_t ldc, bool add,
                                    const float* later) {
  vf acc[R][V];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    __builtin_prefetch(c + i * ldc + V * kF - 1, 1);
    if constexpr (kF != 16) {
      __builtin_prefetch(later + i * 32, 0, 2);
      __builtin_prefetch(later + i * 32 + 16, 0, 2);
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[i][v] = vf{};
  }
  const float* row[(R + 2) / 3];  // one pointer for three rows: the others are reached by index registers
#pragma GCC unroll 4
  for (int g = 0; g < (R + 2) / 3; ++g) row[g] = a + 3 * g * lda;
#pragma GCC unroll 4
  for (int64_t k = 0; k < kc; ++k, bp += kNR) {
    if constexpr (kF == 16) __builtin_prefetch(later + 16 * k, 0, 2);
    vf b[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      b[v] = load(bp + v * kF);
      if constexpr (kPanelAhead > 0) __builtin_prefetch(bp + kPanelAhead * kNR + v * kF);
    }
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const vf x = splat(kRows ? row[i / 3][i % 3 * lda] : a[i]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[i][v] += x * b[v];
    }
    if constexpr (!kRows) a += kMR;
#pragma GCC unroll 4
    for (int g = 0; g < (R + 2) / 3; ++g) ++row[g];
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      float* to = c + i * ldc + v * kF;
      store(to, add ? acc[i][v] + load(to) : acc[i][v]);
    }
}

template <bool kRows, int V, int R = kMR>
PLM_INLINE void micro_rows(int64_t rows, int64_t kc, const float* a, int64_t lda, const float* bp, float* c,
                           int64_t ldc, bool add, const float* later) {
  if constexpr (R > 1)
    if (rows < R) return micro_rows<kRows, V, R - 1>(rows, kc, a, lda, bp, c, ldc, add, later);
  micro<R, kRows, V>(kc, a, lda, bp, c, ldc, add, later);
}
// A block at the right edge: its first vector if that is all, else through a buffer of whole vectors.
template <bool kRows>
static void micro_edge(int64_t rows, int64_t cols, int64_t kc, const float* a, int64_t lda, const float* bp,
                       float* c, int64_t ldc, bool add, const float* later) {
  if (cols == kNR) return micro_rows<kRows, 2>(rows, kc, a, lda, bp, c, ldc, add, later);
  if (cols == kF) return micro_rows<kRows, 1>(rows, kc, a, lda, bp, c, ldc, add, later);
  alignas(64) float t[kMR * kNR];
  if (add)
    for (int64_t i = 0; i < rows; ++i) std::memcpy(t + i * kNR, c + i * ldc, static_cast<size_t>(cols) * 4);
  if (cols < kF) micro_rows<kRows, 1>(rows, kc, a, lda, bp, t, kNR, add, later);
  else micro_rows<kRows, 2>(rows, kc, a, lda, bp, t, kNR, add, later);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(c + i * ldc, t + i * kNR, static_cast<size_t>(cols) * 4);
}

// ---- packing: [rows][k] or [k][rows] -> [k][W], rows beyond the matrix as zeros ----

// With W = 6 writes two floats past the panel; panels are written in order.
template <int W, class T>
PLM_INLINE void pack_k_contiguous(const T* a, int64_t ld, int64_t rows, int64_t kc, float* out) {
  int64_t k = 0;
#if PLM_VECTOR_BYTES >= 32
  if (rows == W)
    for (; k + 16 <= kc;
         k += 16)  // whole lines of float32: rows whose distance is a power of two push each other out of L1
      for (int g = 0; g < W; g += 8) {
        for (int i = 0; i < 8 && g + i < W; ++i)
          __builtin_prefetch(a + (W + g + i) * ld + k);  // the rows of the next panel
        for (int half = 0; half < 16; half += 8) {
          v8f r[8];
#pragma GCC unroll 8
          for (int i = 0; i < 8; ++i) r[i] = g + i < W ? load8(a + (g + i) * ld + k + half) : v8f{};
          transpose8(r);
#pragma GCC unroll 8
          for (int i = 0; i < 8; ++i)
            __builtin_memcpy(out + (k + half + i) * W + g, &r[i], g > 0 && W - g == 4 ? 16 : 32);
        }
      }
#endif
  for (; k < kc; ++k)
    for (int64_t i = 0; i < W; ++i) out[k * W + i] = i < rows ? to_float(a[i * ld + k]) : 0.f;
}
// G neighbouring full panels at once: each row k is read in one run of G * W elements.
template <int W, int G, class T>
PLM_INLINE void pack_k_strided(const T* a, int64_t ld, int64_t kc, float* out, int64_t panel) {
  constexpr int kAhead = 12;
  for (int64_t k = 0; k < kc; ++k) {
#pragma GCC unroll 8
    for (int c = 0; c < G * W; c += 64 / sizeof(T)) __builtin_prefetch(a + (k + kAhead) * ld + c);
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 32
      for (int i = 0; i < W; ++i) out[g * panel + k * W + i] = to_float(a[k * ld + g * W + i]);
  }
}
template <int W, class T>
PLM_INLINE void pack(const Operand<T>& o, int64_t x, int64_t n, int64_t k, int64_t kc, float* out) {
  const int64_t panel = W * kc;
  int64_t i = 0;
  if (!o.k_contiguous) {
    constexpr int G = W == kMR ? 8 : 4;
    for (; i + G * W <= n; i += G * W, out += G * panel)
      pack_k_strided<W, G>(o.p + k * o.ld + x + i, o.ld, kc, out, panel);
    for (; i + W <= n; i += W, out += panel)
      pack_k_strided<W, 1>(o.p + k * o.ld + x + i, o.ld, kc, out, panel);
    if (i < n)
      for (int64_t q = 0; q < kc; ++q)
        for (int64_t r = 0; r < W; ++r)
          out[q * W + r] = i + r < n ? to_float(o.p[(k + q) * o.ld + x + i + r]) : 0.f;
    return;
  }
  for (; i < n; i += W, out += panel)
    pack_k_contiguous<W>(o.p + (x + i) * o.ld + k, o.ld, min_of(W, n - i), kc, out);
}

// Depth of a block of k: an even split of K, so that an element's sum has one order for a given K.
PLM_INLINE int64_t depth_of(int64_t K) {
  return ceil_div(ceil_div(K, ceil_div(K > 0 ? K : 1, kDepth)), 8) * 8;
}

// What the call for row i fetches of the panel behind b, so that all calls of a tile's rows bring it whole.
PLM_INLINE const float* slice_of(const float* next, const float* b, int64_t i, int64_t kc) {
  if constexpr (kF != 16) return next + 32 * i;
  return i < 2 * kMR ? next + i / kMR * kc * 16 : b;
}

// One tile on the own engine. `packed`: the tile's columns of B were packed before, [n / kNR][K][kNR].
template <class TA, class TB>
static void own_tile(int64_t m0, int64_t m, int64_t n0, int64_t n, int64_t K, const Operand<TA>& A,
                     const Operand<TB>& B, const float* packed, float* C, int64_t ldc, float* space) {
  const int64_t KC = depth_of(K),
                group =
                    B.k_contiguous ? kNR : 4 * kNR;  // columns of B that are packed just before they are used
  float *ap = space, *bb = space + kPackedA;
  // Packing A costs more than it brings when few columns follow, or where its rows stay in L1 for a whole
  // panel.
  const bool rows_in_place =
      std::is_same_v<TA, float> && A.k_contiguous && (kF == 16 || n <= 2 * kGemmColumns);
  for (int64_t k = 0; k < K; k += KC) {
    const int64_t kc = min_of(KC, K - k);
    for (int64_t i0 = 0; i0 < m; i0 += kGemmRows) {
      const int64_t mc = min_of(kGemmRows, m - i0);
      if (!rows_in_place) pack<kMR>(A, m0 + i0, mc, k, kc, ap);
      for (int64_t j = 0; j < n; j += kNR) {
        if (!packed && i0 == 0 && j % group == 0)
          pack<kNR>(B, n0 + j, min_of(group, n - j), k, kc, bb + j * kc);
        const float* b = packed ? packed + j * K + k * kNR : bb + j * kc;
        float* c = C + i0 * ldc + j;
        const int64_t cols = min_of(kNR, n - j);
        const float* next = packed ? b + (j + kNR < n ? kNR * K : 0) : b;
        for (int64_t i = 0; i < mc; i += kMR) {
          const int64_t rows = min_of(kMR, mc - i);
          if constexpr (std::is_same_v<TA, float>)
            if (rows_in_place) {
              const float* a = A.p + (m0 + i0 + i) * A.ld + k;
              const float* later = kF == 16 && j == 0 && kc == A.ld
                                       ? a + kMR * A.ld
                                       : slice_of(next, b, i, kc);  // rows on their first use
              micro_edge<true>(rows, cols, kc, a, A.ld, b, c + i * ldc, ldc, k > 0, later);
              continue;
            }
          micro_edge<false>(rows, cols, kc, ap + i * kc, kMR, b, c + i * ldc, ldc, k > 0,
                            slice_of(next, b, i, kc));
        }
      }
    }
  }
}

struct Tiles {
  int64_t m, n, rows, columns;  // tile height and width; how many of them
};
PLM_INLINE Tiles tiles_of(int64_t M, int64_t N) {
  const int64_t rows = ceil_div(M, kGemmTile), m = ceil_div(ceil_div(M, rows > 0 ? rows : 1), kMR) * kMR;
  int64_t n = kGemmTile;
  while (n > kGemmColumns && rows * ceil_div(N, n) < 4) n /= 2;
  return {m, n, rows > 0 ? ceil_div(M, m) : 0, ceil_div(N, n)};
}
// With B packed beforehand a tile is flat: its worker packs A once for all of its columns.
PLM_INLINE Tiles flat_tiles_of(int64_t M, int64_t N) {
  int64_t n = 2 * kGemmTile, rows = ceil_div(M, kGemmRows);
  if (kF != 16 && rows * ceil_div(N, n) < 8) rows = ceil_div(M, kGemmRows / 2);
  if (rows > 1 && rows * ceil_div(N, n) % 2) ++rows;
  while (n > kGemmColumns && rows * ceil_div(N, n) < 4) n /= 2;
  const int64_t m = ceil_div(ceil_div(M, rows), kMR) * kMR;
  return {m, n, ceil_div(M, m), ceil_div(N, n)};
}

// Whether products of these types run on the own engine.
template <class T, class TB = T>
constexpr bool kOwnEngine =
    !std::is_same_v<T, double> && (!std::is_same_v<T, float> || !std::is_same_v<TB, float> || kF >= 8);

// One tile of C into memory of type T. `space` is a worker's workspace.
template <class T, class TB>
PLM_INLINE void gemm_tile(int64_t m0, int64_t m, int64_t n0, int64_t n, int64_t K, const Operand<T>& A,
                          const Operand<TB>& B, const float* packed, T* C, int64_t ldc, float* space) {
  if (K == 0) {
    for (int64_t i = 0; i < m; ++i) std::memset(C + i * ldc, 0, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  if constexpr (!kOwnEngine<T, TB>) {
    if (!packed) {
      const blas::Op a = A.k_contiguous ? blas::Op::plain : blas::Op::transposed,
                     b = B.k_contiguous ? blas::Op::transposed : blas::Op::plain;
      return blas::gemm(a, b, m, n, K, T(1), A.p + (A.k_contiguous ? m0 * A.ld : m0), A.ld,
                        B.p + (B.k_contiguous ? n0 * B.ld : n0), B.ld, T(0), C, ldc);
    }
  }
  if constexpr (std::is_same_v<T, float>) own_tile(m0, m, n0, n, K, A, B, packed, C, ldc, space);
  else if constexpr (!std::is_same_v<T, double>) {
    float* t = space + kPackedA + kPackedB;
    own_tile(m0, m, n0, n, K, A, B, packed, t, n, space);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) C[i * ldc + j] = from_float<T>(t[i * n + j]);
  }
}

// B[n0, n0 + n) for all k, [n / kNR][K][kNR].
template <class T>
PLM_INLINE const float* pack_strip(const Operand<T>& B, int64_t n0, int64_t n, int64_t K, float* out) {
  const int64_t columns = n * K > (1 << 20) ? 8 * kNR : 4 * kNR;
  parallel_for(ceil_div(n, columns), [&](int64_t t, int) {
    const int64_t j = t * columns;
    pack<kNR>(B, n0 + j, min_of(columns, n - j), 0, K, out + j * K);
  });
  return out;
}

// C [M, n] from its transpose, rows of it ld apart.
PLM_INLINE void turn(const float* from, int64_t ld, int64_t M, int64_t n, float* C, int64_t ldc) {
  for (int64_t i = 0; i < M; i += 8)
    for (int64_t j = 0; j < n; j += 8) {
      if (i + 8 <= M && j + 8 <= n) {
        v8 r[8];
#pragma GCC unroll 8
        for (int q = 0; q < 8; ++q) __builtin_memcpy(&r[q], from + (j + q) * ld + i, sizeof r[q]);
        transpose8(r);
#pragma GCC unroll 8
        for (int q = 0; q < 8; ++q) __builtin_memcpy(C + (i + q) * ldc + j, &r[q], sizeof r[q]);
      } else {
        for (int64_t p = i; p < min_of(i + 8, M); ++p)
          for (int64_t q = j; q < min_of(j + 8, n); ++q) C[p * ldc + q] = from[q * ld + p];
      }
    }
}
// With few rows of A, packing B costs more than it brings: C^T = B A^T, rows of B as they lie against packed
// A, and turned. An element's sum keeps its order.
template <class F>
PLM_INLINE void gemm_transposed(const KernelArgs& args, char* shared, int64_t M, int64_t N, int64_t K,
                                const Operand<float>& A, const Operand<float>& B, float* C, int64_t ldc,
                                F epilogue) {
  const float* packed = pack_strip(A, 0, M, K, reinterpret_cast<float*>(shared));
  const int64_t ld = ceil_div(M, kNR) * kNR;
  parallel_for(ceil_div(N, kGemmColumns), [&](int64_t t, int worker) {
    const int64_t j = t * kGemmColumns, n = min_of(kGemmColumns, N - j);
    float *space = args.worker_as<float>(worker), *turned = space + kPackedA + kPackedB;
    own_tile(j, n, 0, M, K, B, A, packed, turned, ld, space);
    turn(turned, ld, M, n, C + j, ldc);
    epilogue(0, j, M, n);
  });
}

// The whole product; epilogue(i, j, rows, columns) runs after the tile at row i, column j. B is packed by
// `packed`, or here into `shared` (gemm_shared(N, K) bytes), a strip of columns at a time; or A is, into
// gemm_shared(M, K) bytes.
template <class T, class TB, class F>
PLM_INLINE void gemm(const KernelArgs& args, char* shared, int64_t M, int64_t N, int64_t K,
                     const Operand<T>& A, const Operand<TB>& B, const float* packed, T* C, int64_t ldc,
                     F epilogue) {
  if (M == 0 || N == 0) return;
  if constexpr (std::is_same_v<T, float> && kOwnEngine<T, TB> && std::is_same_v<T, TB>)
    if (!packed && A.k_contiguous && B.k_contiguous && K > 0 && gemm_transposes(M, K))
      return gemm_transposed(args, shared, M, N, K, A, B, C, ldc, epilogue);
  const bool pack_here = kOwnEngine<T, TB> && !packed && K > 0 &&
                         M > kGemmRows;  // fewer rows: each worker packs its own columns
  const int64_t strip = pack_here ? gemm_strip(N, K) : N;
  for (int64_t n0 = 0; n0 < N; n0 += strip) {
    const int64_t width = min_of(strip, N - n0);
    const float* b = packed;
    if constexpr (kOwnEngine<T, TB>)
      if (pack_here) b = pack_strip(B, n0, width, K, reinterpret_cast<float*>(shared));
    const Tiles tiles = b ? flat_tiles_of(M, width) : tiles_of(M, width);
    parallel_for(tiles.rows * tiles.columns, [&](int64_t t, int worker) {
      const int64_t i = t % tiles.rows * tiles.m, j = t / tiles.rows * tiles.n;
      const int64_t m = min_of(tiles.m, M - i), n = min_of(tiles.n, width - j);
      gemm_tile(i, m, n0 + j, n, K, A, B, b ? b + j * K : nullptr, C + i * ldc + n0 + j, ldc,
                args.worker_as<float>(worker));
      epilogue(i, n0 + j, m, n);
    });
  }
}
template <class T>
PLM_INLINE void gemm(const KernelArgs& args, char* shared, int64_t M, int64_t N, int64_t K,
                     const Operand<T>& A, const Operand<T>& B, T* C, int64_t ldc) {
  gemm(args, shared, M, N, K, A, B, nullptr, C, ldc, [](int64_t, int64_t, int64_t, int64_t) {});
}

}  // namespace plmcore::PLM_ISA
