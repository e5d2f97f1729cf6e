// C[M, N] = op(A) op(B) in tiles on the pool, row-major, with an epilogue on each finished tile while it is in cache.
//
// Two engines behind one interface. The own one packs blocks of A to [k][kMR] and of B to [k][kNR] and runs a register
// kernel of kMR x kNR; it takes any float type, converting while packing. On 32-byte vectors it beats MKL; on others
// float32 and float64 tiles go to the BLAS. Either way a tile's bits depend on M, N, K alone, never on the threads.
#pragma once

#include "blas/blas.h"
#include "kernels/gemm_space.h"
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

constexpr int kMR = kF == 16 ? 12 : 6, kNR = 2 * kF;  // kMR * 2 accumulators, two vectors of B, one of A

PLM_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
PLM_INLINE int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// A matrix seen as rows along `x` and columns along the summed index k.
template <class T>
struct Operand {
  const T* p;
  int64_t ld;
  bool k_contiguous;  // element (x, k) at p[x * ld + k]; otherwise at p[k * ld + x]
};

// acc[R][2 vectors] += ap[kc][kMR] * bp[kc][kNR], then into C (added to it when `add`).
template <int R>
[[gnu::noinline]] static void micro(int64_t kc, const float* __restrict ap, const float* __restrict bp, float* __restrict c, int64_t ldc,
                                    bool add) {
  vf acc[R][2];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    __builtin_prefetch(c + i * ldc + kNR - 1, 1);
    acc[i][0] = acc[i][1] = vf{};
  }
#pragma GCC unroll 4
  for (int64_t k = 0; k < kc; ++k, ap += kMR, bp += kNR) {
    const vf b0 = load(bp), b1 = load(bp + kF);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const vf a = splat(ap[i]);
      acc[i][0] += a * b0;
      acc[i][1] += a * b1;
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    float* row = c + i * ldc;
    store(row, add ? acc[i][0] + load(row) : acc[i][0]);
    store(row + kF, add ? acc[i][1] + load(row + kF) : acc[i][1]);
  }
}

template <int R = kMR>
PLM_INLINE void micro_rows(int64_t rows, int64_t kc, const float* ap, const float* bp, float* c, int64_t ldc, bool add) {
  if constexpr (R > 1)
    if (rows < R) return micro_rows<R - 1>(rows, kc, ap, bp, c, ldc, add);
  micro<R>(kc, ap, bp, c, ldc, add);
}
// A block at the right edge goes through a full-width buffer.
static void micro_edge(int64_t rows, int64_t cols, int64_t kc, const float* ap, const float* bp, float* c, int64_t ldc, bool add) {
  if (cols == kNR) return micro_rows(rows, kc, ap, bp, c, ldc, add);
  alignas(64) float t[kMR * kNR];
  if (add)
    for (int64_t i = 0; i < rows; ++i) std::memcpy(t + i * kNR, c + i * ldc, static_cast<size_t>(cols) * 4);
  micro_rows(rows, kc, ap, bp, t, kNR, add);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(c + i * ldc, t + i * kNR, static_cast<size_t>(cols) * 4);
}

// ---- packing: [rows][k] or [k][rows] -> [k][W], rows beyond the matrix as zeros ----

#if PLM_VECTOR_BYTES == 32
PLM_INLINE void transpose8(vf r[8]) {
  vf t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shuffle(r[i], r[i + 1], vi{0, 8, 1, 9, 4, 12, 5, 13});
    t[i + 1] = __builtin_shuffle(r[i], r[i + 1], vi{2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = __builtin_shuffle(t[i + j], t[i + j + 2], vi{0, 1, 8, 9, 4, 5, 12, 13});
      u[i + 2 * j + 1] = __builtin_shuffle(t[i + j], t[i + j + 2], vi{2, 3, 10, 11, 6, 7, 14, 15});
    }
  for (int j = 0; j < 4; ++j) {
    r[j] = __builtin_shuffle(u[j], u[j + 4], vi{0, 1, 2, 3, 8, 9, 10, 11});
    r[j + 4] = __builtin_shuffle(u[j], u[j + 4], vi{4, 5, 6, 7, 12, 13, 14, 15});
  }
}
#endif

// May write up to kF floats past the panel when W is not a multiple of kF; panels are written in order.
template <int W, class T>
PLM_INLINE void pack_k_contiguous(const T* a, int64_t ld, int64_t rows, int64_t kc, float* out) {
  int64_t k = 0;
#if PLM_VECTOR_BYTES == 32
  if (rows == W)
    for (; k + 8 <= kc; k += 8)
      for (int g = 0; g < W; g += 8) {
        vf r[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) r[i] = g + i < W ? load(a + (g + i) * ld + k) : vf{};
        transpose8(r);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) store(out + (k + i) * W + g, r[i]);
      }
#endif
  for (; k < kc; ++k)
    for (int64_t i = 0; i < W; ++i) out[k * W + i] = i < rows ? to_float(a[i * ld + k]) : 0.f;
}
// G neighbouring full panels at once: each row k is read in one run of G * W elements.
template <int W, int G, class T>
PLM_INLINE void pack_k_strided(const T* a, int64_t ld, int64_t kc, float* out, int64_t panel) {
  for (int64_t k = 0; k < kc; ++k)
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 32
      for (int i = 0; i < W; ++i) out[g * panel + k * W + i] = to_float(a[k * ld + g * W + i]);
}
template <int W, class T>
PLM_INLINE void pack(const Operand<T>& o, int64_t x, int64_t n, int64_t k, int64_t kc, float* out) {
  const int64_t panel = W * kc;
  int64_t i = 0;
  if (!o.k_contiguous) {
    constexpr int G = W == kMR ? 8 : 4;
    for (; i + G * W <= n; i += G * W, out += G * panel) pack_k_strided<W, G>(o.p + k * o.ld + x + i, o.ld, kc, out, panel);
    for (; i + W <= n; i += W, out += panel) pack_k_strided<W, 1>(o.p + k * o.ld + x + i, o.ld, kc, out, panel);
    if (i < n)
      for (int64_t q = 0; q < kc; ++q)
        for (int64_t r = 0; r < W; ++r) out[q * W + r] = i + r < n ? to_float(o.p[(k + q) * o.ld + x + i + r]) : 0.f;
    return;
  }
  for (; i < n; i += W, out += panel) pack_k_contiguous<W>(o.p + (x + i) * o.ld + k, o.ld, min_of(W, n - i), kc, out);
}

