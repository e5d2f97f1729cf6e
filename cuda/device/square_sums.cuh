// Sums over a tensor that decide how long a step is: of the squares of the parameter and of its update. A
// block sums one piece in float64; the pieces depend on the size alone, and one block adds them in order.
#pragma once

#include "device/grid.h"
#include "device/kernel.h"
#include "device/reduce.cuh"

namespace plmcore::cuda {

inline constexpr int64_t kPieceElements = 1 << 14;

inline int64_t square_pieces(int64_t n) {
  const int64_t pieces = (n + kPieceElements - 1) / kPieceElements;
  return pieces < 1024 ? pieces : 1024;
}

// op.add(i, sums) adds what element i gives to the two sums; part [pieces][2].
template <class Op>
__global__ void __launch_bounds__(kThreads, kResident)
    square_sums(Op op, int64_t n, double* __restrict__ part) {
  const int64_t pieces = gridDim.x, piece = blockIdx.x, end = n * (piece + 1) / pieces;
  double sums[2] = {0, 0};
  for (int64_t i = n * piece / pieces + threadIdx.x; i < end; i += kThreads) op.add(i, sums);
  for (int k = 0; k < 2; ++k) {
    const double sum = block_reduce<Sum>(sums[k]);
    if (threadIdx.x == 0) part[piece * 2 + k] = sum;
  }
}
// One thread: *rate = op.rate(both sums).
template <class Op, class A>
__global__ void step_rate(Op op, const double* __restrict__ part, int64_t pieces, A* rate) {
  double sums[2] = {0, 0};
  for (int64_t i = 0; i < pieces; ++i) {
    sums[0] += part[2 * i];
    sums[1] += part[2 * i + 1];
  }
  *rate = static_cast<A>(op.rate(sums));
}
// op.step(i, rate) for each element.
template <class Op, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    step_elements(Op op, int64_t n, const A* __restrict__ rate) {
  const A length = *rate;
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) op.step(i, length);
}

// Bytes of the parts and of the rate.
inline size_t square_bytes(int64_t n) {
  return static_cast<size_t>(2 * square_pieces(n) + 1) * sizeof(double);
}

template <class A, class Op>
const char* step_by_size(const KernelArgs& args, const Op& op, int64_t n, void* space) {
  if (n == 0) return nullptr;
  auto* part = static_cast<double*>(space);
  const int64_t pieces = square_pieces(n);
  auto* rate = reinterpret_cast<A*>(part + 2 * pieces);
  const cudaStream_t stream = stream_of(args);
  cudaError_t error =
      launch<square_sums<Op>>(dim3(static_cast<unsigned>(pieces)), dim3(kThreads), 0, stream, op, n, part);
  if (!error) error = launch<step_rate<Op, A>>(dim3(1), dim3(1), 0, stream, op, part, pieces, rate);
  if (!error) error = launch<step_elements<Op, A>>(grid_for(n), dim3(kThreads), 0, stream, op, n, rate);
  return problem(error);
}

}  // namespace plmcore::cuda
