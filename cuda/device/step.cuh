// The loops of the optimiser steps. A rule is a struct of constants with `operator()(p, g, a, b)`: it takes
// an element of the parameter, of the scaled gradient and of up to two moments, and changes all but the
// gradient. A thread takes 16 bytes of a moment at a time. Traffic for two moments is 16 bytes read and 12
// written per float parameter, one pass. Every element goes through the same expression, so that a row-sparse
// step gives the bits of the dense one.
#pragma once

#include "device/axes.h"
#include "device/grid.h"
#include "device/row_sparse.cuh"

namespace plmcore::cuda {

template <class T, class Rule>
struct Step {
  using A = Acc<T>;
  T* p;
  const T* g;
  A *a, *b;  // null where the rule has fewer moments
  const float* scale;  // of the gradient, or null
  Rule rule;

  __device__ __forceinline__ A factor() const { return scale ? static_cast<A>(*scale) : A(1); }
  // The elements at ... at + V - 1; their gradient is at `from`, or zero without one.
  template <int V>
  __device__ __forceinline__ void take(A scaled, int64_t at, const T* from) const {
    A vp[V], vg[V] = {}, va[V] = {}, vb[V] = {};
    load<V>(p + at, vp);
    if (from) load<V>(from, vg);
    if constexpr (Rule::kMoments > 0) load<V>(a + at, va);
    if constexpr (Rule::kMoments > 1) load<V>(b + at, vb);
#pragma unroll
    for (int j = 0; j < V; ++j) rule(vp[j], vg[j] * scaled, va[j], vb[j]);
    store<V>(p + at, vp);
    if constexpr (Rule::kMoments > 0) store<V>(a + at, va);
    if constexpr (Rule::kMoments > 1) store<V>(b + at, vb);
  }
};

template <class T, int V, class Rule>
__global__ void __launch_bounds__(kThreads, kResident) step_flat(Step<T, Rule> step, int64_t n) {
  const Acc<T> scaled = step.factor();
  for (int64_t i = first_of_thread() * V; i < n; i += threads_of_grid() * V) {
    if (i + V <= n) step.template take<V>(scaled, i, step.g + i);
    else
      for (int64_t j = i; j < n; ++j) step.template take<1>(scaled, j, step.g + j);
  }
}
// A thread a pack of a row; `width` packs a row. kOnlyGiven: the rows without gradient stay as they are.
template <class T, int V, bool kOnlyGiven, class Rule>
__global__ void __launch_bounds__(kThreads, kResident)
    step_rows(Step<T, Rule> step, int64_t packs, Divisor width, GivenRows rows) {
  const Acc<T> scaled = step.factor();
  for (int64_t i = first_of_thread(); i < packs; i += threads_of_grid()) {
    const uint32_t r = width.divide(static_cast<uint32_t>(i)), c = static_cast<uint32_t>(i) - r * width.size;
    if constexpr (kOnlyGiven) {
      if (rows.good(r)) step.template take<V>(scaled, (rows.rows[r] * width.size + c) * V, step.g + i * V);
    } else {
      const int64_t k = rows.first_from(r);
      const bool given = k < rows.n && rows.rows[k] == static_cast<int64_t>(r);
      step.template take<V>(scaled, i * V, given ? step.g + (k * width.size + c) * V : nullptr);
    }
  }
}

// Runs a rule over the inputs param, grad, moments..., scale, rows.
template <class T, class Rule>
const char* run_step(ops::Id op, const KernelArgs& args, const Rule& rule) {
  using A = Acc<T>;
  constexpr int kScale = Rule::kScaleInput, kRows = kScale + 1, V = kPack<A>;
  const View &param = args.in[0], &rows = args.in[kRows];
  const Step<T, Rule> step{param.as<T>(),
                           args.in[1].as<T>(),
                           Rule::kMoments > 0 ? args.in[2].as<A>() : nullptr,
                           Rule::kMoments > 1 ? args.in[3].as<A>() : nullptr,
                           args.has(kScale) ? args.in[kScale].as<float>() : nullptr,
                           rule};
  const bool packs = aligned(step.p, step.g, step.a, step.b);
  const cudaStream_t stream = stream_of(args);
  if (!args.has(kRows)) {
    const int64_t n = param.numel;
    if (n == 0) return nullptr;
    return problem(
        packs ? launch<step_flat<T, V, Rule>>(grid_for((n + V - 1) / V), dim3(kThreads), 0, stream, step, n)
              : launch<step_flat<T, 1, Rule>>(grid_for(n), dim3(kThreads), 0, stream, step, n));
  }
  const int64_t limit = param.size[0], C = param.inner(0);
  const bool lazy = args.i("lazy") != 0;
  const int64_t elements = (lazy ? rows.numel : limit) * C;
  if (elements >> 31) return "rows of 2^31 elements and more are not on this device yet";
  const auto go = [&]<int W, bool kOnlyGiven>(Constant<W>, std::bool_constant<kOnlyGiven>) {
    return problem(launch<step_rows<T, W, kOnlyGiven, Rule>>(grid_for(elements / W), dim3(kThreads), 0,
                                                             stream, step, elements / W, Divisor(C / W),
                                                             given_rows(args, rows, limit)));
  };
  const auto by_kind = [&](auto width) {
    return lazy ? go(width, std::true_type{}) : go(width, std::false_type{});
  };
  if (elements)
    if (const char* why = packs && C % V == 0 ? by_kind(Constant<V>{}) : by_kind(Constant<1>{})) return why;
  return check_rows(args, op, rows, limit);
}

}  // namespace plmcore::cuda
