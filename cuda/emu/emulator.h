// CUDA's device language for g++: kernels compile unchanged and run on the host, one fiber per CUDA thread.
//
// NVIDIA's own headers give the vector types, bf16 and half, and the declarations of the runtime API;
// __global__ and
// __device__ mean nothing to g++. What is a keyword or a built-in of nvcc is defined here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "emu/stream.h"
#include "emu/warp.h"

#undef __shared__
#define __shared__ static_assert(false, "declare shared memory by PLM_SHARED or PLM_DYNAMIC_SHARED")
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __forceinline__
#define __forceinline__ inline

#define threadIdx (::plmcore::emu::indices->thread)
#define blockIdx (::plmcore::emu::indices->block)
#define blockDim (::plmcore::emu::indices->block_size)
#define gridDim (::plmcore::emu::indices->grid_size)
#define warpSize 32

// ---- barriers and warp operations: macros, so that each knows its place in the source ----

#define PLM_EMU_HERE \
  (::plmcore::emu::Place{__FILE__, __LINE__, static_cast<int>(std::source_location::current().column())})
#define __syncthreads() ((void)::plmcore::emu::sync_block(false, PLM_EMU_HERE))
#define __syncthreads_count(p) ::plmcore::emu::sync_block((p) != 0, PLM_EMU_HERE)
#define __syncthreads_or(p) (::plmcore::emu::sync_block((p) != 0, PLM_EMU_HERE) != 0)
#define __syncthreads_and(p) (::plmcore::emu::sync_block((p) == 0, PLM_EMU_HERE) == 0)
#define __shfl_sync(...) ::plmcore::emu::shuffle_from(PLM_EMU_HERE, __VA_ARGS__)
#define __shfl_xor_sync(...) ::plmcore::emu::shuffle_xor(PLM_EMU_HERE, __VA_ARGS__)
#define __shfl_down_sync(...) ::plmcore::emu::shuffle_down(PLM_EMU_HERE, __VA_ARGS__)
#define __shfl_up_sync(...) ::plmcore::emu::shuffle_up(PLM_EMU_HERE, __VA_ARGS__)
#define __ballot_sync(mask, p) ::plmcore::emu::ballot(PLM_EMU_HERE, mask, (p) != 0)
#define __any_sync(mask, p) (::plmcore::emu::ballot(PLM_EMU_HERE, mask, (p) != 0) != 0)
#define __all_sync(mask, p) (::plmcore::emu::ballot(PLM_EMU_HERE, mask, (p) == 0) == 0)
#define __match_any_sync(mask, v) ::plmcore::emu::match_any(PLM_EMU_HERE, mask, v)
#define __syncwarp(...) ::plmcore::emu::sync_warp(PLM_EMU_HERE __VA_OPT__(, ) __VA_ARGS__)

inline void __threadfence() { ::plmcore::emu::fence(); }
inline void __threadfence_system() { ::plmcore::emu::fence(); }
inline void __threadfence_block() { ::plmcore::emu::fence(); }

// ---- atomics are real ones: TSan then knows them ----

namespace plmcore::emu {
template <class T, class F>
T exchange(T* p, F change) {
  using Bits =
      std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  auto* bits = reinterpret_cast<Bits*>(p);
  Bits before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
  T old;
  do {
    std::memcpy(&old, &before, sizeof(T));
    const T next = change(old);
    std::memcpy(&after, &next, sizeof(T));
  } while (!__atomic_compare_exchange_n(bits, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
}  // namespace plmcore::emu
template <class T> T atomicAdd(T* p, std::type_identity_t<T> v) {
  return ::plmcore::emu::exchange(p, [=](T x) { return static_cast<T>(x + v); });
}
template <class T> T atomicMax(T* p, std::type_identity_t<T> v) {
  return ::plmcore::emu::exchange(p, [=](T x) { return x < v ? v : x; });
}
template <class T> T atomicMin(T* p, std::type_identity_t<T> v) {
  return ::plmcore::emu::exchange(p, [=](T x) { return v < x ? v : x; });
}
template <class T> T atomicExch(T* p, std::type_identity_t<T> v) {
  return ::plmcore::emu::exchange(p, [=](T) { return v; });
}
template <class T> T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  return ::plmcore::emu::exchange(p, [=](T x) { return x == expected ? v : x; });
}

// ---- built-in functions ----

using std::max;
using std::min;
template <class T> T __ldg(const T* p) { return *p; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline int __dp4a(int a, int b, int sum) {
  for (int k = 0; k < 32; k += 8) sum += static_cast<int8_t>(a >> k) * static_cast<int8_t>(b >> k);
  return sum;
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline int __ffs(uint32_t x) { return __builtin_ffs(static_cast<int>(x)); }

// ---- shared memory and launches; the twins for nvcc are in device/cuda.cuh ----

#define PLM_SHARED(T, name, ...)                \
  static char name##_key;                       \
  T(&name)                                      \
  __VA_ARGS__ = *static_cast<T(*) __VA_ARGS__>( \
      ::plmcore::emu::shared_array(&name##_key, sizeof(T __VA_ARGS__), #name))
#define PLM_DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(::plmcore::emu::dynamic_shared())

namespace plmcore::cuda {

template <auto kernel, class... P>
cudaError_t launch_as(void (*)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                      std::type_identity_t<P>... arguments) {
  return emu::launch(__PRETTY_FUNCTION__, grid, block, shared, stream, {emu::address_in(arguments)...},
                     [=] { kernel(arguments...); });
}
template <auto kernel, class... A>
cudaError_t launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, const A&... arguments) {
  return launch_as<kernel>(kernel, grid, block, shared, stream, arguments...);
}

}  // namespace plmcore::cuda
