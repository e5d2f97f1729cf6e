// The one header through which a kernel file gets CUDA: the real one under nvcc, the emulator under g++.
//
// Three things are written differently from plain CUDA, so that the emulator can take part:
//   PLM_SHARED(float, sums, [8][33]);          instead of  __shared__ float sums[8][33];
//   PLM_DYNAMIC_SHARED(float, row);            instead of  extern __shared__ float row[];
//   launch<kernel<float>>(grid, block, dynamic_shared_bytes, stream, arguments...)   instead of  <<< >>>
// Inline PTX stands in device/ptx.cuh.
#pragma once

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#define PLM_SHARED(T, name, ...) __shared__ T name __VA_ARGS__
#define PLM_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char plm_dynamic_shared[]; \
  T* name = reinterpret_cast<T*>(plm_dynamic_shared)

namespace plmcore::cuda {

inline constexpr size_t kSharedWithoutAsking = 48 * 1024;  // a launch with more must have said so before

// The arguments are converted to the types that the kernel takes.
template <auto kernel, class... P, class... A>
cudaError_t launch_as(void (*)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                      const A&... arguments) {
  if (shared > kSharedWithoutAsking)
    if (const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                       static_cast<int>(shared)))
      return error;
  kernel<<<grid, block, shared, stream>>>(static_cast<P>(arguments)...);
  return cudaGetLastError();
}
template <auto kernel, class... A>
cudaError_t launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, const A&... arguments) {
  return launch_as<kernel>(kernel, grid, block, shared, stream, arguments...);
}

}  // namespace plmcore::cuda

#else
#include "emu/emulator.h"
#endif

namespace plmcore::cuda {

template <int N>
struct Constant {
  static constexpr int value = N;
};

}  // namespace plmcore::cuda
