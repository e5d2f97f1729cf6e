// Walks over arrays with strides. The host merges axes that are one run in every operand; a kernel finds the
// offsets of a position from 32-bit numbers, by multiplications in place of divisions.
#pragma once

#include "core/kernel_args.h"
#include "device/cuda.cuh"

namespace plmcore::cuda {

// n / d for n below 2^31, by a product and a shift (Granlund and Montgomery, 1994).
struct Divisor {
  uint32_t size = 1, factor = 1, shift = 0;

  Divisor() = default;
  explicit Divisor(int64_t d) {
    if (d <= 1) return;  // nothing has positions along an axis of size 0
    const auto n = static_cast<uint64_t>(d);
    size = static_cast<uint32_t>(n);
    while ((uint64_t{1} << shift) < n) ++shift;
    factor = static_cast<uint32_t>((((uint64_t{1} << shift) - n) << 32) / n + 1);
  }
  __device__ __forceinline__ uint32_t divide(uint32_t n) const {
    return (static_cast<uint32_t>((static_cast<uint64_t>(n) * factor) >> 32) + n) >> shift;
  }
};

// What a kernel gets: the axes of N operands, innermost first.
template <int N>
struct Axes {
  int rank = 0;
  Divisor size[Shape::kMaxRank];
  int64_t stride[N][Shape::kMaxRank];

  __device__ __forceinline__ void find(uint32_t position, int64_t (&at)[N]) const {
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] = 0;
    for (int a = 0; a < rank; ++a) {
      const uint32_t rest = size[a].divide(position), place = position - rest * size[a].size;
#pragma unroll
      for (int k = 0; k < N; ++k) at[k] += place * stride[k][a];
      position = rest;
    }
  }
};

// The host's side: sizes and strides in elements, innermost first.
template <int N>
struct Plan {
  int rank = 0;
  int64_t size[Shape::kMaxRank];
  int64_t stride[N][Shape::kMaxRank];

  // The next axis outwards.
  void add(int64_t n, const int64_t (&step)[N]) {
    if (n == 1) return;
    bool merge = rank > 0;
    for (int k = 0; k < N && merge; ++k) merge = step[k] == stride[k][rank - 1] * size[rank - 1];
    if (merge) size[rank - 1] *= n;
    else {
      size[rank] = n;
      for (int k = 0; k < N; ++k) stride[k][rank] = step[k];
      ++rank;
    }
  }
  int64_t count() const {
    int64_t n = 1;
    for (int a = 0; a < rank; ++a) n *= size[a];
    return n;
  }
  // Packs of V along the innermost axis lie within it, in each operand that is not one value repeated.
  bool has_packs(int V) const {
    if (rank == 0 || size[0] % V) return false;
    for (int k = 0; k < N; ++k) {
      if (stride[k][0] != 0 && stride[k][0] != 1) return false;
      for (int a = 1; a < rank; ++a)
        if (stride[k][0] && stride[k][a] % V) return false;
    }
    return true;
  }
  // Of the first M operands, in packs of V.
  template <int M>
  Axes<M> in_packs(int V) const {
    Axes<M> axes;
    axes.rank = rank;
    for (int a = 0; a < rank; ++a) {
      axes.size[a] = Divisor(a ? size[a] : size[a] / V);
      for (int k = 0; k < M; ++k) axes.stride[k][a] = a ? stride[k][a] : stride[k][a] * V;
    }
    return axes;
  }

  // f(plan, offsets) for parts of the outermost axis that have fewer than 2^31 positions each.
  template <class F>
  const char* in_parts(F f) const {
    const int64_t none[N] = {};
    return parts_from(none, f);
  }

 private:
  static constexpr int64_t kMost = (int64_t{1} << 31) - 1;

  template <class F>
  const char* parts_from(const int64_t (&start)[N], F& f) const {
    if (count() <= kMost) return f(*this, start);
    const int last = rank - 1;
    const int64_t inner = count() / size[last], each = inner < kMost ? kMost / inner : 1;
    for (int64_t first = 0; first < size[last]; first += each) {
      Plan part = *this;
      part.size[last] = size[last] - first < each ? size[last] - first : each;
      if (part.size[last] == 1) part.rank = last;
      int64_t at[N];
      for (int k = 0; k < N; ++k) at[k] = start[k] + first * stride[k][last];
      if (const char* why = part.parts_from(at, f)) return why;
    }
    return nullptr;
  }
};

// Operand N - 1 is y; the others are broadcast to it.
template <int N>
Plan<N> broadcast_plan(const View& y, const View* in) {
  Plan<N> plan;
  int64_t run[N];
  for (int k = 0; k < N; ++k) run[k] = 1;
  for (int i = y.rank - 1; i >= 0; --i) {
    int64_t step[N];
    for (int k = 0; k < N; ++k) {
      const int axis = k == N - 1 ? i : i - (y.rank - in[k].rank);
      const bool repeats = k < N - 1 && (axis < 0 || in[k].size[axis] == 1);
      step[k] = repeats ? 0 : run[k];
      if (!repeats) run[k] *= y.size[i];
    }
    plan.add(y.size[i], step);
  }
  return plan;
}

}  // namespace plmcore::cuda
