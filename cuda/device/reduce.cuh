// Sums and maxima over a warp or a block; every thread gets the result. The order is fixed by the block's
// size, so a result has the same bits on every run.
#pragma once

#include "device/cuda.cuh"

namespace plmcore::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

struct Sum {
  template <class A> __device__ A operator()(A a, A b) const { return a + b; }
  template <class A> __device__ static A identity() { return A(0); }
};
struct Max {
  template <class A> __device__ A operator()(A a, A b) const { return std::fmax(a, b); }
  template <class A> __device__ static A identity() { return -static_cast<A>(INFINITY); }
};

template <class F, class A>
__device__ __forceinline__ A warp_reduce(A v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = F()(v, __shfl_xor_sync(kFullWarp, v, step));
  return v;
}

// The block is one-dimensional, whole warps, at most 32 of them.
template <class F, class A>
__device__ __forceinline__ A block_reduce(A v) {
  PLM_SHARED(A, parts, [32]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  v = warp_reduce<F>(v);
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  v = warp_reduce<F>(lane < warps ? parts[lane] : F::template identity<A>());
  __syncthreads();  // the next call writes `parts` again
  return v;
}

}  // namespace plmcore::cuda
