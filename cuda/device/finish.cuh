// What a product leaves open: bias and activation, in one pass over y.
#pragma once

#include "device/activation.cuh"
#include "device/kernel.h"

namespace plmcore::cuda {

inline constexpr int kFinishThreads = 128;

// sum = z + bias, y = activation(sum); z and y may be the same memory. Without `bias` or `sum` that part is
// left out. A thread keeps one pack of columns and goes down the rows. grid (columns, rows), block 128
template <class T, int V>
__global__ void __launch_bounds__(kFinishThreads)
    linear_finish(const T* z, const T* __restrict__ bias, T* sum, T* y, int64_t M, int64_t N,
                  Activation activation) {
  using A = Acc<T>;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kFinishThreads + threadIdx.x) * V;
  if (column >= N) return;
  A b[V] = {};
  if (bias) load<V>(bias + column, b);
#pragma unroll 1
  for (int64_t row = blockIdx.y; row < M; row += gridDim.y) {
    const int64_t at = row * N + column;
    A v[V];
    load<V>(z + at, v);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] += b[j];
    if (sum) store<V>(sum + at, v);
    activate(activation, v);
    store<V>(y + at, v);
  }
}

template <class T>
cudaError_t launch_finish(const T* z, const T* bias, T* sum, T* y, int64_t M, int64_t N,
                          Activation activation, cudaStream_t stream) {
  const auto go = [&]<int V>(Constant<V>) {
    const int64_t columns = (N / V + kFinishThreads - 1) / kFinishThreads;
    return launch<linear_finish<T, V>>(
        dim3(static_cast<unsigned>(columns), static_cast<unsigned>(M < 4096 ? M : 4096)),
        dim3(kFinishThreads), 0, stream, z, bias, sum, y, M, N, activation);
  };
  return N % kPack<T> == 0 && aligned(z, bias, sum, y) ? go(Constant<kPack<T>>{}) : go(Constant<1>{});
}

}  // namespace plmcore::cuda
