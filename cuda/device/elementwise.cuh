// y = f(a, b, ...) with broadcasting, for any number of operands and any dtypes. Three ways, in this order:
//   flat   every operand is contiguous like y, or one value: 16-byte packs, the last few elements one by one
//   packs  the innermost merged axis is whole packs in every operand (rows, columns and values repeated)
//   single anything else
// The last two find an operand's place from merged axes (device/axes.h). Traffic: one read of each operand,
// one write of y.
#pragma once

#include <utility>

#include "device/axes.h"
#include "device/grid.h"
#include "device/kernel.h"

namespace plmcore::cuda {

template <class T>
struct Operand {
  const T* data;
  bool repeats;  // one value along the innermost axis
};

template <int V, class T>
__device__ __forceinline__ Pack<T, V> read(const Operand<T>& x, int64_t at) {
  if (!x.repeats) return *reinterpret_cast<const Pack<T, V>*>(x.data + at);
  Pack<T, V> pack;
  const T value = x.data[at];
#pragma unroll
  for (int j = 0; j < V; ++j) pack.at[j] = value;
  return pack;
}
template <int V, class R, class F, class... P>
__device__ __forceinline__ Pack<R, V> each(const F& f, const P&... x) {
  Pack<R, V> y;
#pragma unroll
  for (int j = 0; j < V; ++j) y.at[j] = narrow<R>(static_cast<Acc<R>>(f(widen(x.at[j])...)));
  return y;
}

template <int V, class F, class R, class... T>
__global__ void __launch_bounds__(kThreads, kResident)
    elementwise_flat(F f, R* __restrict__ y, int64_t n, Operand<T>... in) {
  for (int64_t i = first_of_thread() * V; i < n; i += threads_of_grid() * V) {
    if (i + V <= n) *reinterpret_cast<Pack<R, V>*>(y + i) = each<V, R>(f, read<V>(in, in.repeats ? 0 : i)...);
    else
      for (int64_t j = i; j < n; ++j) y[j] = each<1, R>(f, read<1>(in, in.repeats ? 0 : j)...).at[0];
  }
}

template <int V, class R, class F, size_t... K, class... T>
__device__ __forceinline__ Pack<R, V> each_at(const F& f, const int64_t* at, std::index_sequence<K...>,
                                              const Operand<T>&... in) {
  return each<V, R>(f, read<V>(in, at[K])...);
}
template <int V, class F, class R, class... T>
__global__ void __launch_bounds__(kThreads, kResident)
    elementwise_axes(F f, R* __restrict__ y, int64_t packs, Axes<sizeof...(T)> axes, Operand<T>... in) {
  for (int64_t p = first_of_thread(); p < packs; p += threads_of_grid()) {
    int64_t at[sizeof...(T)];
    axes.find(static_cast<uint32_t>(p), at);
    *reinterpret_cast<Pack<R, V>*>(y + p * V) = each_at<V, R>(f, at, std::index_sequence_for<T...>{}, in...);
  }
}

// Elements of a pack: 16 bytes of the widest operand, at most 8.
template <class... T> inline constexpr int kPackOf = [] {
  int least = 8;  // also of bytes: 16 of them take too many registers
  ((least = kPack<T> < least ? kPack<T> : least), ...);
  return least;
}();

template <int N>
bool all_aligned(const View& y, const View* in) {
  bool packs = aligned(y.data);
  for (int k = 0; k < N; ++k) packs = packs && (aligned(in[k].data) || in[k].numel == 1);
  return packs;
}

// The launches are functions of their own: nvcc 13.0 does not get through lambdas over packs of types.
template <int V, class R, class... T, class F, size_t... K>
const char* launch_flat(const KernelArgs& args, const View& y, const View* in, F f,
                        std::index_sequence<K...>) {
  return problem(launch<elementwise_flat<V, F, R, T...>>(
      grid_for((y.numel + V - 1) / V), dim3(kThreads), 0, stream_of(args), f, y.as<R>(), y.numel,
      Operand<T>{in[K].template as<T>(), in[K].numel == 1}...));
}
template <int V, class R, class... T, class F, int N, size_t... K>
const char* launch_axes(const KernelArgs& args, const View& y, const View* in, F f, const Plan<N>& part,
                        const int64_t (&start)[N], std::index_sequence<K...>) {
  const int64_t n = part.count() / V;
  return problem(launch<elementwise_axes<V, F, R, T...>>(
      grid_for(n), dim3(kThreads), 0, stream_of(args), f, y.as<R>() + start[N - 1], n,
      part.template in_packs<N - 1>(V),
      Operand<T>{in[K].template as<T>() + start[K], part.rank == 0 || part.stride[K][0] == 0}...));
}

// Every operand has y's shape or one element.
template <class R, class... T, class F>
const char* elementwise_equal(const KernelArgs& args, const View& y, const View* in, F f) {
  constexpr std::index_sequence_for<T...> places;
  if (y.numel == 0) return nullptr;
  if (all_aligned<sizeof...(T)>(y, in)) return launch_flat<kPackOf<R, T...>, R, T...>(args, y, in, f, places);
  return launch_flat<1, R, T...>(args, y, in, f, places);
}

// `in` gives the shapes and the data of the operands.
template <class R, class... T, class F>
const char* elementwise(const KernelArgs& args, const View& y, const View* in, F f) {
  constexpr int N = sizeof...(T) + 1, V = kPackOf<R, T...>;
  constexpr std::index_sequence_for<T...> places;
  if (y.numel == 0) return nullptr;
  const Plan<N> plan = broadcast_plan<N>(y, in);
  if (plan.rank <= 1) return elementwise_equal<R, T...>(args, y, in, f);
  const bool packs = all_aligned<N - 1>(y, in);
  return plan.in_parts([&](const Plan<N>& part, const int64_t (&start)[N]) {
    if (packs && part.has_packs(V)) return launch_axes<V, R, T...>(args, y, in, f, part, start, places);
    return launch_axes<1, R, T...>(args, y, in, f, part, start, places);
  });
}

// The common kinds: floats of one dtype.
template <class F>
const char* float_map1(const KernelArgs& args, F f) {
  return for_float(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise_equal<T, T>(args, args.out[0], args.in, f);
  });
}
template <class F>
const char* float_grad(const KernelArgs& args, F f) {
  return for_float(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise_equal<T, T, T>(args, args.out[0], args.in, f);
  });
}
template <class F>
const char* float_map2(const KernelArgs& args, F f) {
  return for_float(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise<T, T, T>(args, args.out[0], args.in, f);
  });
}

struct Unchanged {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return x;
  }
};

// y = x in another float dtype, n elements.
template <class R, class T>
const char* convert(const KernelArgs& args, const T* x, R* y, int64_t n) {
  View from, to;
  from.data = const_cast<T*>(x);
  to.data = y;
  from.numel = to.numel = n;
  return elementwise_equal<R, T>(args, to, &from, Unchanged{});
}

}  // namespace plmcore::cuda
