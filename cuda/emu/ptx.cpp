// Products of tensor cores and loads of their operands, for all lanes of a warp at once (device/ptx.cuh has
// the layouts). Sums are added one after the other in float32. A GPU may add in another order and with other
// rounding.
#include "emu/ptx.h"

#include <array>

namespace plmcore::emu {

namespace {

struct Bf16 {
  static float widen(uint16_t x) {
    const uint32_t bits = static_cast<uint32_t>(x) << 16;
    float y;
    std::memcpy(&y, &bits, sizeof y);
    return y;
  }
};
struct F16 {
  static float widen(uint16_t x) {
    static const auto* table = [] {
      auto* all = new std::array<float, 65536>;
      for (uint32_t i = 0; i < 65536; ++i) {
        const __half_raw raw{static_cast<unsigned short>(i)};
        (*all)[i] = __half2float(__half(raw));
      }
      return all;
    }();
    return (*table)[x];
  }
};
struct Int8 {
  static int32_t widen(uint8_t x) { return static_cast<int8_t>(x); }
};

// Stored elements E of 32 bytes a row, made into C by Type.
template <class Type, class E, class C>
void product(void** lane) {
  constexpr int K = 32 / sizeof(E), kPart = 4 / sizeof(E);  // elements of a row; of a register
  C a[16][K], b[K][8];
  for (int l = 0; l < 32; ++l) {
    const auto& p = *static_cast<const Product<C>*>(lane[l]);
    const int g = l / 4, t = l % 4;
    E part[kPart];
    for (int r = 0; r < 4; ++r) {
      std::memcpy(part, &p.a[r], 4);
      for (int j = 0; j < kPart; ++j)
        a[g + 8 * (r % 2)][t * kPart + r / 2 * K / 2 + j] = Type::widen(part[j]);
    }
    for (int r = 0; r < 2; ++r) {
      std::memcpy(part, &p.b[r], 4);
      for (int j = 0; j < kPart; ++j) b[t * kPart + r * K / 2 + j][g] = Type::widen(part[j]);
    }
  }
  for (int g = 0; g < 8; ++g)
    for (int half = 0; half < 2; ++half) {
      const C* row = a[g + 8 * half];
      C sum[8];
      for (int t = 0; t < 4; ++t)
        std::memcpy(sum + 2 * t, static_cast<const Product<C>*>(lane[4 * g + t])->c + 2 * half,
                    2 * sizeof(C));
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < 8; ++n) sum[n] += row[k] * b[k][n];
      for (int t = 0; t < 4; ++t)
        std::memcpy(static_cast<const Product<C>*>(lane[4 * g + t])->c + 2 * half, sum + 2 * t,
                    2 * sizeof(C));
    }
}

}  // namespace

void mma_bf16(void** lane, uint32_t) { product<Bf16, uint16_t, float>(lane); }
void mma_f16(void** lane, uint32_t) { product<F16, uint16_t, float>(lane); }
void mma_int8(void** lane, uint32_t) { product<Int8, uint8_t, int32_t>(lane); }

void ldmatrix_rows(void** lane, int matrices, bool trans) {
  for (int l = 0; l < 32; ++l) {
    const int g = l / 4, t = l % 4;
    for (int i = 0; i < matrices; ++i) {
      const auto at = [&](int row, int column) {
        return static_cast<uint32_t>(static_cast<const MatrixRow*>(lane[8 * i + row])->row[column]);
      };
      static_cast<MatrixRow*>(lane[l])->got[i] =
          trans ? at(2 * t, g) | at(2 * t + 1, g) << 16 : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
    }
  }
}

}  // namespace plmcore::emu
