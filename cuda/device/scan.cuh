// Prefix sums of whole numbers, and the positions that a test picks, in order.
#pragma once

#include "device/grid.h"
#include "device/kernel.h"
#include "device/reduce.cuh"

namespace plmcore::cuda {

// The sum over the threads before this one; *total of all. The block has 256 threads.
__device__ __forceinline__ int64_t sum_before(int64_t v, int64_t* total) {
  PLM_SHARED(int64_t, warps, [kThreads / 32]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t sum = v;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int64_t other = __shfl_up_sync(kFullWarp, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  int64_t before = 0, all = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warps[w];
    all += warps[w];
  }
  __syncthreads();  // the next call writes `warps` again
  *total = all;
  return before + sum - v;
}

// One block: each of n numbers becomes the sum of those before it.
template <class N>
__global__ void __launch_bounds__(kThreads) scan_in_place(N* numbers, int64_t n) {
  int64_t carried = 0;
  for (int64_t first = 0; first < n; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    int64_t total;
    const int64_t before = sum_before(i < n ? static_cast<int64_t>(numbers[i]) : 0, &total);
    if (i < n) numbers[i] = static_cast<N>(carried + before);
    carried += total;
  }
}

// ---- positions that a test picks: `Op` has chosen(r) and put(k, r), r being the k-th that is chosen ----

inline constexpr int kPickRounds = 4;
inline constexpr int64_t kPickTile = kPickRounds * kThreads;  // of a block

template <class Op>
__global__ void __launch_bounds__(kThreads) pick_count(Op op, int64_t n, int64_t* counts) {
  int64_t count = 0;
  for (int round = 0; round < kPickRounds; ++round) {
    const int64_t r = blockIdx.x * kPickTile + round * kThreads + threadIdx.x;
    count += r < n && op.chosen(r);
  }
  count = block_reduce<Sum>(count);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}
template <class Op>
__global__ void __launch_bounds__(kThreads) pick_put(Op op, int64_t n, const int64_t* starts) {
  int64_t k = starts[blockIdx.x];
  for (int round = 0; round < kPickRounds; ++round) {
    const int64_t r = blockIdx.x * kPickTile + round * kThreads + threadIdx.x;
    const bool chosen = r < n && op.chosen(r);
    int64_t total;
    const int64_t before = sum_before(chosen, &total);
    if (chosen) op.put(k + before, r);
    k += total;
  }
}

inline int64_t pick_tiles(int64_t n) { return (n + kPickTile - 1) / kPickTile; }
inline size_t pick_bytes(int64_t n) { return static_cast<size_t>(pick_tiles(n)) * sizeof(int64_t); }

// `counts` has room for pick_bytes(n).
template <class Op>
const char* pick(const KernelArgs& args, const Op& op, int64_t n, int64_t* counts) {
  if (n == 0) return nullptr;
  const int64_t tiles = pick_tiles(n);
  if (tiles >> 31) return "2^41 positions and more are not on this device yet";
  const dim3 grid(static_cast<unsigned>(tiles)), block(kThreads);
  const cudaStream_t stream = stream_of(args);
  cudaError_t error = launch<pick_count<Op>>(grid, block, 0, stream, op, n, counts);
  if (!error) error = launch<scan_in_place<int64_t>>(dim3(1), block, 0, stream, counts, tiles);
  if (!error) error = launch<pick_put<Op>>(grid, block, 0, stream, op, n, counts);
  return problem(error);
}

}  // namespace plmcore::cuda
