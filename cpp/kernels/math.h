// exp, log, tanh, erf and their kin on float vectors; double goes to the C library lane by lane.
#pragma once

#include "kernels/simd.h"

namespace plmcore::PLM_ISA {

template <class F>
PLM_INLINE vd each(vd x, F f) {
  for (int i = 0; i < kD; ++i) x[i] = f(x[i]);
  return x;
}
PLM_INLINE vi bits(vf x) { return __builtin_bit_cast(vi, x); }
PLM_INLINE vf from_bits(vi x) { return __builtin_bit_cast(vf, x); }

// e^x = p 2^k: x = k ln 2 + r, |r| <= ln 2 / 2, and p a degree-6 polynomial of r.
PLM_INLINE vf exp_parts(vf x, vi& k) {
  const vf magic = splat(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer
  const vf n = (x * 1.44269504088896f + magic) - magic;
  vf r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  vf p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  k = __builtin_convertvector(n, vi);
  return p * r * r + r + 1.f;
}
// Error below 2 ulp; overflow gives inf, underflow 0, NaN passes.
PLM_INLINE vf exp(vf x) {
  vi k;
  const vf p = exp_parts(max(splat(-104.f), min(splat(88.8f), x)), k);
  // 2^k in two factors, so that the results below 2^-126 are still formed.
  const vi half = k >> 1;
  return p * from_bits((half + 127) << 23) * from_bits((k - half + 127) << 23);
}
// p 2^n, with n in the low bits: into the exponent, without sign, as saved statistics from outside lead to
// any number.
PLM_INLINE vf times_power(vf p, vi n) {
  return from_bits(
      __builtin_bit_cast(vi, __builtin_bit_cast(vu, bits(p)) + (__builtin_bit_cast(vu, n) << 23)));
}
// The same for x <= 0 whose tiny results may become 0: the softmax family.
PLM_INLINE vf exp_nonpositive(vf x) {
  vi k;
  const vf p = exp_parts(max(splat(-87.3f), x), k);
  return x < -87.3f ? splat(0.f) : times_power(p, k);
}

// 2^x for x <= 0, to 2 ulp; 0 from -127 on (there 2^r is 1 and its exponent becomes 0), NaN passes. The base
// of softmax where the scores are scaled anyway: half the steps of exp.
PLM_INLINE vf exp2_nonpositive(vf x) {
  x = max(splat(-127.f), x);
  const vf magic = splat(12582912.f), shifted = x + magic;  // its low bits are the rounded x
  const vf r = x - (shifted - magic);
  vf p = splat(1.326472725e-03f);
  p = p * r + 9.671512786e-03f;
  p = p * r + 5.550733744e-02f;
  p = p * r + 2.402224208e-01f;
  p = p * r + 6.931469776e-01f;
  p = p * r + 1.f;
  return times_power(p, bits(shifted));
}

// ln x: x = 2^k m, m in [sqrt(1/2), sqrt 2), a degree-9 polynomial in m - 1.
PLM_INLINE vf log(vf x) {
  const vf tiny = splat(1.17549435e-38f);
  const vi small = x < tiny;
  const vf scaled = small ? x * 33554432.f : x;  // 2^25: subnormals
  vi k = (bits(scaled) >> 23) - 126;
  vf m = from_bits((bits(scaled) & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  const vi low = m < 0.707106781186547524f;
  k = k + low;  // low is -1 where true
  m = (low ? m + m : m) - 1.f;
  vf p = splat(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const vf z = m * m;
  const vf e = __builtin_convertvector(small ? k - 25 : k, vf);
  vf y = p * m * z + e * -2.12194440e-4f - 0.5f * z;
  y = m + y + e * 0.693359375f;
  const vf inf = splat(__builtin_inff()), nan = splat(__builtin_nanf(""));
  y = x == inf ? inf : y;
  y = x == 0.f ? -inf : y;
  return x < 0.f || x != x ? nan : y;
}

PLM_INLINE vf sqrt(vf x) {
  for (int i = 0; i < kF; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}
PLM_INLINE vf abs(vf x) { return from_bits(bits(x) & 0x7fffffff); }
PLM_INLINE vf copysign(vf size, vf sign) {
  return from_bits((bits(size) & 0x7fffffff) | (bits(sign) & static_cast<int32_t>(0x80000000u)));
}

PLM_INLINE vd exp(vd x) {
  return each(x, [](double v) { return std::exp(v); });
}
PLM_INLINE vd exp_nonpositive(vd x) { return exp(x); }
PLM_INLINE vd exp2_nonpositive(vd x) {
  return each(x, [](double v) { return std::exp2(v); });
}
PLM_INLINE vd log(vd x) {
  return each(x, [](double v) { return std::log(v); });
}
PLM_INLINE vd sqrt(vd x) {
  return each(x, [](double v) { return std::sqrt(v); });
}
PLM_INLINE vd tanh(vd x) {
  return each(x, [](double v) { return std::tanh(v); });
}
PLM_INLINE vd abs(vd x) {
  return each(x, [](double v) { return std::fabs(v); });
}

// 1 / x for x from 1 to 2^64, to 2 ulp. 64-byte vectors: an estimate of 14 bits, exact for 1, and a step of
// Newton's method, in a quarter of the time of a division.
PLM_INLINE vf reciprocal(vf x) {
#if defined(__AVX512F__) && PLM_VECTOR_BYTES == 64
  const vf y = _mm512_rcp14_ps(x);
  return y + y * (1.f - x * y);
#else
  return 1.f / x;
#endif
}
PLM_INLINE vd reciprocal(vd x) { return 1. / x; }

// sigmoid(x) and its derivative s (1 - s), which keeps its digits where s is near 1.
template <class V>
struct Logistic {
  V value, slope;
};
template <class V>
PLM_INLINE Logistic<V> logistic(V x) {
  const V e = exp_nonpositive(-abs(x)), near = reciprocal(1 + e), far = e * near;
  return {x < 0 ? far : near, near * far};
}
template <class V>
PLM_INLINE V sigmoid(V x) {
  return logistic(x).value;
}

// tanh: an odd polynomial near 0, where 1 - e^-2x would cancel; (1 - e) / (1 + e) elsewhere.
PLM_INLINE vf tanh(vf x) {
  const vf a = abs(x), e = exp_nonpositive(-2.f * a);
  const vf far = (1.f - e) / (1.f + e);
  const vf s = x * x;
  vf p = splat(-5.70498872745e-3f);
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const vf near = x + x * s * p;
  return a < 0.625f ? near : copysign(far, x);
}

// ---- activations, shared by their ops and by linear's epilogue ----

template <class V>
PLM_INLINE V relu(V x) {
  return max(V{}, x);
}
// gelu(x) = x P(x) with P the normal distribution function. By way of the tail 1 - P(a) of a = |x|, which
// keeps its digits for negative x: tail = density * t poly(t), t = 1 / (1 + 0.3 a), relative error 4e-8.
// Beyond 14 both are 0 in float.
struct NormalTail {
  vf at, density, tail;  // min(|x|, 14), and the two there
};
PLM_INLINE NormalTail normal_tail(vf x) {
  const vf a = min(splat(14.f), abs(x)), t = reciprocal(1.f + 0.3f * a);
  const vf d = 0.39894228040143267794f * exp_nonpositive(-0.5f * a * a);
  vf p = splat(9.187496393864508e-2f);
  p = p * t - 4.033231093778039e-1f;
  p = p * t + 5.312357312681726e-1f;
  p = p * t - 1.451392887169751e-1f;
  p = p * t + 3.26305112830483e-1f;
  p = p * t + 2.4982315647229603e-1f;
  p = p * t + 3.026589790701179e-1f;
  p = p * t + 2.998786403304712e-1f;
  return {a, d, d * (p * t)};
}
PLM_INLINE vf gelu(vf x) {
  const NormalTail n = normal_tail(x);
  return max(splat(0.f), x) - n.at * n.tail;
}
PLM_INLINE vd gelu(vd x) {
  return each(x, [](double v) { return v < -40 ? 0. : 0.5 * v * std::erfc(v * -0.70710678118654752440); });
}
// (1 + tanh u) / 2 is sigmoid(2 u), which keeps its digits where tanh u is near -1.
template <class V>
PLM_INLINE V gelu_tanh(V x) {
  using S = std::remove_reference_t<decltype(x[0])>;
  return x * sigmoid(S(1.5957691216057308) * x * (S(1) + S(0.044715) * x * x));
}
template <class V>
PLM_INLINE V silu(V x) {
  return x * sigmoid(x);
}

// Derivatives at x.
PLM_INLINE vf gelu_slope(vf x) {
  const NormalTail n = normal_tail(x);
  return x > 0.f ? (1.f - n.tail) + n.at * n.density : n.tail - n.at * n.density;
}
PLM_INLINE vd gelu_slope(vd x) {
  return each(x, [](double v) {
    return std::fabs(v) > 40 ? double(v > 0)
                             : 0.5 * std::erfc(v * -0.70710678118654752440) +
                                   v * 0.39894228040143267794 * std::exp(v * v * -0.5);
  });
}
// The slope is constant beyond the bounds; without them the product of a huge and a zero factor would be NaN.
template <class V>
PLM_INLINE V gelu_tanh_slope(V x) {
  using S = std::remove_reference_t<decltype(x[0])>;
  const S k = S(1.5957691216057308), c = S(0.044715);
  x = max(splat(S(-20)), min(splat(S(20)), x));
  const V q = c * x * x;
  const Logistic<V> s = logistic(k * x * (1 + q));
  return s.value + s.slope * (k * x * (1 + 3 * q));
}
template <class V>
PLM_INLINE V silu_slope(V x) {
  using S = std::remove_reference_t<decltype(x[0])>;
  x = max(splat(S(-800)), min(splat(S(800)), x));
  const Logistic<V> s = logistic(x);
  return s.value + x * s.slope;
}

}  // namespace plmcore::PLM_ISA
