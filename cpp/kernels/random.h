// Philox on vectors, and the random ops' loop over elements. The words are those of random_word in
// core/philox.h for every vector width.
#pragma once

#include "core/philox.h"
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

typedef uint64_t vq __attribute__((vector_size(PLM_VECTOR_BYTES)));

// Products of the low halves of 64-bit lanes. The compiler does not see that one instruction does it.
PLM_INLINE vq mul_low_halves(vq a, vq b) {
#if defined(__AVX512F__) && PLM_VECTOR_BYTES == 64
  typedef int v16 __attribute__((vector_size(64)));
  typedef long long v8 __attribute__((vector_size(64)));
  return __builtin_bit_cast(
      vq, __builtin_ia32_pmuludq512_mask(__builtin_bit_cast(v16, a), __builtin_bit_cast(v16, b), v8{},
                                         static_cast<unsigned char>(-1)));
#elif defined(__AVX2__)
  typedef int v8 __attribute__((vector_size(32)));
  v8 x[sizeof(vq) / 32], y[sizeof(vq) / 32];
  __builtin_memcpy(x, &a, sizeof a);
  __builtin_memcpy(y, &b, sizeof b);
  for (size_t k = 0; k < sizeof(vq) / 32; ++k)
    x[k] = __builtin_bit_cast(v8, __builtin_ia32_pmuludq256(x[k], y[k]));
  vq r;
  __builtin_memcpy(&r, x, sizeof r);
  return r;
#elif defined(__SSE2__)
  typedef int v4 __attribute__((vector_size(16)));
  return __builtin_bit_cast(vq,
                            __builtin_ia32_pmuludq128(__builtin_bit_cast(v4, a), __builtin_bit_cast(v4, b)));
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

struct RandomWords {
  vu word[4];  // of the blocks block ... block + kF - 1
};

class Philox {
 public:
  PLM_INLINE explicit Philox(const int64_t* state) : offset_(static_cast<uint64_t>(state[1])) {
    uint32_t k0 = static_cast<uint32_t>(state[0]),
             k1 = static_cast<uint32_t>(static_cast<uint64_t>(state[0]) >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      key0_[round] = k0 - vq{};
      key1_[round] = k1 - vq{};
    }
    for (int i = 0; i < kD; ++i) lanes_[i] = 2 * static_cast<uint64_t>(i);
  }

  // Blocks live in 64-bit lanes, even ones in one vector and odd ones in another; only the low halves count,
  // so that the products need no shuffles.
  PLM_INLINE RandomWords operator()(uint64_t block) const {
    block += offset_;
    vq c0[2] = {lanes_ + block, lanes_ + (block + 1)}, c1[2], c2[2] = {}, c3[2] = {};
    for (int h = 0; h < 2; ++h) c1[h] = c0[h] >> 32;
    const vq m0 = uint64_t{0xD2511F53u} - vq{}, m1 = uint64_t{0xCD9E8D57u} - vq{};
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round)
      for (int h = 0; h < 2; ++h) {
        const vq p0 = mul_low_halves(c0[h], m0), p1 = mul_low_halves(c2[h], m1);
        c0[h] = (p1 >> 32) ^ (c1[h] ^ key0_[round]);
        c2[h] = (p0 >> 32) ^ (c3[h] ^ key1_[round]);
        c1[h] = p1;
        c3[h] = p0;
      }
    return {{weave(c0), weave(c1), weave(c2), weave(c3)}};
  }

 private:
  PLM_INLINE static vu weave(const vq* c) {
    return __builtin_bit_cast(vu, (c[0] & 0xffffffffu) | (c[1] << 32));
  }

  uint64_t offset_;
  vq lanes_, key0_[10], key1_[10];
};

// f(r, i) over a draw's elements in [begin, end), with r.word[w] for the elements from i + 16 w on. kGroup
// elements share 16 blocks: 64 that take a word each, or 128 that take half a word (the high halves belong to
// i + 64 + 16 w on). begin is a multiple of the group; the last group may reach beyond `end`, and f cuts it
// off.
template <int kGroup, class F>
PLM_INLINE void for_random(const int64_t* state, int64_t begin, int64_t end, F f) {
  const Philox philox(state);
  for (int64_t i = begin; i < end; i += kGroup)
    for (int h = 0; h < 16; h += kF) f(philox(static_cast<uint64_t>(i / kGroup * 16 + h)), i + h);
}
// y[i ...] = v up to `end`
template <class T>
PLM_INLINE void store_until(T* y, int64_t i, int64_t end, vf v) {
  if constexpr (!std::is_same_v<T, double>)
    if (i + kF <= end) return store(y + i, v);
  for (int k = 0; k < kF && i + k < end; ++k) y[i + k] = from_float<T>(v[k]);
}

// [0, 1) with 24 bits.
PLM_INLINE vf uniform01(vu x) {
  return __builtin_convertvector(__builtin_bit_cast(vi, x >> 8), vf) * 0x1p-24f;
}

}  // namespace plmcore::PLM_ISA
