// y = exp(x - max) / sum(exp(x - max)) over the last axis.   x [rows, C]
// By warp or by block, a row each (device/rows.cuh). By warp x is read once. By block one pass finds the
// maximum and the sum together (the sum is rescaled when the maximum grows), a second one writes: two reads,
// the second from cache.
//
// Backward: dx = y * (dy - sum(dy * y)).
#include "device/kernel.h"
#include "device/reduce.cuh"
#include "device/rows.cuh"

namespace plmcore::cuda {

namespace {

// The maximum of nothing but -inf is taken as 0: exp(-inf - 0) is 0 where exp(-inf + inf) is no number. A
// thread that saw only masked elements then adds 0 to the sum; a row of nothing else is 0 / 0, no number, as
// by the formula.
template <class A>
__device__ __forceinline__ A finite_max(A m) {
  return m == -static_cast<A>(INFINITY) ? A(0) : m;
}

// What a sum of exp(x - before) is multiplied by to become one of exp(x - now); `before` is -inf where
// nothing was added yet.
template <class A>
__device__ __forceinline__ A rescale(A before, A now) {
  return before == -static_cast<A>(INFINITY) ? A(0) : std::exp(before - now);
}

// grid (rows / 4), block (32, 4)
template <class T, int E>
__global__ void __launch_bounds__(32 * kRowWarps)
    softmax_by_warp(const T* __restrict__ x, T* __restrict__ y, int64_t rows, int C) {
  using A = Acc<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
  if (row >= rows) return;  // a whole warp leaves, and no barrier follows
  HeldRow<T, E> held;
  held.load_from(x + row * C, C, -static_cast<A>(INFINITY));
  A most = -static_cast<A>(INFINITY), sum = 0;
  held.each(C, [&](A v, int, int) { most = std::fmax(most, v); });
  most = finite_max(warp_reduce<Max>(most));
  held.each(C, [&](A& v, int, int) {
    v = std::exp(v - most);
    sum += v;
  });
  const A scale = A(1) / warp_reduce<Sum>(sum);
  held.each(C, [&](A& v, int, int) { v *= scale; });
  held.store_to(y + row * C, C);
}

// grid (rows), block (32 .. 512)
template <class T, int V>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    softmax_by_block(const T* __restrict__ x, T* __restrict__ y, int64_t C) {
  using A = Acc<T>;
  const int64_t row = blockIdx.x, begin = static_cast<int64_t>(threadIdx.x) * V,
                step = static_cast<int64_t>(blockDim.x) * V;
  x += row * C;
  y += row * C;
  A v[V], most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
    A now = most;
#pragma unroll
    for (int j = 0; j < V; ++j) now = std::fmax(now, v[j]);
    sum *= rescale(most, finite_max(now));
#pragma unroll
    for (int j = 0; j < V; ++j) sum += std::exp(v[j] - finite_max(now));
    most = now;
  }
  const A of_row = finite_max(block_reduce<Max>(most));
  const A scale = A(1) / block_reduce<Sum>(sum * rescale(most, of_row));
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = std::exp(v[j] - of_row) * scale;
    store<V>(y + i, v);
  }
}

template <class T, int E>
__global__ void __launch_bounds__(32 * kRowWarps)
    softmax_grad_by_warp(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx, int64_t rows,
                         int C) {
  using A = Acc<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
  if (row >= rows) return;
  HeldRow<T, E> p, d;
  p.load_from(y + row * C, C, A(0));
  d.load_from(dy + row * C, C, A(0));
  A sum = 0;
  p.each(C, [&](A v, int n, int j) { sum += v * d.pack[n][j]; });
  sum = warp_reduce<Sum>(sum);
  d.each(C, [&](A& v, int n, int j) { v = p.pack[n][j] * (v - sum); });
  d.store_to(dx + row * C, C);
}

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    softmax_grad_by_block(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx, int64_t C) {
  using A = Acc<T>;
  const int64_t row = blockIdx.x, begin = static_cast<int64_t>(threadIdx.x) * V,
                step = static_cast<int64_t>(blockDim.x) * V;
  y += row * C;
  dy += row * C;
  dx += row * C;
  A p[V], d[V], sum = 0;
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(y + i, p);
    load<V>(dy + i, d);
#pragma unroll
    for (int j = 0; j < V; ++j) sum += p[j] * d[j];
  }
  sum = block_reduce<Sum>(sum);
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(y + i, p);
    load<V>(dy + i, d);
#pragma unroll
    for (int j = 0; j < V; ++j) d[j] = p[j] * (d[j] - sum);
    store<V>(dx + i, d);
  }
}

}  // namespace

PLM_KERNEL(softmax) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const cudaStream_t stream = stream_of(args);
  if (rows == 0 || C == 0) return nullptr;
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* x = args.in[0].as<T>();
    T* y = args.out[0].as<T>();
    return problem(for_row_width<T>(
        C, aligned(x, y),
        [&](auto E) {
          return launch<softmax_by_warp<T, decltype(E)::value>>(warp_grid(rows), warp_block(), 0, stream, x,
                                                                y, rows, C);
        },
        [&](auto V) {
          constexpr int kV = decltype(V)::value;
          return launch<softmax_by_block<T, kV>>(dim3(static_cast<unsigned>(rows)), row_block(C / kV), 0,
                                                 stream, x, y, C);
        }));
  });
}

// y, dy -> dx
PLM_KERNEL(softmax_grad) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const cudaStream_t stream = stream_of(args);
  if (rows == 0 || C == 0) return nullptr;
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *y = args.in[0].as<T>(), *dy = args.in[1].as<T>();
    T* dx = args.out[0].as<T>();
    return problem(for_row_width<T>(
        C, aligned(y, dy, dx),
        [&](auto E) {
          return launch<softmax_grad_by_warp<T, decltype(E)::value>>(warp_grid(rows), warp_block(), 0, stream,
                                                                     y, dy, dx, rows, C);
        },
        [&](auto V) {
          constexpr int kV = decltype(V)::value;
          return launch<softmax_grad_by_block<T, kV>>(dim3(static_cast<unsigned>(rows)), row_block(C / kV), 0,
                                                      stream, y, dy, dx, C);
        }));
  });
}

}  // namespace plmcore::cuda
