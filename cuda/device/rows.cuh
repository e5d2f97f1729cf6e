// Kernels that work row by row, on rows of C elements in a contiguous [rows, C].
//
// An op is a struct: its operands, and `row<Row>(r)`, which computes row r by the threads of one Row.
//   by warp   up to 1024 elements: a warp takes a row and holds it in registers; no shared memory, no barrier
//   by block  up to 4096 elements: a block takes a row and holds it in registers
//             any longer row, and float64: a block reads it again, from cache, in every pass
// A row is read in packs of 16 bytes whatever its start and width. Packs lie at multiples of 16 bytes, so
// that the first one may begin before the row and the last one end behind it: of these the elements go one by
// one.
#pragma once

#include "device/kernel.h"
#include "device/reduce.cuh"

namespace plmcore::cuda {

inline constexpr int kRowWarps = 4;  // rows of a block, by warp: blockDim is (32, 4)
inline constexpr int kWarpElements = 32;  // of a lane, by warp, at most
inline constexpr int kBlockElements = 8;  // of a thread that holds its part of a row, by block
inline constexpr int kRowThreads = 512;  // of a block, by block, at most
// That a processor must hold: 1024 threads of at most 64 registers.
inline constexpr int kRowBlocks = 2;

// The part of a row that a thread has: kHeld packs in registers, or with 0 any number, read again in each
// pass.
template <class T, int kHeld, bool kByWarp>
struct RowOf {
  static constexpr bool kHolds = kHeld > 0;
  static constexpr int V = kPack<T>, N = kHolds ? kHeld : 1;
  using A = Acc<T>;
  using Held = A[N][V];
  int C, shift;

  // Packs are those of the row at `like`; other operands that lie otherwise are read one by one.
  __device__ __forceinline__ RowOf(const T* like, int width)
      : C(width), shift(V == 1 ? 0 : static_cast<int>(reinterpret_cast<uintptr_t>(like) % 16 / sizeof(T))) {}

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x); }
  static __device__ __forceinline__ int lanes() { return kByWarp ? 32 : static_cast<int>(blockDim.x); }

  // f(n, column) for the packs of this thread that touch the row; n is the place in registers.
  template <class F>
  __device__ __forceinline__ void each(F f) const {
    if constexpr (kHeld > 0) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const int column = (n * lanes() + lane()) * V - shift;
        if (column < C) f(n, column);
      }
    } else {
#pragma unroll 1
      for (int column = lane() * V - shift; column < C; column += lanes() * V) f(0, column);
    }
  }
  // f(j) for the elements of a pack that are inside of the row.
  template <class F>
  __device__ __forceinline__ void inside(int column, F f) const {
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (V == 1 || static_cast<unsigned>(column + j) < static_cast<unsigned>(C)) f(j);
  }
  __device__ __forceinline__ bool whole(const void* p, int column) const {
    return column >= 0 && column + V <= C && (V == 1 || reinterpret_cast<uintptr_t>(p) % 16 == 0);
  }
  __device__ __forceinline__ void read(const T* row, int column, A (&to)[V]) const {
    if (whole(row + column, column)) load<V>(row + column, to);
    else {
#pragma unroll
      for (int j = 0; j < V; ++j)
        to[j] = static_cast<unsigned>(column + j) < static_cast<unsigned>(C) ? widen(row[column + j]) : A(0);
    }
  }
  // In a later pass: held rows are there.
  __device__ __forceinline__ void read_again(const T* row, int column, A (&to)[V]) const {
    if constexpr (kHeld == 0) read(row, column, to);
  }
  __device__ __forceinline__ void write(T* row, int column, const A (&from)[V]) const {
    if (whole(row + column, column)) store<V>(row + column, from);
    else inside(column, [&](int j) { row[column + j] = narrow<T>(from[j]); });
  }
  template <class F, class B>
  static __device__ __forceinline__ B reduce(B v) {
    if constexpr (kByWarp) return warp_reduce<F>(v);
    else return block_reduce<F>(v);
  }
  static __device__ __forceinline__ bool first() { return threadIdx.x == 0; }
};

// grid (rows / 4), block (32, 4)
template <class T, int N, class Op>
__global__ void __launch_bounds__(32 * kRowWarps) rows_by_warp(Op op, int64_t rows) {
  const int64_t r = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
  if (r >= rows) return;  // a whole warp leaves, and no barrier follows
  op.template row<RowOf<T, N, true>>(r);
}
// grid (rows), block (32 .. 512)
template <class T, int N, class Op>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks) rows_by_block(Op op) {
  op.template row<RowOf<T, N, false>>(static_cast<int64_t>(blockIdx.x));
}

// Whole warps, a thread for each pack where there are not too many.
inline dim3 row_block(int64_t packs) {
  const int64_t threads = packs <= 32 ? 32 : (packs + 31) / 32 * 32;
  return dim3(static_cast<unsigned>(threads < kRowThreads ? threads : kRowThreads));
}

// The launch that fits the width. `like`: where the packs of row 0 lie. kMost: elements that a lane may hold,
// by warp.
template <int kMost = kWarpElements, class T, class Op>
const char* launch_rows(const KernelArgs& args, const Op& op, const T* like, int64_t rows, int64_t C) {
  constexpr int V = kPack<T>;
  if (rows == 0 || C == 0) return nullptr;
  if (rows >> 31 || C >> 30) return "2^31 rows, or 2^30 columns, and more are not on this device yet";
  const cudaStream_t stream = stream_of(args);
  const int64_t reach =
      C % V || !aligned(like) ? C + V - 1 : C;  // with the elements before a row and behind it
  if constexpr (V > 1) {
    const dim3 warps(static_cast<unsigned>((rows + kRowWarps - 1) / kRowWarps));
    if (reach <= 32 * kMost / 2)
      return problem(
          launch<rows_by_warp<T, kMost / 2 / V, Op>>(warps, dim3(32, kRowWarps), 0, stream, op, rows));
    if (reach <= 32 * kMost)
      return problem(launch<rows_by_warp<T, kMost / V, Op>>(warps, dim3(32, kRowWarps), 0, stream, op, rows));
    if (reach <= kRowThreads * kBlockElements)
      return problem(launch<rows_by_block<T, kBlockElements / V, Op>>(
          dim3(static_cast<unsigned>(rows)), row_block((reach + kBlockElements - 1) / kBlockElements), 0,
          stream, op));
  }
  return problem(launch<rows_by_block<T, 0, Op>>(dim3(static_cast<unsigned>(rows)),
                                                 row_block((reach + V - 1) / V), 0, stream, op));
}

}  // namespace plmcore::cuda
