// The largest (smallest) element along an axis and its first position; NaN counts as the largest (smallest)
// of all. x is [outer, n, inner]. Shared by max, min and argmax.
//   rows     inner is 1: a block takes a row
//   columns  a thread takes a column; neighbours read neighbours
// Traffic: one read of x.
#pragma once

#include "device/grid.h"
#include "device/kernel.h"
#include "device/reduce.cuh"
#include "device/rows.cuh"

namespace plmcore::cuda {

struct Larger {
  template <class A> __device__ static bool better(A a, A b) { return a > b || (a != a && b == b); }
};
struct Smaller {
  template <class A> __device__ static bool better(A a, A b) { return a < b || (a != a && b == b); }
};

// An element and its place, a P; -1 where there is none yet.
template <class Order, class A, class P = int64_t>
struct Best {
  A value = 0;
  P at = -1;

  __device__ __forceinline__ void take(A v, P place) {
    if (place < 0) return;
    const bool better = at < 0 || Order::better(v, value);
    if (better || (!Order::better(value, v) && place < at)) value = v, at = place;
  }
  __device__ __forceinline__ void take_from_warp() {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const A v = __shfl_xor_sync(kFullWarp, value, step);
      const P place = __shfl_xor_sync(kFullWarp, at, step);
      take(v, place);
    }
  }
};

// grid (rows), block (32 .. 512); y may be null
template <class Order, class T>
__global__ void __launch_bounds__(kRowThreads)
    extremum_of_rows(const T* __restrict__ x, T* __restrict__ y, int64_t* __restrict__ index, int64_t n) {
  using A = Acc<T>;
  PLM_SHARED(A, values, [32]);
  PLM_SHARED(int64_t, places, [32]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const T* row = x + blockIdx.x * n;
  Best<Order, A> best;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) best.take(widen(row[i]), i);
  best.take_from_warp();
  if (lane == 0) values[warp] = best.value, places[warp] = best.at;
  __syncthreads();
  if (warp > 0) return;  // no barrier follows
  best = {};
  if (lane < warps) best.value = values[lane], best.at = places[lane];
  best.take_from_warp();
  if (lane > 0) return;
  if (y) y[blockIdx.x] = row[best.at];
  index[blockIdx.x] = best.at;
}
// A thread an output; n columns of `inner`.
template <class Order, class T>
__global__ void __launch_bounds__(kThreads)
    extremum_of_columns(const T* __restrict__ x, T* __restrict__ y, int64_t* __restrict__ index,
                        int64_t outputs, int64_t n, int64_t inner) {
  for (int64_t o = first_of_thread(); o < outputs; o += threads_of_grid()) {
    const T* column = x + o / inner * n * inner + o % inner;
    Best<Order, Acc<T>> best;
    for (int64_t j = 0; j < n; ++j) best.take(widen(column[j * inner]), j);
    if (y) y[o] = column[best.at * inner];
    index[o] = best.at;
  }
}

// `y` may be null.
template <class Order>
const char* extremum(const KernelArgs& args, void* y, int64_t* index) {
  const View& x = args.in[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t n = x.size[axis], inner = x.inner(axis), outputs = x.outer(axis) * inner;
  if (outputs == 0) return nullptr;
  if (n == 0) return "the axis has no elements";
  if (inner == 1 && outputs >> 31) return "2^31 rows and more are not on this device yet";
  return for_any(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (inner == 1)
      return problem(launch<extremum_of_rows<Order, T>>(dim3(static_cast<unsigned>(outputs)), row_block(n), 0,
                                                        stream_of(args), x.as<T>(), static_cast<T*>(y), index,
                                                        n));
    return problem(launch<extremum_of_columns<Order, T>>(grid_for(outputs), dim3(kThreads), 0,
                                                         stream_of(args), x.as<T>(), static_cast<T*>(y),
                                                         index, outputs, n, inner));
  });
}

}  // namespace plmcore::cuda
