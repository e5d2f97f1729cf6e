// Activations and their slopes: the functions, and the choice among them by number (plmcore/ops.h).
#pragma once

#include "device/cuda.cuh"
#include "plmcore/ops.h"

namespace plmcore::cuda {

inline constexpr double kSqrtHalf = 0.7071067811865476, kInvSqrt2Pi = 0.3989422804014327,
                        kTwoSqrt2OverPi = 1.5957691216057308, kGeluCubic = 0.044715;
inline constexpr double kGeluFar = 40;  // beyond it the normal distribution function is 0 or 1

// sigmoid(x) and its derivative s (1 - s), which keeps its digits where s is near 1.
template <class A>
struct Logistic {
  A value, slope;
  __device__ __forceinline__ explicit Logistic(A x) {
    const A e = std::exp(-std::fabs(x)), near = A(1) / (A(1) + e), far = e * near;
    value = x < 0 ? far : near;
    slope = near * far;
  }
};
template <class A>
__device__ __forceinline__ A sigmoid(A x) {
  return Logistic<A>(x).value;
}
template <class A>
__device__ __forceinline__ A relu(A x) {
  return x < 0 ? A(0) : x;
}
template <class A>
__device__ __forceinline__ A gelu(A x) {
  return x < A(-kGeluFar) ? A(0) : A(0.5) * x * std::erfc(-x * A(kSqrtHalf));
}
// (1 + tanh u) / 2 is sigmoid(2 u), which keeps its digits where tanh u is near -1.
template <class A>
__device__ __forceinline__ A gelu_tanh(A x) {
  return x * sigmoid(A(kTwoSqrt2OverPi) * x * (A(1) + A(kGeluCubic) * x * x));
}
template <class A>
__device__ __forceinline__ A silu(A x) {
  return x * sigmoid(x);
}

// Within [-most, most]; a NaN stays.
template <class A>
__device__ __forceinline__ A bounded(A x, A most) {
  return x < -most ? -most : x > most ? most : x;
}
// Derivatives at x. A slope is constant far out, where the product of a huge and a zero factor would be NaN.
template <class A>
__device__ __forceinline__ A gelu_slope(A x) {
  if (std::fabs(x) > A(kGeluFar)) return x > 0 ? A(1) : A(0);
  return A(0.5) * std::erfc(-x * A(kSqrtHalf)) + x * A(kInvSqrt2Pi) * std::exp(A(-0.5) * x * x);
}
template <class A>
__device__ __forceinline__ A gelu_tanh_slope(A x) {
  x = bounded(x, A(20));
  const A q = A(kGeluCubic) * x * x, k = A(kTwoSqrt2OverPi);
  const Logistic<A> s(k * x * (A(1) + q));
  return s.value + s.slope * (k * x * (A(1) + A(3) * q));
}
template <class A>
__device__ __forceinline__ A silu_slope(A x) {
  x = bounded(x, A(800));
  const Logistic<A> s(x);
  return s.value + x * s.slope;
}

// Of V elements: one switch for all of them.
template <class A, int V>
__device__ __forceinline__ void activate(Activation activation, A (&z)[V]) {
  const auto each = [&](auto f) {
#pragma unroll
    for (int j = 0; j < V; ++j) z[j] = f(z[j]);
  };
  switch (activation) {
    case Activation::none: return;
    case Activation::relu: return each([](A v) { return relu(v); });
    case Activation::gelu: return each([](A v) { return gelu(v); });
    case Activation::gelu_tanh: return each([](A v) { return gelu_tanh(v); });
    case Activation::tanh: return each([](A v) { return std::tanh(v); });
    case Activation::sigmoid: return each([](A v) { return sigmoid(v); });
    case Activation::silu: return each([](A v) { return silu(v); });
  }
}

// The slope: at the sum z for gelu, gelu_tanh and silu, at the result y for the others.
template <class A>
__device__ __forceinline__ A slope(Activation activation, A at) {
  switch (activation) {
    case Activation::none: return A(1);
    case Activation::relu: return at > 0 ? A(1) : A(0);
    case Activation::gelu: return gelu_slope(at);
    case Activation::gelu_tanh: return gelu_tanh_slope(at);
    case Activation::tanh: return A(1) - at * at;
    case Activation::sigmoid: return at * (A(1) - at);
    case Activation::silu: return silu_slope(at);
  }
  return A(1);
}

}  // namespace plmcore::cuda
