// Activations and their slopes, by number (plmcore/ops.h). One switch per element: all threads take the same
// way, and memory is what the kernels wait for.
#pragma once

#include "device/cuda.cuh"
#include "plmcore/ops.h"

namespace plmcore::cuda {

inline constexpr double kSqrtHalf = 0.7071067811865476, kInvSqrt2Pi = 0.3989422804014327,
                        kSqrt2OverPi = 0.7978845608028654, kGeluCubic = 0.044715;

template <class A>
__device__ __forceinline__ A sigmoid(A z) {
  return A(1) / (A(1) + std::exp(-z));
}
// The tanh of the tanh form of gelu.
template <class A>
__device__ __forceinline__ A gelu_bend(A z) {
  return std::tanh(A(kSqrt2OverPi) * (z + A(kGeluCubic) * z * z * z));
}

template <class A>
__device__ __forceinline__ A activate(Activation activation, A z) {
  switch (activation) {
    case Activation::none: return z;
    case Activation::relu: return z < 0 ? A(0) : z;
    case Activation::gelu: return A(0.5) * z * std::erfc(-z * A(kSqrtHalf));
    case Activation::gelu_tanh: return A(0.5) * z * (A(1) + gelu_bend(z));
    case Activation::tanh: return std::tanh(z);
    case Activation::sigmoid: return sigmoid(z);
    case Activation::silu: return z * sigmoid(z);
  }
  return z;
}

// The slope: at the sum z for gelu, gelu_tanh and silu, at the result y for the others.
template <class A>
__device__ __forceinline__ A slope(Activation activation, A at) {
  switch (activation) {
    case Activation::none: return A(1);
    case Activation::relu: return at > 0 ? A(1) : A(0);
    case Activation::gelu:
      return A(0.5) * std::erfc(-at * A(kSqrtHalf)) + at * A(kInvSqrt2Pi) * std::exp(A(-0.5) * at * at);
    case Activation::gelu_tanh: {
      const A t = gelu_bend(at);
      return A(0.5) * (A(1) + t) +
             A(0.5) * at * (A(1) - t * t) * A(kSqrt2OverPi) * (A(1) + A(3 * kGeluCubic) * at * at);
    }
    case Activation::tanh: return A(1) - at * at;
    case Activation::sigmoid: return at * (A(1) - at);
    case Activation::silu: {
      const A s = sigmoid(at);
      return s * (A(1) + at * (A(1) - s));
    }
  }
  return A(1);
}

}  // namespace plmcore::cuda
