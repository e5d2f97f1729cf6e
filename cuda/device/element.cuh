// Elements: what they are computed in, and 16-byte packs of them.
#pragma once

#include "device/cuda.cuh"

namespace plmcore::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

// The half types are computed in float32, everything else in itself.
template <class T> struct Computed {
  using type = T;
};
template <> struct Computed<bf16> {
  using type = float;
};
template <> struct Computed<f16> {
  using type = float;
};
template <class T> using Acc = typename Computed<T>::type;

template <class T> __device__ __forceinline__ T widen(T x) { return x; }
__device__ __forceinline__ float widen(bf16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float widen(f16 x) { return __half2float(x); }
template <class T> __device__ __forceinline__ T narrow(Acc<T> x) { return x; }
template <> __device__ __forceinline__ bf16 narrow<bf16>(float x) { return __float2bfloat16(x); }
template <> __device__ __forceinline__ f16 narrow<f16>(float x) { return __float2half(x); }

// Elements that one instruction loads. float64 is for checks, int64 for positions: their kernels go one by
// one.
template <class T> inline constexpr int kPack = sizeof(T) == 8 ? 1 : 16 / static_cast<int>(sizeof(T));

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};
template <int V, class T>
__device__ __forceinline__ void load(const T* p, Acc<T> (&to)[V]) {
  const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(p);
#pragma unroll
  for (int j = 0; j < V; ++j) to[j] = widen(pack.at[j]);
}
template <int V, class T>
__device__ __forceinline__ void store(T* p, const Acc<T> (&from)[V]) {
  Pack<T, V> pack;
#pragma unroll
  for (int j = 0; j < V; ++j) pack.at[j] = narrow<T>(from[j]);
  *reinterpret_cast<Pack<T, V>*>(p) = pack;
}

// Whether packs may be used: every address a multiple of 16.
template <class... P>
bool aligned(const P*... p) {
  return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...);
}

}  // namespace plmcore::cuda
