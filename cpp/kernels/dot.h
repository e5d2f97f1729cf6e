// How a vector of activations meets one of weights, and one of each at the end of a row.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

template <class X, class W>
struct Dot {  // float32 against float32 or bfloat16
  using Sum = float;
  using Vec = vf;
  enum : int { step = kF };
  PLM_INLINE static vf activations(const X* p) { return load(p); }
  PLM_INLINE static vf weights(const W* p) { return load(p); }
  PLM_INLINE static vf add(vf sum, vf x, vf w) { return sum + x * w; }
  PLM_INLINE static float product(X x, W w) { return to_float(x) * to_float(w); }
};
template <>
struct Dot<int16_t, int8_t> {  // exact
  using Sum = int32_t;
  using Vec = vi;
  enum : int { step = kS };
  PLM_INLINE static vs activations(const int16_t* p) { return load(p); }
  PLM_INLINE static vs weights(const int8_t* p) { return load(p); }
  PLM_INLINE static vi add(vi sum, vs x, vs w) { return sum + multiply_pairs(x, w); }
  PLM_INLINE static int32_t product(int16_t x, int8_t w) { return x * w; }
};
#if defined(__AVX512BW__) && PLM_VECTOR_BYTES == 64
#define PLM_BYTE_PRODUCTS  // what follows runs where cpu_multiplies_bytes() says so
typedef int8_t vb __attribute__((vector_size(PLM_VECTOR_BYTES)));
PLM_INLINE vb load_bytes(const int8_t* p) {
  vb v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
// Lane i: sum + a[4i] b[4i] + ... + a[4i + 3] b[4i + 3], a without sign. VNNI is no part of x86-64-v4, so
// that there is no intrinsic.
PLM_INLINE vi add_fours(vi sum, vb a, vb b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
// The instruction wants one operand without sign: the weight, as w + 128. So a sum is 128 times the sum of
// the activations too large, whatever the column, and is right again once that is taken off, even if it has
// wrapped around meanwhile.
template <>
struct Dot<int8_t, int8_t> {
  using Sum = int32_t;
  using Vec = vi;
  enum : int { step = PLM_VECTOR_BYTES };
  PLM_INLINE static vb activations(const int8_t* p) { return load_bytes(p); }
  PLM_INLINE static vb weights(const int8_t* p) { return load_bytes(p) ^ static_cast<int8_t>(-128); }
  PLM_INLINE static vi add(vi sum, vb x, vb w) { return add_fours(sum, w, x); }
  PLM_INLINE static int32_t product(int8_t x, int8_t w) { return x * (w + 128); }
};
#endif

}  // namespace plmcore::PLM_ISA
