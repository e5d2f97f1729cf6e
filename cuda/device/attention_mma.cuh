// Tiles of bf16 and f16 for tensor cores (device/ptx.cuh): rows of one head in shared memory, and the
// products that a warp makes of them. A warp has 16 rows of a product. In registers a product x [16, N] is
// x[N / 8][4]: a thread has of the rows g and g + 8 (r = 0, 1) the columns 8 n + 2 t + e in x[n][2 r + e], e
// = 0, 1, with g = lane / 4, t = lane % 4.
#pragma once

#include "device/attention_call.cuh"
#include "device/ptx.cuh"
#include "device/reduce.cuh"

namespace plmcore::cuda {

// Rows of W elements and 16 bytes more: the eight rows that one load takes together lie in different banks.
template <int W> inline constexpr int kRow = W + 8;
template <int W>
__device__ __forceinline__ int place(int row, int d) {
  return row * kRow<W> + d;
}

struct Lane {
  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int g = lane / 4, t = lane % 4;
};

// Rows [0, rows) of one head, and zeros up to N rows and W columns. Asynchronous where the rows are aligned.
template <int N, int W, int kThreads, class T>
__device__ __forceinline__ void copy_rows(const AttentionCall& c, const T* from, int64_t stride, int rows,
                                          T* to) {
  if (c.vectors) {
#pragma unroll 2
    for (int p = static_cast<int>(threadIdx.x); p < N * (W / 8); p += kThreads) {
      const int row = p / (W / 8), d = p % (W / 8) * 8;
      const bool there = row < rows && d < c.D;
      cp_async<16>(to + place<W>(row, d), there ? from + row * stride + d : from, there);
    }
    return;
  }
#pragma unroll 1
  for (int p = static_cast<int>(threadIdx.x); p < N * W; p += kThreads) {
    const int row = p / W, d = p % W;
    to[place<W>(row, d)] = row < rows && d < c.D ? from[row * stride + d] : T(0.f);
  }
}
template <class T>
__device__ __forceinline__ const T* head_rows(const void* at, int64_t row, int64_t stride, int h, int D) {
  return static_cast<const T*>(at) + row * stride + static_cast<int64_t>(h) * D;
}

// The 16 x 16 operand a of rows [row, row + 16), columns [d, d + 16).
template <int W, class T>
__device__ __forceinline__ void load_left(uint32_t (&a)[4], const T* rows, int row, int d) {
  const Lane me;
  ldmatrix(a, rows + place<W>(row + me.lane % 16, d + me.lane / 16 * 8));
}
// Two operands b, the rows [row, row + 8) and [row + 8, row + 16) as columns, with d running over [d, d +
// 16).
template <int W, class T>
__device__ __forceinline__ void load_right(uint32_t (&b)[4], const T* rows, int row, int d) {
  const Lane me;
  ldmatrix(b, rows + place<W>(row + me.lane / 16 * 8 + me.lane % 8, d + me.lane / 8 % 2 * 8));
}
// Two operands b, the columns [d, d + 8) and [d + 8, d + 16), with the rows running over [row, row + 16).
template <int W, class T>
__device__ __forceinline__ void load_right_rows(uint32_t (&b)[4], const T* rows, int row, int d) {
  const Lane me;
  ldmatrix<true>(b, rows + place<W>(row + me.lane % 16, d + me.lane / 16 * 8));
}
template <class T>
__device__ __forceinline__ void mma_pair(float (&c0)[4], float (&c1)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[4]) {
  const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
  mma<T>(c0, a, b0);
  mma<T>(c1, a, b1);
}

// x [16, N] = the rows [row, row + 16) of `left` times the first N rows of `right`, over W columns.
template <int W, int N, class T>
__device__ __forceinline__ void multiply_rows(const T* left, int row, const T* right, float (&x)[N / 8][4]) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) x[n][e] = 0;
#pragma unroll
  for (int d = 0; d < W; d += 16) {
    uint32_t a[4];
    load_left<W>(a, left, row, d);
#pragma unroll
    for (int n = 0; n < N; n += 16) {
      uint32_t b[4];
      load_right<W>(b, right, n, d);
      mma_pair<T>(x[n / 8], x[n / 8 + 1], a, b);
    }
  }
}

