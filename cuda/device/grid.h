// Grids of kernels whose threads take one piece of work after the other.
#pragma once

#include <cstdint>

#include "device/cuda.cuh"

namespace plmcore::cuda {

inline constexpr int kThreads = 256;
// Blocks that a processor must hold: 64 registers a thread. Without the number the compiler takes 32 at most,
// and spills.
inline constexpr int kResident = 4;
inline constexpr int64_t kBlocks = 4096;  // beyond that a thread takes several

inline dim3 grid_for(int64_t work) {
  const int64_t blocks = (work + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(blocks < kBlocks ? blocks : kBlocks));
}
__device__ __forceinline__ int64_t first_of_thread() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t threads_of_grid() { return static_cast<int64_t>(gridDim.x) * kThreads; }

}  // namespace plmcore::cuda
