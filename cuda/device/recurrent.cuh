// What the recurrent kernels share. Every step is one product over all sequences by cuBLASLt and one kernel
// for its cells, a thread a unit. Lengths stay on the device: a sequence that is over keeps its state.
// Products and states are float32 (float64 for float64); the weight of a half type is widened once. What is
// kept of all steps lies step after step, [T, B, ...], with zeros where a sequence is over.
#pragma once

#include "device/axes.h"
#include "device/elementwise.cuh"
#include "device/fault.cuh"
#include "device/parts.h"
#include "runtime/matmul.h"

namespace plmcore::cuda {

// Where a sequence is at which step.
struct Steps {
  int64_t B, T;
  bool reverse;
  int64_t* length;  // [B]

  __device__ __forceinline__ bool active(int64_t b, int64_t s) const { return s < length[b]; }
  __device__ __forceinline__ bool ends(int64_t b, int64_t s) const { return s + 1 == length[b]; }
  // The row of [B T, ...].
  __device__ __forceinline__ int64_t row(int64_t b, int64_t s) const {
    return b * T + (reverse ? length[b] - 1 - s : s);
  }
};

// op(b, u) for B rows of `width` units.
template <class Op>
__global__ void __launch_bounds__(kThreads) recurrent_cells(Op op, int64_t n, Divisor width) {
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) {
    const uint32_t b = width.divide(static_cast<uint32_t>(i));
    op(static_cast<int64_t>(b), static_cast<int64_t>(static_cast<uint32_t>(i) - b * width.size));
  }
}
template <class Op>
const char* for_cells(const KernelArgs& args, const Op& op, int64_t rows, int64_t width) {
  const int64_t n = rows * width;
  if (n == 0) return nullptr;
  if (n >> 31) return "2^31 units and more are not on this device yet";
  return problem(
      launch<recurrent_cells<Op>>(grid_for(n), dim3(kThreads), 0, stream_of(args), op, n, Divisor(width)));
}

// Lengths of any index dtype, or T for all; one outside of 0 ... T is noted and counts as 0.
template <class I>
struct ReadLengths {
  const I* given;
  Steps steps;
  unsigned long long* bad_position;

  __device__ __forceinline__ void operator()(int64_t b, int64_t) const {
    const int64_t n = given ? static_cast<int64_t>(given[b]) : steps.T;
    const bool good = n >= 0 && n <= steps.T;
    if (!good) note_bad(bad_position, b);
    steps.length[b] = good ? n : 0;
  }
};
inline const char* read_lengths(const KernelArgs& args, ops::Id op, const View& lengths, const Steps& steps) {
  unsigned long long* bad = gpu_of(args).bad_position;
  if (!lengths) return for_cells(args, ReadLengths<int64_t>{nullptr, steps, bad}, steps.B, 1);
  if (steps.B == 0) return nullptr;
  return for_index(lengths.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    const char* why = for_cells(args, ReadLengths<I>{lengths.as<I>(), steps, bad}, steps.B, 1);
    return why ? why : report_faults<I>(args, op, DataError::length, lengths, steps.T);
  });
}

// to = x in float32 or float64; zeros where there is no x.
template <class T>
const char* widened(const KernelArgs& args, const View& x, Acc<T>* to, int64_t n) {
  if (n == 0) return nullptr;
  if (!x) return problem(cudaMemsetAsync(to, 0, static_cast<size_t>(n) * sizeof(Acc<T>), stream_of(args)));
  return convert(args, x.as<T>(), to, n);
}
// A weight as products take it: itself, or widened to `space`.
template <class T>
const char* product_weight(const KernelArgs& args, const View& weight, Acc<T>* space, const Acc<T>** use) {
  *use = space;
  if constexpr (std::is_same_v<T, Acc<T>>) return *use = weight.as<T>(), nullptr;
  else return convert(args, weight.as<T>(), space, weight.numel);
}
template <class T> inline constexpr bool kWidens = !std::is_same_v<T, Acc<T>>;
template <class A> inline constexpr DType kProducts = sizeof(A) == 8 ? DType::float64 : DType::float32;

// What each step's product took from the step before: h, then rows of y.   -> [T, B, P]
template <class T>
struct TakePrevious {
  Steps steps;
  const T *h, *y;
  Acc<T>* to;
  int64_t P;

  __device__ __forceinline__ void operator()(int64_t at, int64_t u) const {
    const int64_t s = at / steps.B, b = at - s * steps.B;
    Acc<T> v = 0;
    if (steps.active(b, s)) v = widen(s ? y[steps.row(b, s - 1) * P + u] : h[b * P + u]);
    to[at * P + u] = v;
  }
};

// dweight [M, N] = a[rows, M]^T b[rows, N]. `sums`: [M, N] for the half types.
template <class T>
const char* weight_gradient(const KernelArgs& args, int64_t M, int64_t N, int64_t rows, const Acc<T>* a,
                            const Acc<T>* b, Acc<T>* sums, T* out) {
  void* to = sums;
  if constexpr (!kWidens<T>) to = out;
  const Product p{
      .transpose_a = true, .M = M, .N = N, .K = rows, .dtype = kProducts<Acc<T>>, .a = a, .b = b, .out = to};
  if (const char* why = multiply(p, stream_of(args))) return why;
  if constexpr (kWidens<T>) return convert(args, static_cast<const Acc<T>*>(sums), out, M * N);
  else return nullptr;
}

// The gradient of the first state: what came back from the first step, or for an empty sequence that of the
// last state.
template <class T>
struct FirstState {
  Steps steps;
  const Acc<T>*back, *last;
  T* to;
  int64_t P;
  bool adds;  // both together (gru)

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    const int64_t i = b * P + u;
    const Acc<T> kept = adds || !steps.length[b] ? last[i] : Acc<T>(0);
    to[i] = narrow<T>(kept + (steps.length[b] ? back[i] : Acc<T>(0)));
  }
};

template <class A>
__device__ __forceinline__ A clipped(A x, A limit) {
  return limit > 0 ? (x < -limit ? -limit : x > limit ? limit : x) : x;
}
// d where |x| is below the limit, which has clipped x, and 0 elsewhere.
template <class A>
__device__ __forceinline__ A where_free(A x, A limit, A d) {
  return limit > 0 && !(std::fabs(x) < limit) ? A(0) : d;
}

}  // namespace plmcore::cuda
