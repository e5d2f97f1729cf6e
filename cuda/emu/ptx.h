// The twins of device/ptx.cuh. A lane reads its row of a matrix when it arrives, before the others have come:
// what they wrote without a barrier is not there yet. Asynchronous copies arrive only when waited for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "emu/warp.h"

namespace plmcore::emu {

inline Place place_of(const std::source_location& where) {
  return {where.file_name(), static_cast<int>(where.line()), static_cast<int>(where.column())};
}

struct MatrixRow {
  uint16_t row[8];
  uint32_t got[4];
};
void ldmatrix_rows(void** lane, int matrices, bool trans);

template <int N, bool kTrans>
void ldmatrix(uint32_t (&to)[N], const void* row, Place place) {
  MatrixRow mine{};
  if (indices->lane < 8 * N) {  // the addresses of the other lanes are not used
    if (reinterpret_cast<uintptr_t>(row) % 16)
      fail("%s:%d: ldmatrix of a row whose address is not a multiple of 16", place.file, place.line);
    std::memcpy(mine.row, row, sizeof mine.row);
  }
  collective(
      0xffffffffu, kTrans ? kLoadMatrixTrans : kLoadMatrix, &mine,
      [](void** lane, uint32_t) { ldmatrix_rows(lane, N, kTrans); }, false, place);
  for (int i = 0; i < N; ++i) to[i] = mine.got[i];
}

// What a lane brings to c += a b.
template <class C>
struct Product {
  C* c;
  const uint32_t *a, *b;
};
void mma_bf16(void** lane, uint32_t mask);
void mma_f16(void** lane, uint32_t mask);
void mma_int8(void** lane, uint32_t mask);

}  // namespace plmcore::emu

namespace plmcore::cuda {

template <int kBytes>
void cp_async(void* shared, const void* global, bool there = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  emu::cp_async(shared, global, kBytes, there);
}
inline void cp_commit() { emu::cp_commit(); }
template <int N> void cp_wait() { emu::cp_wait(N); }

template <bool kTrans = false, int N>
void ldmatrix(uint32_t (&to)[N], const void* row,
              std::source_location where = std::source_location::current()) {
  static_assert(N == 1 || N == 2 || N == 4);
  emu::ldmatrix<N, kTrans>(to, row, emu::place_of(where));
}

template <class T>
void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
         std::source_location where = std::source_location::current()) {
  emu::Product<float> mine{c, a, b};
  emu::collective(0xffffffffu, emu::kProduct, &mine,
                  std::is_same_v<T, __nv_bfloat16> ? emu::mma_bf16 : emu::mma_f16, false,
                  emu::place_of(where));
}
inline void mma_int8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     std::source_location where = std::source_location::current()) {
  emu::Product<int32_t> mine{c, a, b};
  emu::collective(0xffffffffu, emu::kProduct, &mine, emu::mma_int8, false, emu::place_of(where));
}

inline float ex2(float x) {
  const float y = std::exp2(x);
  return y < 0x1p-126f ? 0.f : y;
}

}  // namespace plmcore::cuda
