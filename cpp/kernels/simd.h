// Vectors of the instruction set this file is compiled for, on the compiler's vector extension: + - * / < ?:
// work as on scalars, and a * b + c contracts to FMA. Everything is inlined and lives in a namespace per
// instruction set, so that no copy compiled for a newer processor can be linked into an older one's path.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "plmcore/dtype.h"

#ifndef PLM_ISA
#error "kernels are compiled once per instruction set: PLM_ISA names the namespace"
#endif
#define PLM_INLINE [[gnu::always_inline]] inline

namespace plmcore::PLM_ISA {

#ifndef PLM_VECTOR_BYTES
#if defined(__AVX512F__)
#define PLM_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define PLM_VECTOR_BYTES 32
#else
#define PLM_VECTOR_BYTES 16
#endif
#endif

typedef float vf __attribute__((vector_size(PLM_VECTOR_BYTES)));
typedef int32_t vi __attribute__((vector_size(PLM_VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(PLM_VECTOR_BYTES)));
typedef double vd __attribute__((vector_size(PLM_VECTOR_BYTES)));
typedef int16_t vs __attribute__((vector_size(PLM_VECTOR_BYTES)));
constexpr int kF = PLM_VECTOR_BYTES / 4;  // floats in a vector
constexpr int kD = PLM_VECTOR_BYTES / 8;
constexpr int kS = PLM_VECTOR_BYTES / 2;

struct bf16 {
  uint16_t bits;
};
struct f16 {
  _Float16 value;
};

// ---- scalar conversions ----
PLM_INLINE float to_float(float x) { return x; }
PLM_INLINE float to_float(bf16 x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16); }
PLM_INLINE float to_float(f16 x) { return static_cast<float>(x.value); }
PLM_INLINE double to_float(double x) { return x; }
template <class T, class A>
PLM_INLINE T from_float(A x) {
  if constexpr (std::is_same_v<T, bf16>) {  // round to nearest even; NaN stays NaN
    const uint32_t u = __builtin_bit_cast(uint32_t, static_cast<float>(x));
    if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(u >> 16 | 64)};
    return {static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1)) >> 16)};
  } else if constexpr (std::is_same_v<T, f16>) {
    return {static_cast<_Float16>(x)};
  } else {
    return static_cast<T>(x);
  }
}

