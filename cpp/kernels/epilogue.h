// What follows a product on a finished tile: bias and activation. One function per activation and type,
// picked once, so that the product itself is compiled once per type.
#pragma once

#include "kernels/math.h"
#include "kernels/row.h"
#include "plmcore/ops.h"

namespace plmcore::PLM_ISA {

// y = activation(y + bias) on n elements of a row; the sum is kept in `sum` when given.
template <class T>
using FinishRow = void (*)(T* y, const T* bias, T* sum, int64_t n);

template <class T, class F>
static void finish_row(T* y, const T* bias, T* sum, int64_t n) {
  over_row<T>(n, [&](int64_t j, int part) __attribute__((always_inline)) {
    auto z = load_at(y, j, part);
    if (bias) z += load_at(bias, j, part);
    if (sum) store_at(sum, j, part, z);
    store_at(y, j, part, F()(z));
  });
}

// dz = dy * slope on n elements; the slope is of the sum z for gelu, gelu_tanh and silu, of the result y for
// the others.
template <class T>
using SlopeRow = void (*)(T* dz, const T* dy, const T* at, int64_t n);

template <class T, class F>
static void slope_row(T* dz, const T* dy, const T* at, int64_t n) {
  over_row<T>(n, [&](int64_t j, int part) __attribute__((always_inline)) {
    store_at(dz, j, part, load_at(dy, j, part) * F()(load_at(at, j, part)));
  });
}

#define PLM_FUNCTION(Name, expression)   \
  struct Name {                          \
    template <class V>                   \
    PLM_INLINE V operator()(V v) const { \
      return expression;                 \
    }                                    \
  };
PLM_FUNCTION(NoActivation, v)
PLM_FUNCTION(Relu, relu(v))
PLM_FUNCTION(Gelu, gelu(v))
PLM_FUNCTION(GeluTanh, gelu_tanh(v))
PLM_FUNCTION(Tanh, tanh(v))
PLM_FUNCTION(Sigmoid, sigmoid(v))
PLM_FUNCTION(Silu, silu(v))
PLM_FUNCTION(ReluSlope, (v > 0 ? v * 0 + 1 : v * 0))
PLM_FUNCTION(GeluSlope, gelu_slope(v))
PLM_FUNCTION(GeluTanhSlope, gelu_tanh_slope(v))
PLM_FUNCTION(TanhSlope, 1 - v * v)
PLM_FUNCTION(SigmoidSlope, v * (1 - v))
PLM_FUNCTION(SiluSlope, silu_slope(v))
#undef PLM_FUNCTION

template <class T>
PLM_INLINE FinishRow<T> finish_of(int64_t activation) {
  const FinishRow<T> table[] = {finish_row<T, NoActivation>, finish_row<T, Relu>, finish_row<T, Gelu>,
                                finish_row<T, GeluTanh>,     finish_row<T, Tanh>, finish_row<T, Sigmoid>,
                                finish_row<T, Silu>};
  return table[activation];
}
template <class T>
PLM_INLINE SlopeRow<T> slope_of(int64_t activation) {
  const SlopeRow<T> table[] = {nullptr,
                               slope_row<T, ReluSlope>,
                               slope_row<T, GeluSlope>,
                               slope_row<T, GeluTanhSlope>,
                               slope_row<T, TanhSlope>,
                               slope_row<T, SigmoidSlope>,
                               slope_row<T, SiluSlope>};
  return table[activation];
}

}  // namespace plmcore::PLM_ISA
