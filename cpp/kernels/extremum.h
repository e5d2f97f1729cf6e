// The largest (smallest) element along an axis and its first position; NaN counts as the largest (smallest)
// of all. x is [outer, n, inner]. Traffic: one read of x. Shared by max, min and argmax.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

struct Larger {
  template <class V> PLM_INLINE static V pick(V a, V b) { return a > b ? a : b; }
  PLM_INLINE static vf pick(vf a, vf b) { return max(a, b); }
  template <class A> PLM_INLINE static bool better(A a, A b) { return a > b || (a != a && b == b); }
};
struct Smaller {
  template <class V> PLM_INLINE static V pick(V a, V b) { return a < b ? a : b; }
  PLM_INLINE static vf pick(vf a, vf b) { return min(a, b); }
  template <class A> PLM_INLINE static bool better(A a, A b) { return a < b || (a != a && b == b); }
};

template <class T>
PLM_INLINE auto value_of(T x) {
  if constexpr (std::is_integral_v<T>) return x;
  else return to_float(x);
}

// One contiguous row: the value in vectors, then the first place that has it.
template <class Order, class T>
PLM_INLINE int64_t best_of_row(const T* x, int64_t n) {
  int64_t i = 0, at = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (n >= 4 * kF) {
      vf m0 = load(x), m1 = load(x + kF), nan{};
      for (; i + 2 * kF <= n; i += 2 * kF) {
        const vf a = load(x + i), b = load(x + i + kF);
        m0 = Order::pick(m0, a);
        m1 = Order::pick(m1, b);
        nan += a * 0.f + b * 0.f;  // an infinity also makes it NaN; then the plain loop below decides
      }
      if (reduce_add(nan) == 0) {
        m0 = Order::pick(m0, m1);
        float best = m0[0];
        for (int k = 1; k < kF; ++k) best = Order::pick(best, m0[k]);
        // Where the tail has a better one, the search starts there.
        int64_t tail = -1;
        for (; i < n; ++i)
          if (Order::better(x[i], best)) best = x[i], tail = i;
        if (tail >= 0) return tail;
        for (i = 0;; ++i)
          if (x[i] == best) return i;
      }
      i = 0;
    }
  }
  auto best = value_of(x[0]);
  for (i = 1; i < n; ++i) {
    const auto v = value_of(x[i]);
    if (Order::better(v, best)) best = v, at = i;
  }
  return at;
}

// y and index may be null.
template <class Order, class T>
static void extremum(const View& x, int axis, T* y, int64_t* index) {
  const int64_t n = x.size[axis], inner = x.inner(axis), outer = x.outer(axis);
  const T* data = x.as<T>();
  for_rows(outer, n * inner, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* from = data + o * n * inner;
      for (int64_t i = 0; i < inner; ++i) {
        int64_t at = 0;
        if (inner == 1) at = best_of_row<Order>(from, n);
        else {
          auto best = value_of(from[i]);
          for (int64_t j = 1; j < n; ++j) {
            const auto v = value_of(from[j * inner + i]);
            if (Order::better(v, best)) best = v, at = j;
          }
        }
        if (y) y[o * inner + i] = from[at * inner + i];
        if (index) index[o * inner + i] = at;
      }
    }
  });
}

template <class Order>
static void extremum(const char* op, const View& x, int axis, void* y, int64_t* index) {
  if (x.outer(axis) * x.inner(axis) == 0) return;
  check(x.size[axis] > 0, op, ": axis ", axis, " has no elements");
  switch (x.dtype) {
    case DType::int64: return extremum<Order>(x, axis, static_cast<int64_t*>(y), index);
    case DType::int32: return extremum<Order>(x, axis, static_cast<int32_t*>(y), index);
    case DType::int8: return extremum<Order>(x, axis, static_cast<int8_t*>(y), index);
    case DType::uint8:
    case DType::boolean: return extremum<Order>(x, axis, static_cast<uint8_t*>(y), index);
    default:
      for_float(op, x.dtype, [&](auto type) {
        extremum<Order>(x, axis, static_cast<typename decltype(type)::type*>(y), index);
      });
  }
}

}  // namespace plmcore::PLM_ISA