// ---- vectors ----
PLM_INLINE vf splat(float x) { return x - vf{}; }
PLM_INLINE vd splat(double x) { return x - vd{}; }
PLM_INLINE vf load(const float* p) {
  vf v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
PLM_INLINE vd load(const double* p) {
  vd v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
PLM_INLINE vi load(const int32_t* p) {
  vi v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
PLM_INLINE void store(float* p, vf v) { __builtin_memcpy(p, &v, sizeof v); }
PLM_INLINE void store(double* p, vd v) { __builtin_memcpy(p, &v, sizeof v); }
#if defined(__AVX2__)
// Eight elements as floats.
typedef float v8f __attribute__((vector_size(32)));
PLM_INLINE v8f load8(const float* p) {
  v8f v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
PLM_INLINE v8f load8(const bf16* p) {
  return __builtin_bit_cast(
      v8f,
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}
PLM_INLINE v8f load8(const f16* p) {
  return __builtin_bit_cast(v8f, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
#endif
PLM_INLINE vf load(const bf16* p) {
#if defined(__AVX512F__) && PLM_VECTOR_BYTES == 64
  return __builtin_bit_cast(
      vf,
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
#elif defined(__AVX2__)
  vf v;
  for (int i = 0; i < kF; i += 8) {
    const v8f part = load8(p + i);
    __builtin_memcpy(reinterpret_cast<float*>(&v) + i, &part, sizeof part);
  }
  return v;
#else
  typedef uint16_t half __attribute__((vector_size(PLM_VECTOR_BYTES / 2)));
  half h;
  __builtin_memcpy(&h, p, sizeof h);
  return __builtin_bit_cast(vf, __builtin_convertvector(h, vu) << 16);
#endif
}
PLM_INLINE void store(bf16* p, vf v) {
  typedef uint16_t half __attribute__((vector_size(PLM_VECTOR_BYTES / 2)));
  const vu u = __builtin_bit_cast(vu, v);
  const vu nan = __builtin_bit_cast(vu, v != v);
  const vu rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  const half h = __builtin_convertvector((rounded & ~nan) | ((u >> 16 | 64u) & nan), half);
  __builtin_memcpy(p, &h, sizeof h);
}
PLM_INLINE vf load(const f16* p) {
  vf v;
#if defined(__AVX2__)
  for (int i = 0; i < kF; i += 8) {
    const v8f part = load8(p + i);
    __builtin_memcpy(reinterpret_cast<float*>(&v) + i, &part, sizeof part);
  }
#else
  for (int i = 0; i < kF; ++i) v[i] = static_cast<float>(p[i].value);
#endif
  return v;
}
PLM_INLINE void store(f16* p, vf v) {
#if defined(__F16C__)
  for (int i = 0; i < kF; i += 8) {
    __m256 part;
    __builtin_memcpy(&part, reinterpret_cast<const float*>(&v) + i, sizeof part);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + i), _mm256_cvtps_ph(part, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  for (int i = 0; i < kF; ++i) p[i].value = static_cast<_Float16>(v[i]);
#endif
}
// The first n < kF elements; the others read as `fill`.
template <class T>
PLM_INLINE auto load_part(const T* p, int n, float fill = 0) {
  using V = decltype(load(p));
  V v = splat(static_cast<std::conditional_t<std::is_same_v<V, vd>, double, float>>(fill));
  for (int i = 0; i < n; ++i) v[i] = to_float(p[i]);
  return v;
}
template <class T, class V>
PLM_INLINE void store_part(T* p, V v, int n) {
  for (int i = 0; i < n; ++i) p[i] = from_float<T>(v[i]);
}
#if defined(__AVX2__) && PLM_VECTOR_BYTES == 32
// -1 in the first n lanes: the mask of a masked load or store, which never touches the others' memory.
PLM_INLINE vi first_lanes(int n) { return vi{0, 1, 2, 3, 4, 5, 6, 7} < n; }
PLM_INLINE vf load_part(const float* p, int n, float fill = 0) {
  const vi mask = first_lanes(n);
  const vf v = _mm256_maskload_ps(p, reinterpret_cast<__m256i>(mask));
  return __builtin_constant_p(fill) && fill == 0 ? v : (mask ? v : splat(fill));
}
PLM_INLINE void store_part(float* p, vf v, int n) {
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(first_lanes(n)), v);
}
#endif

// The larger (smaller) of the two; b where either is NaN. One instruction, which the compiler does not find
// by itself.
#if defined(__AVX512F__) && PLM_VECTOR_BYTES == 64
PLM_INLINE vf max(vf a, vf b) { return _mm512_max_ps(a, b); }
PLM_INLINE vf min(vf a, vf b) { return _mm512_min_ps(a, b); }
#elif defined(__AVX2__) && PLM_VECTOR_BYTES == 32
PLM_INLINE vf max(vf a, vf b) { return _mm256_max_ps(a, b); }
PLM_INLINE vf min(vf a, vf b) { return _mm256_min_ps(a, b); }
#elif defined(__SSE2__) && PLM_VECTOR_BYTES == 16
PLM_INLINE vf max(vf a, vf b) { return _mm_max_ps(a, b); }
PLM_INLINE vf min(vf a, vf b) { return _mm_min_ps(a, b); }
#else
PLM_INLINE vf max(vf a, vf b) { return a > b ? a : b; }
PLM_INLINE vf min(vf a, vf b) { return a < b ? a : b; }
#endif
PLM_INLINE vd max(vd a, vd b) { return a > b ? a : b; }
PLM_INLINE vd min(vd a, vd b) { return a < b ? a : b; }
// v[i] and v[i + W / 2] meet, then quarters, and so on: all lanes hold the result.
template <int w, class V, class F, size_t... i>
PLM_INLINE V fold_from(V v, F f, std::index_sequence<i...> lanes) {
  if constexpr (w == 0) return v;
  else return fold_from<w / 2>(f(v, __builtin_shufflevector(v, v, (i ^ w)...)), f, lanes);
}
template <class V, class F>
PLM_INLINE V fold(V v, F f) {
  constexpr size_t n = sizeof(V) / sizeof(v[0]);
  return fold_from<n / 2>(v, f, std::make_index_sequence<n>{});
}
// Lane i: the sum of the lanes of v[i], for the first n of kF vectors, each added up in the order of fold.
// Two vectors share an addition, so that all of them take little more than one alone.
template <int w, class V, size_t... i>
PLM_INLINE V merge_sums(V p, V q, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i);
  return __builtin_shufflevector(p, q, (i & w ? n + i : i)...) +
         __builtin_shufflevector(p, q, ((i & w ? n + i : i) ^ w)...);
}
template <int w, int at, int n, class V>
PLM_INLINE V sums_from(const V* v) {
  constexpr auto lanes = std::make_index_sequence<sizeof(V) / sizeof(v[0][0])>{};
  if constexpr (w == lanes.size()) return v[at];
  else {
    const V p = sums_from<2 * w, at, n>(v);
    if constexpr (at + w < n) return merge_sums<w>(p, sums_from<2 * w, at + w, n>(v), lanes);
    else return merge_sums<w>(p, p, lanes);
  }
}
template <int n, class V>
PLM_INLINE V lane_sums(const V* v) {
  return sums_from<1, 0, n>(v);
}
PLM_INLINE float reduce_add(vf v) {
  return fold(v, [](vf a, vf b) { return a + b; })[0];
}
PLM_INLINE double reduce_add(vd v) {
  return fold(v, [](vd a, vd b) { return a + b; })[0];
}
PLM_INLINE float reduce_max(vf v) {
  return fold(v, [](vf a, vf b) { return max(a, b); })[0];
}
PLM_INLINE double reduce_max(vd v) {
  return fold(v, [](vd a, vd b) { return max(a, b); })[0];
}

// ---- small whole numbers ----
PLM_INLINE vs load(const int16_t* p) {
  vs v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
typedef int16_t v16s __attribute__((vector_size(32)));
// Sixteen bytes. The conversions of the vector extension take four instructions where one would do.
PLM_INLINE v16s widen(const int8_t* p) {
#if defined(__AVX2__)
  return __builtin_bit_cast(v16s, _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  typedef int8_t bytes __attribute__((vector_size(16)));
  bytes b;
  __builtin_memcpy(&b, p, sizeof b);
  return __builtin_convertvector(b, v16s);
#endif
}
PLM_INLINE vs load(const int8_t* p) {  // widened
#if defined(__AVX512BW__) && PLM_VECTOR_BYTES == 64
  return __builtin_bit_cast(vs,
                            _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__AVX2__)
  vs v;
  for (int i = 0; i < kS; i += 16) {
    const v16s part = widen(p + i);
    __builtin_memcpy(reinterpret_cast<int16_t*>(&v) + i, &part, sizeof part);
  }
  return v;
#else
  typedef int8_t bytes __attribute__((vector_size(kS)));
  bytes b;
  __builtin_memcpy(&b, p, sizeof b);
  return __builtin_convertvector(b, vs);
#endif
}
PLM_INLINE void store(int32_t* p, vi v) { __builtin_memcpy(p, &v, sizeof v); }
PLM_INLINE vf to_float(vi v) { return __builtin_convertvector(v, vf); }
// Lane i: a[2i] b[2i] + a[2i + 1] b[2i + 1].
PLM_INLINE vi multiply_pairs(vs a, vs b) {
#if defined(__AVX512BW__) && PLM_VECTOR_BYTES == 64
  return __builtin_bit_cast(
      vi, _mm512_madd_epi16(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b)));
#elif defined(__AVX2__)
  __m256i x[PLM_VECTOR_BYTES / 32], y[PLM_VECTOR_BYTES / 32];
  __builtin_memcpy(x, &a, sizeof a);
  __builtin_memcpy(y, &b, sizeof b);
  for (int i = 0; i < PLM_VECTOR_BYTES / 32; ++i) x[i] = _mm256_madd_epi16(x[i], y[i]);
  vi v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
#elif defined(__SSE2__)
  return __builtin_bit_cast(vi,
                            _mm_madd_epi16(__builtin_bit_cast(__m128i, a), __builtin_bit_cast(__m128i, b)));
#else
  vi v;
  for (int i = 0; i < kF; ++i) v[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
  return v;
#endif
}
// To the nearest whole number, the even one of two; never contracted with what made v.
PLM_INLINE vi round_to_int(vf v) {
#if defined(__AVX512F__) && PLM_VECTOR_BYTES == 64
  return __builtin_bit_cast(vi, _mm512_cvtps_epi32(v));
#elif defined(__AVX2__)
  __m256 x[PLM_VECTOR_BYTES / 32];
  __m256i y[PLM_VECTOR_BYTES / 32];
  __builtin_memcpy(x, &v, sizeof v);
  for (int i = 0; i < PLM_VECTOR_BYTES / 32; ++i) y[i] = _mm256_cvtps_epi32(x[i]);
  vi r;
  __builtin_memcpy(&r, y, sizeof r);
  return r;
#elif defined(__SSE2__)
  return __builtin_bit_cast(vi, _mm_cvtps_epi32(v));
#else
  vi r;
  for (int i = 0; i < kF; ++i) r[i] = static_cast<int32_t>(__builtin_rintf(v[i]));
  return r;
#endif
}
PLM_INLINE int32_t reduce_add(vi v) {
  return fold(v, [](vi a, vi b) { return a + b; })[0];
}

// Bit k: lane k of a mask is true.
PLM_INLINE uint32_t lane_bits(vi mask) {
#if defined(__AVX512DQ__) && PLM_VECTOR_BYTES == 64
  typedef int v16 __attribute__((vector_size(64)));
  return static_cast<uint16_t>(__builtin_ia32_cvtd2mask512(__builtin_bit_cast(v16, mask)));
#elif defined(__AVX2__)
  typedef float v8 __attribute__((vector_size(32)));
  v8 part[sizeof(vi) / 32];
  __builtin_memcpy(part, &mask, sizeof mask);
  uint32_t b = 0;
  for (size_t k = 0; k < sizeof(vi) / 32; ++k)
    b |= static_cast<uint32_t>(__builtin_ia32_movmskps256(part[k])) << 8 * k;
  return b;
#elif defined(__SSE2__)
  typedef float v4 __attribute__((vector_size(16)));
  return static_cast<uint32_t>(__builtin_ia32_movmskps(__builtin_bit_cast(v4, mask)));
#else
  uint32_t b = 0;
  for (int k = 0; k < kF; ++k) b |= (mask[k] ? 1u : 0u) << k;
  return b;
#endif
}

// The vector type and width of the arithmetic on elements of type T: float for the half types.
template <class T> struct Lane {
  using Vec = vf;
  using Scalar = float;
  enum : int { n = kF };
};
template <> struct Lane<double> {
  using Vec = vd;
  using Scalar = double;
  enum : int { n = kD };
};

}  // namespace plmcore::PLM_ISA