// Depth of a block of k: an even split of K, so that an element's sum has one order for a given K.
PLM_INLINE int64_t depth_of(int64_t K) { return ceil_div(ceil_div(K, ceil_div(K > 0 ? K : 1, kGemmDepth)), 8) * 8; }

// One tile on the own engine. `packed`: B was packed before, [N / kNR][K][kNR].
template <class TA, class TB>
static void own_tile(int64_t m0, int64_t m, int64_t n0, int64_t n, int64_t K, const Operand<TA>& A, const Operand<TB>& B,
                     const float* packed, float* C, int64_t ldc, float* space) {
  const int64_t KC = depth_of(K);
  float *ap = space, *bb = space + kPackedA;
  for (int64_t k = 0; k < K; k += KC) {
    const int64_t kc = min_of(KC, K - k);
    for (int64_t i0 = 0; i0 < m; i0 += kGemmRows) {
      const int64_t mc = min_of(kGemmRows, m - i0);
      pack<kMR>(A, m0 + i0, mc, k, kc, ap);
      for (int64_t j = 0; j < n; j += kNR) {
        if (!packed && i0 == 0 && j % (4 * kNR) == 0) pack<kNR>(B, n0 + j, min_of(4 * kNR, n - j), k, kc, bb + j * kc);
        const float* b = packed ? packed + (n0 + j) * K + k * kNR : bb + j * kc;
        float* c = C + i0 * ldc + j;
        for (int64_t i = 0; i < mc; i += kMR)
          micro_edge(min_of(kMR, mc - i), min_of(kNR, n - j), kc, ap + i * kc, b, c + i * ldc, ldc, k > 0);
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
  while (n > 96 && rows * ceil_div(N, n) < 4) n /= 2;
  return {m, n, rows > 0 ? ceil_div(M, m) : 0, ceil_div(N, n)};
}

// One tile of C into memory of type T. `space` is a worker's workspace.
template <class T>
PLM_INLINE void gemm_tile(int64_t m0, int64_t m, int64_t n0, int64_t n, int64_t K, const Operand<T>& A, const Operand<T>& B,
                          const float* packed, T* C, int64_t ldc, float* space) {
  if (K == 0) {
    for (int64_t i = 0; i < m; ++i) std::memset(C + i * ldc, 0, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  if constexpr (std::is_same_v<T, double> || (std::is_same_v<T, float> && kF != 8)) {
    if (!packed) {
      const blas::Op a = A.k_contiguous ? blas::Op::plain : blas::Op::transposed,
                     b = B.k_contiguous ? blas::Op::transposed : blas::Op::plain;
      return blas::gemm(a, b, m, n, K, T(1), A.p + (A.k_contiguous ? m0 * A.ld : m0), A.ld, B.p + (B.k_contiguous ? n0 * B.ld : n0), B.ld,
                        T(0), C, ldc);
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

// The whole product; epilogue(i, j, rows, columns) runs after the tile at row i, column j.
template <class T, class F>
PLM_INLINE void gemm(const KernelArgs& args, int64_t M, int64_t N, int64_t K, const Operand<T>& A, const Operand<T>& B, const float* packed,
                     T* C, int64_t ldc, F epilogue) {
  const Tiles tiles = tiles_of(M, N);
  parallel_for(tiles.rows * tiles.columns, [&](int64_t t, int worker) {
    const int64_t i = t % tiles.rows * tiles.m, j = t / tiles.rows * tiles.n, m = min_of(tiles.m, M - i), n = min_of(tiles.n, N - j);
    gemm_tile(i, m, j, n, K, A, B, packed, C + i * ldc + j, ldc, args.worker_as<float>(worker));
    epilogue(i, j, m, n);
  });
}
template <class T>
PLM_INLINE void gemm(const KernelArgs& args, int64_t M, int64_t N, int64_t K, const Operand<T>& A, const Operand<T>& B, T* C, int64_t ldc) {
  gemm(args, M, N, K, A, B, nullptr, C, ldc, [](int64_t, int64_t, int64_t, int64_t) {});
}

}  // namespace plmcore::PLM_ISA
