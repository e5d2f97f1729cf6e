// Sums over the rows of [rows, C], two steps: a block sums 32 columns of one chunk of rows, then the chunks
// are added in order. The chunks depend on the number of rows alone (core/kernel_args.h), so the bits do not
// depend on the device.
#pragma once

#include "core/kernel_args.h"
#include "device/element.cuh"

namespace plmcore::cuda {

inline constexpr int kColumns = 32, kRowLanes = 8;  // of a block: (32, 8) threads

inline dim3 column_grid(int64_t C, int64_t chunks) {
  return dim3(static_cast<unsigned>((C + kColumns - 1) / kColumns), static_cast<unsigned>(chunks));
}
// Part [chunks][sums][C] over the rows of x.
inline Workspace column_sums_workspace(const View& x, int64_t sums) {
  return {.shared = static_cast<size_t>(row_chunks(x.rows()) * sums * x.last()) *
                    (x.dtype == DType::float64 ? 8 : 4)};
}
inline dim3 column_block() { return dim3(kColumns, kRowLanes); }

// core/kernel_args.h has this one, but for the host.
__device__ __forceinline__ int64_t first_row(int64_t rows, int64_t chunks, int64_t chunk) {
  return rows * chunk / chunks;
}

// The kernel's body. `term(row, column, values)` gives the K values that an element adds to K sums; part is
// [chunks][K][C]. Thread (x, y) goes down column x over every eighth row; the eight are then added in order.
template <int K, class A, class Term>
__device__ __forceinline__ void chunk_column_sums(int64_t rows, int64_t C, A* part, Term term) {
  PLM_SHARED(A, lanes, [kRowLanes][K][kColumns]);
  const int64_t chunks = gridDim.y, chunk = blockIdx.y,
                column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  A sum[K] = {};
  if (column < C) {
    const int64_t end = first_row(rows, chunks, chunk + 1);
    for (int64_t row = first_row(rows, chunks, chunk) + threadIdx.y; row < end; row += kRowLanes) {
      A values[K];
      term(row, column, values);
#pragma unroll
      for (int k = 0; k < K; ++k) sum[k] += values[k];
    }
  }
#pragma unroll
  for (int k = 0; k < K; ++k) lanes[threadIdx.y][k][threadIdx.x] = sum[k];
  __syncthreads();
  if (threadIdx.y == 0 && column < C) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      A total = 0;
      for (int y = 0; y < kRowLanes; ++y) total += lanes[y][k][threadIdx.x];
      part[(chunk * K + k) * C + column] = total;
    }
  }
}

// out[c] = sum over the chunks of part[chunk][k][c]. Thread (x, y) takes every eighth chunk of column x; the
// eight are then added in order.
template <class T>
__global__ void __launch_bounds__(kColumns* kRowLanes)
    add_chunks(const Acc<T>* part, int64_t chunks, int64_t stride, int64_t C, T* out) {
  using A = Acc<T>;
  PLM_SHARED(A, lanes, [kRowLanes][kColumns]);
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  A sum = 0;
  if (column < C)
    for (int64_t k = threadIdx.y; k < chunks; k += kRowLanes) sum += part[k * stride + column];
  lanes[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= C) return;  // no barrier follows
  A total = 0;
  for (int y = 0; y < kRowLanes; ++y) total += lanes[y][threadIdx.x];
  out[column] = narrow<T>(total);
}
template <class T>
cudaError_t launch_add_chunks(const Acc<T>* part, int64_t chunks, int64_t stride, int64_t C, T* out,
                              cudaStream_t stream) {
  return launch<add_chunks<T>>(column_grid(C, 1), column_block(), 0, stream, part, chunks, stride, C, out);
}

}  // namespace plmcore::cuda
