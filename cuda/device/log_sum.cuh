// The maximum of a row and the sum of exp(x - maximum), shared by the softmaxes, cross_entropy and beam_step.
// A held row is read once; of a longer one the sum is rescaled when the maximum grows, so that this pass
// reads it once too.
#pragma once

#include "device/rows.cuh"

namespace plmcore::cuda {

template <class A>
struct ExpSum {
  A top, sum;
};

// The maximum of nothing but -inf is taken as 0: exp(-inf - 0) is 0 where exp(-inf + inf) is no number. A
// thread that saw only masked elements then adds 0 to the sum; a row of nothing else is 0 / 0, no number, as
// by the formula.
template <class A>
__device__ __forceinline__ A finite_max(A m) {
  return m == -static_cast<A>(INFINITY) ? A(0) : m;
}

// What a sum of exp(x - before) is multiplied by to become one of exp(x - now); `before` is -inf where
// nothing was added yet.
template <class A>
__device__ __forceinline__ A rescale(A before, A now) {
  return before == -static_cast<A>(INFINITY) ? A(0) : std::exp(before - now);
}

// `seen(n, column)` runs once for each pack, when it has been read to v[n].
template <class Row, class T, class F>
__device__ __forceinline__ ExpSum<Acc<T>> exp_sum(const Row& row, const T* x, typename Row::Held& v, F seen) {
  using A = Acc<T>;
  A most = -static_cast<A>(INFINITY), sum = 0;
  if constexpr (Row::kHolds) {
    row.each([&](int n, int column) {
      row.read(x, column, v[n]);
      row.inside(column, [&](int j) { most = std::fmax(most, v[n][j]); });
      seen(n, column);
    });
    const A top = finite_max(Row::template reduce<Max>(most));
    row.each([&](int n, int column) { row.inside(column, [&](int j) { sum += std::exp(v[n][j] - top); }); });
    return {top, Row::template reduce<Sum>(sum)};
  } else {
    row.each([&](int n, int column) {
      row.read(x, column, v[n]);
      A now = most;
      row.inside(column, [&](int j) { now = std::fmax(now, v[n][j]); });
      sum *= rescale(most, finite_max(now));
      row.inside(column, [&](int j) { sum += std::exp(v[n][j] - finite_max(now)); });
      most = now;
      seen(n, column);
    });
    const A top = finite_max(Row::template reduce<Max>(most));
    return {top, Row::template reduce<Sum>(sum * rescale(most, top))};
  }
}
template <class Row, class T>
__device__ __forceinline__ ExpSum<Acc<T>> exp_sum(const Row& row, const T* x, typename Row::Held& v) {
  return exp_sum(row, x, v, [](int, int) {});
}

}  // namespace plmcore::cuda
