// Stores that pass the cache by.
#pragma once

#include "kernels/simd.h"

namespace plmcore::PLM_ISA {

// A vector to memory past the cache, for results that do not fit it; p is a multiple of the vector's size.
// Before other threads may look, end_streams().
template <class V>
PLM_INLINE void stream(void* p, V v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64)
    return _mm512_stream_si512(static_cast<__m512i*>(p), __builtin_bit_cast(__m512i, v));
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) % 32 == 0) {
    __m256i part[sizeof(V) / 32];
    std::memcpy(part, &v, sizeof v);
    for (size_t i = 0; i < sizeof(V) / 32; ++i) _mm256_stream_si256(static_cast<__m256i*>(p) + i, part[i]);
    return;
  }
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(V) == 16)
    return _mm_stream_si128(static_cast<__m128i*>(p), __builtin_bit_cast(__m128i, v));
#endif
  std::memcpy(p, &v, sizeof v);
}
PLM_INLINE void end_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace plmcore::PLM_ISA