template <class T>
__device__ __forceinline__ uint32_t pack_pair(float low, float high) {
  uint32_t bits;
  if constexpr (std::is_same_v<T, bf16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}
// y [16, C] += x [16, N] times the first N rows of `right`, columns [column, column + C). x goes from the
// layout of a product to that of an operand without leaving its thread.
template <int W, int C, int N, class T>
__device__ __forceinline__ void multiply_product(const float (&x)[N / 8][4], const T* right, int column,
                                                 float (&y)[C / 8][4]) {
#pragma unroll
  for (int n = 0; n < N; n += 16) {
    const float (&low)[4] = x[n / 8], (&high)[4] = x[n / 8 + 1];
    const uint32_t a[4] = {pack_pair<T>(low[0], low[1]), pack_pair<T>(low[2], low[3]),
                           pack_pair<T>(high[0], high[1]), pack_pair<T>(high[2], high[3])};
#pragma unroll
    for (int d = 0; d < C; d += 16) {
      uint32_t b[4];
      load_right_rows<W>(b, right, n, column + d);
      mma_pair<T>(y[d / 8], y[d / 8 + 1], a, b);
    }
  }
}

// The columns column ... column + 1 of a row of a result; `to` is the row of a head.
template <class T>
__device__ __forceinline__ void write_pair(const AttentionCall& c, T* to, int column, float x, float y) {
  if (c.vectors) {
    if (column < c.D) *reinterpret_cast<uint32_t*>(to + column) = pack_pair<T>(x, y);
    return;
  }
  if (column < c.D) to[column] = narrow<T>(x);
  if (column + 1 < c.D) to[column + 1] = narrow<T>(y);
}
// Rows row + g + 8 r of a result that are below `end`, from column `column` on, times factor[r].
template <int C, class T>
__device__ __forceinline__ void write_product(const AttentionCall& c, T* to, int64_t stride, int row, int end,
                                              int column, const float (&x)[C / 8][4],
                                              const float (&factor)[2]) {
  const Lane me;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row + me.g + 8 * r >= end) continue;
    T* line = to + (row + me.g + 8 * r) * stride;
#pragma unroll
    for (int n = 0; n < C / 8; ++n)
      write_pair(c, line, column + 8 * n + 2 * me.t, factor[r] == 0 ? 0.f : x[n][2 * r] * factor[r],
                 factor[r] == 0 ? 0.f : x[n][2 * r + 1] * factor[r]);
  }
}

// What holds for each element of a product is a bit, 4 n + 2 r + e: found in loops that are not unrolled, so
// that they need few registers. Rows are queries and columns keys; kByKey: the other way round.
template <bool kByKey>
struct Spot {
  int i, j;  // query, key
  __device__ Spot(int row, int column, int n, int e) {
    const Lane me;
    row += me.g + e / 2 * 8;
    column += 8 * n + 2 * me.t + e % 2;
    i = kByKey ? column : row;
    j = kByKey ? row : column;
  }
};
// The elements that are seen, of the products of the rows `row` ... and the columns `column` ...
template <int N, bool kByKey>
__device__ __forceinline__ uint32_t seen_bits(const AttentionCall& c, const Place& at, const Sight& sight,
                                              int row, int column) {
  const auto* mask = static_cast<const uint8_t*>(c.mask.at);
  uint32_t bits = 0;
#pragma unroll 1
  for (int b = 0; b < N / 2; ++b) {
    const Spot<kByKey> spot(row, column, b / 4, b % 4);
    bool seen = spot.i < at.s.T && sight.sees(spot.i, spot.j);
    if (seen && mask) seen = mask[c.mask.row(at.b, at.h, spot.i) + spot.j];
    bits |= static_cast<uint32_t>(seen) << b;
  }
  return bits;
}
// Products to scores: times the scale, with the bias, and -inf where nothing is seen.
template <class T, int N, bool kByKey>
__device__ __forceinline__ void rule(const AttentionCall& c, const Place& at, const Sight& sight, float scale,
                                     int row, int column, float (&x)[N / 8][4]) {
  constexpr DType kDType = std::is_same_v<T, bf16> ? DType::bfloat16 : DType::float16;
  const uint32_t seen = seen_bits<N, kByKey>(c, at, sight, row, column);
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) x[n][e] = seen >> (4 * n + e) & 1 ? x[n][e] * scale : -INFINITY;
  if (!c.bias.at) return;
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Spot<kByKey> spot(row, column, n, e);
      if (seen >> (4 * n + e) & 1)
        x[n][e] += read<float>(c.bias.at, kDType, c.bias.row(at.b, at.h, spot.i) + spot.j) *
                   static_cast<float>(kLog2e);
    }
}
// The weights that dropout keeps, of the queries row + g + 8 r (of all rows of the log-sums) and N keys from
// `key` on. Columns of equal n % 2 and e share a random block.
template <int N>
__device__ __forceinline__ uint32_t kept_bits(const AttentionCall& c, int64_t row, int key) {
  const Lane me;
  const int word = key % 64 / 16;
  uint32_t bits = 0;
#pragma unroll 1
  for (int part = 0; part < 8; ++part) {
    const int r = part / 4, odd = part / 2 % 2, e = part % 2;
    const Kept random(c, row + me.g + 8 * r, key / 64 * 64, odd * 8 + 2 * me.t + e);
#pragma unroll
    for (int w = 0; w < 4; ++w)
      if (w >= word && w < word + N / 16)
        bits |= static_cast<uint32_t>(random.kept(c, w)) << (4 * (2 * (w - word) + odd) + 2 * r + e);
  }
  return bits;
}

// f(Width) of the narrowest kernel for heads of D columns.
template <class F>
const char* for_width(int D, F f) {
  if (D <= 32) return f(Constant<32>{});
  if (D <= 64) return f(Constant<64>{});
  if (D <= 96) return f(Constant<96>{});
  if (D <= 128) return f(Constant<128>{});
  return f(Constant<256>{});
}

}  // namespace plmcore::cuda
