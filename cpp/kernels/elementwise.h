// Loops for elementwise kernels. F works on the vectors of simd.h; the half types are computed in float.
#pragma once

#include "kernels/kernel.h"
#include "kernels/math.h"

namespace plmcore::PLM_ISA {

template <class T, class F>
PLM_INLINE void map_range(F f, int64_t n, T* y, const T* x) {
  constexpr int W = Lane<T>::n;
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, f(load(x + i)));
  if (i < n) store_part(y + i, f(load_part(x + i, static_cast<int>(n - i))), static_cast<int>(n - i));
}
template <class T, class F>
PLM_INLINE void map_range(F f, int64_t n, T* y, const T* a, const T* b) {
  constexpr int W = Lane<T>::n;
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, f(load(a + i), load(b + i)));
  const int r = static_cast<int>(n - i);
  if (r) store_part(y + i, f(load_part(a + i, r), load_part(b + i, r)), r);
}

// y = f(x)
template <class F>
PLM_INLINE void map1(const char* op, const KernelArgs& args, F f) {
  for_float(op, args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* x = args.in[0].as<T>();
    T* y = args.out[0].as<T>();
    for_chunks(args.out[0].numel, kGrain, [&](int64_t b, int64_t e) { map_range(f, e - b, y + b, x + b); });
  });
}
// y = f(a, b), equal shapes
template <class F>
PLM_INLINE void map2(const char* op, const KernelArgs& args, F f) {
  for_float(op, args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *a = args.in[0].as<T>(), *b = args.in[1].as<T>();
    T* y = args.out[0].as<T>();
    for_chunks(args.out[0].numel, kGrain,
               [&](int64_t i, int64_t e) { map_range(f, e - i, y + i, a + i, b + i); });
  });
}

// Strides of an input against the output it broadcasts to, with neighbouring axes merged where all inputs
// allow it. The innermost stride of each input is 1 (contiguous) or 0 (one value repeated).
template <int N>
struct Broadcast {
  int rank = 0;
  int64_t size[Shape::kMaxRank];
  int64_t stride[N][Shape::kMaxRank];
  int64_t inner = 1, outer = 1;

  Broadcast(const View& out, const View* in) {
    int64_t run[N];
    for (int k = 0; k < N; ++k) run[k] = 1;
    // From the last axis to the first; axes are pushed innermost first.
    for (int i = out.rank - 1; i >= 0; --i) {
      const int64_t n = out.size[i];
      int64_t s[N];
      for (int k = 0; k < N; ++k) {
        const int axis = i - (out.rank - in[k].rank);
        const bool repeats = axis < 0 || in[k].size[axis] == 1;
        s[k] = repeats ? 0 : run[k];
        if (!repeats) run[k] *= n;
      }
      if (n == 1) continue;
      bool merge = rank > 0;
      for (int k = 0; k < N && merge; ++k) merge = s[k] == stride[k][rank - 1] * size[rank - 1];
      if (merge) size[rank - 1] *= n;
      else {
        size[rank] = n;
        for (int k = 0; k < N; ++k) stride[k][rank] = s[k];
        ++rank;
      }
    }
    if (rank == 0) {
      size[0] = 1;
      for (int k = 0; k < N; ++k) stride[k][0] = 0;
      rank = 1;
    }
    inner = size[0];
    for (int i = 1; i < rank; ++i) outer *= size[i];
  }
};

// f(at, to, n) over runs of the innermost axis: n elements from offset at[k] of input k (a step of
// stride[k][0]) to offset `to` of the output. Runs and their grouping into tasks depend on the sizes alone.
template <int N, class F>
PLM_INLINE void over_segments(const Broadcast<N>& bc, F f) {
  if (bc.outer == 1) {  // one long row: chunks of it
    for_chunks(bc.inner, kGrain, [&](int64_t b, int64_t e) {
      int64_t at[N];
      for (int k = 0; k < N; ++k) at[k] = b * bc.stride[k][0];
      f(at, b, e - b);
    });
    return;
  }
  for_rows(bc.outer, bc.inner, [&](int64_t begin, int64_t end) {
    int64_t at[N] = {}, place[Shape::kMaxRank];
    int64_t o = begin;
    for (int i = 1; i < bc.rank; ++i) {
      place[i] = o % bc.size[i];
      o /= bc.size[i];
      for (int k = 0; k < N; ++k) at[k] += place[i] * bc.stride[k][i];
    }
    for (o = begin; o < end; ++o) {
      f(at, o * bc.inner, bc.inner);
      for (int i = 1; i < bc.rank; ++i) {
        for (int k = 0; k < N; ++k) at[k] += bc.stride[k][i];
        if (++place[i] < bc.size[i]) break;
        for (int k = 0; k < N; ++k) at[k] -= bc.size[i] * bc.stride[k][i];
        place[i] = 0;
      }
    }
  });
}

// y = f(a, b) with broadcasting, A -> R elementwise scalars; used where vectors do not apply (comparisons,
// integers).
template <class A, class R, class F>
PLM_INLINE void broadcast2_scalar(const KernelArgs& args, F f) {
  if (args.out[0].numel == 0) return;
  const Broadcast<2> bc(args.out[0], args.in);
  const A *a = args.in[0].as<A>(), *b = args.in[1].as<A>();
  R* y = args.out[0].as<R>();
  const int64_t sa = bc.stride[0][0], sb = bc.stride[1][0];
  over_segments(bc, [&](const int64_t* at, int64_t to, int64_t n) {
    const A *pa = a + at[0], *pb = b + at[1];
    R* py = y + to;
    if (sa && sb)
      for (int64_t i = 0; i < n; ++i) py[i] = static_cast<R>(f(pa[i], pb[i]));
    else if (sa)
      for (int64_t i = 0; i < n; ++i) py[i] = static_cast<R>(f(pa[i], *pb));
    else
      for (int64_t i = 0; i < n; ++i) py[i] = static_cast<R>(f(*pa, pb[i * sb]));
  });
}

// y = f(a, b) with broadcasting on float vectors.
template <class F>
PLM_INLINE void broadcast2(const char* op, const KernelArgs& args, F f) {
  if (args.out[0].numel == 0) return;
  const Broadcast<2> bc(args.out[0], args.in);
  const int64_t sa = bc.stride[0][0], sb = bc.stride[1][0];
  for_float(op, args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using S = typename Lane<T>::Scalar;
    const T *a = args.in[0].as<T>(), *b = args.in[1].as<T>();
    T* y = args.out[0].as<T>();
    over_segments(bc, [&](const int64_t* at, int64_t to, int64_t n) {
      const T *pa = a + at[0], *pb = b + at[1];
      if (sa && sb) map_range(f, n, y + to, pa, pb);
      else if (sa) {
        const auto v = splat(S(to_float(*pb)));
        map_range([&](auto x) __attribute__((always_inline)) { return f(x, v); }, n, y + to, pa);
      } else if (sb) {
        const auto v = splat(S(to_float(*pa)));
        map_range([&](auto x) __attribute__((always_inline)) { return f(v, x); }, n, y + to, pb);
      } else {
        const auto v = f(splat(S(to_float(*pa))), splat(S(to_float(*pb))));
        for (int64_t i = 0; i < n; ++i) y[to + i] = from_float<T>(v[0]);
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
