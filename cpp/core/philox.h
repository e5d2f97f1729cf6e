// Philox 4x32 with ten rounds (Salmon et al., 2011): counter (block, 0), key = seed. Host and device code.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PLM_HOST_DEVICE __host__ __device__
#else
#define PLM_HOST_DEVICE
#endif

namespace plmcore {

struct Random4 {
  uint32_t x[4];
};

PLM_HOST_DEVICE inline Random4 philox(uint64_t seed, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Word of element i of a draw that starts at `offset`: 64 elements share 16 blocks, word by word, so that
// neighbours in a vector are neighbours in memory. Element i stays within the blocks offset ... offset + i:
// draws do not overlap.
PLM_HOST_DEVICE inline uint32_t random_word(uint64_t seed, uint64_t offset, uint64_t i) {
  return philox(seed, offset + i / 64 * 16 + i % 16).x[i / 16 % 4];
}
// Half a word of element i of a draw, for masks: 128 elements share 16 blocks, the low halves first.
PLM_HOST_DEVICE inline uint32_t random_half(uint64_t seed, uint64_t offset, uint64_t i) {
  return philox(seed, offset + i / 128 * 16 + i % 16).x[i / 16 % 4] >> (i / 64 % 2 * 16) & 0xffffu;
}

// [0, 1) with 24 bits.
PLM_HOST_DEVICE inline float uniform01(uint32_t x) { return static_cast<float>(x >> 8) * 0x1p-24f; }

}  // namespace plmcore
