// sqrt(sum of squares over all tensors of the list). A block sums one piece of 2^16 elements in float64, in
// 16-byte packs; a launch takes up to 64 tensors. One thread block adds the pieces in order. Traffic: one
// read of the list.
#include <cmath>

#include "device/grid.h"
#include "device/kernel.h"
#include "device/reduce.cuh"

namespace plmcore::cuda {

namespace {

constexpr int kListed = 64;
constexpr int64_t kNormPiece = 1 << 16;

int64_t pieces_of(int64_t n) { return (n + kNormPiece - 1) / kNormPiece; }

struct TensorList {
  const void* data[kListed];
  int64_t numel[kListed];
  int64_t first[kListed + 1];  // piece of each; the last is their number
  int count = 0;
};

template <class T>
__global__ void __launch_bounds__(kThreads, kResident)
    list_squares(TensorList list, double* __restrict__ part) {
  constexpr int V = kPack<T>;
  const int64_t piece = blockIdx.x;
  int k = 0;
  while (list.first[k + 1] <= piece) ++k;
  const T* x = static_cast<const T*>(list.data[k]);
  const int64_t begin = (piece - list.first[k]) * kNormPiece, left = list.numel[k] - begin,
                n = left < kNormPiece ? left : kNormPiece;
  x += begin;
  const bool packs = reinterpret_cast<uintptr_t>(x) % 16 == 0;
  const int64_t whole = packs ? n / V * V : 0;
  double sum = 0;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * V; i < whole; i += kThreads * V) {
    Acc<T> v[V];
    load<V>(x + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) sum += static_cast<double>(v[j]) * v[j];
  }
  for (int64_t i = whole + threadIdx.x; i < n; i += kThreads)
    sum += static_cast<double>(widen(x[i])) * widen(x[i]);
  sum = block_reduce<Sum>(sum);
  if (threadIdx.x == 0) part[piece] = sum;
}
__global__ void __launch_bounds__(kThreads)
    list_norm(const double* __restrict__ part, int64_t pieces, float* norm) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += kThreads) sum += part[i];
  sum = block_reduce<Sum>(sum);
  if (threadIdx.x == 0) *norm = static_cast<float>(std::sqrt(sum));
}

Workspace workspace(const KernelArgs& args) {
  int64_t pieces = 0;
  for (int k = 0; k < args.n_in; ++k) pieces += pieces_of(args.in[k].numel);
  return {.shared = static_cast<size_t>(pieces) * sizeof(double)};
}

}  // namespace

PLM_KERNEL(global_norm, workspace) {
  auto* part = args.shared_as<double>();
  const cudaStream_t stream = stream_of(args);
  int64_t done = 0;
  for (int k = 0; k < args.n_in;) {
    TensorList list;
    const DType dtype = args.in[k].dtype;
    list.first[0] = 0;
    for (; k < args.n_in && list.count < kListed && args.in[k].dtype == dtype; ++k) {
      const View& x = args.in[k];
      if (x.numel == 0) continue;
      list.data[list.count] = x.data;
      list.numel[list.count] = x.numel;
      list.first[list.count + 1] = list.first[list.count] + pieces_of(x.numel);
      ++list.count;
    }
    const int64_t pieces = list.first[list.count];
    if (pieces == 0) continue;
    if (pieces >> 31) return "2^47 elements and more are not on this device yet";
    if (const char* why = for_float(dtype, [&](auto type) {
          using T = typename decltype(type)::type;
          return problem(launch<list_squares<T>>(dim3(static_cast<unsigned>(pieces)), dim3(kThreads), 0,
                                                 stream, list, part + done));
        }))
      return why;
    done += pieces;
  }
  return problem(launch<list_norm>(dim3(1), dim3(kThreads), 0, stream, part, done, args.out[0].as<float>()));
}

}  // namespace plmcore::cuda
