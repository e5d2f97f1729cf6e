// Kernels that work row by row, on rows of C elements in a contiguous [rows, C].
//
// By warp: rows of at most 1024 elements, in packs. A warp takes a row and holds it in registers, so each
// element is read once; no shared memory, no barrier. By block: any other row. A block takes a row and reads
// it again, from cache, for every pass; in packs where the addresses allow it. The loop along the row has
// `#pragma unroll 1`: for the newest GPUs the assembler unrolls it by four, which takes up to 56 registers
// and a third of the threads that hide the latency.
#pragma once

#include "device/element.cuh"

namespace plmcore::cuda {

inline constexpr int kRowWarps = 4;        // rows of a block, by warp: blockDim is (32, 4)
inline constexpr int kLongestHeldRow = 1024;
inline constexpr int kRowThreads = 512;    // of a block, by block, at most
// That a processor must hold: 1536 threads, all that some GPUs have, of at most 40 registers.
inline constexpr int kRowBlocks = 3;

// A row over the 32 lanes of a warp: lane l holds the packs l, l + 32, ...; E elements in all. C is a
// multiple of a pack.
template <class T, int E>
struct HeldRow {
  static constexpr int V = kPack<T>, N = E / V;
  using A = Acc<T>;
  A pack[N][V];

  static __device__ __forceinline__ int column(int n) { return (n * 32 + static_cast<int>(threadIdx.x)) * V; }

  // Elements past the row's end read as `fill`.
  __device__ __forceinline__ void load_from(const T* row, int C, A fill) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (column(n) < C) load<V>(row + column(n), pack[n]);
      else
#pragma unroll
        for (int j = 0; j < V; ++j) pack[n][j] = fill;
    }
  }
  __device__ __forceinline__ void store_to(T* row, int C) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
      if (column(n) < C) store<V>(row + column(n), pack[n]);
  }
  // f(element, column) for the elements inside of the row.
  template <class F>
  __device__ __forceinline__ void each(int C, F f) {
#pragma unroll
    for (int n = 0; n < N; ++n)
      if (column(n) < C)
#pragma unroll
        for (int j = 0; j < V; ++j) f(pack[n][j], n, j);
  }
};

// The launch that fits: by_warp(Constant<E>) or by_block(Constant<V>). `packs`: all addresses are multiples
// of 16.
template <class T, class ByWarp, class ByBlock>
cudaError_t for_row_width(int64_t C, bool packs, ByWarp by_warp, ByBlock by_block) {
  constexpr int V = kPack<T>;
  if (!packs || C % V) return by_block(Constant<1>{});
  if constexpr (V > 1) {
    if (C <= kLongestHeldRow / 2) return by_warp(Constant<kLongestHeldRow / 64>{});
    if (C <= kLongestHeldRow) return by_warp(Constant<kLongestHeldRow / 32>{});
  }
  return by_block(Constant<V>{});
}

inline dim3 warp_grid(int64_t rows) {
  return dim3(static_cast<unsigned>((rows + kRowWarps - 1) / kRowWarps));
}
inline dim3 warp_block() { return dim3(32, kRowWarps); }
// Whole warps, enough that a thread has about one pack a pass.
inline dim3 row_block(int64_t packs) {
  const int64_t threads = packs <= 32 ? 32 : (packs + 31) / 32 * 32;
  return dim3(static_cast<unsigned>(threads < kRowThreads ? threads : kRowThreads));
}

}  // namespace plmcore::cuda
