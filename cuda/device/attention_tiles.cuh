// Tiles of 64 x 64 for float32 and float64, and for heads of half types that tensor cores do not take:
// products in registers from shared memory. A block has 16 x 16 threads. Thread (x, y) has the rows 4 y + i
// and the columns 4 x + j, i, j < 4, of a product; of scores the keys x + 16 j, whose dropout shares random
// blocks.
//
// Every product is c[i][j] += sum over n of a[n][i] b[n][j] with a and b in shared memory, rows of kTile
// elements (padded): two 16-byte loads for 16 multiply-adds in float32.
#pragma once

#include "device/attention_call.cuh"
#include "device/reduce.cuh"

namespace plmcore::cuda {

inline constexpr int kTileThreads = 256;
inline constexpr int kChunk = 32;         // columns of q and k that lie in shared memory at a time
inline constexpr int kLine =
    kTile + 4;   // elements between lines of a buffer: no two threads of a warp collide
template <class A> inline constexpr size_t kBuffer = sizeof(A) * kTile * kLine;  // bytes of one

struct ThreadPlace {
  int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
};

// Up to 64 rows of one head.
struct HeadRows {
  const void* at;  // null: zeros
  DType dtype;
  bool packs;
  int64_t first, stride;  // of the first row's first element; between rows
  int rows, D;            // rows that are there; beyond them and D there are zeros
};
__device__ __forceinline__ HeadRows rows_of(const AttentionCall& c, const void* at, int64_t stride,
                                            int64_t row, int h, int rows) {
  return {
      at, c.dtype, c.packs, row * stride + static_cast<int64_t>(h) * c.D, stride, at ? min(rows, kTile) : 0,
      c.D};
}

// Elements d ... d + 3 of a row.
template <class A>
__device__ __forceinline__ void fetch(const HeadRows& from, int row, int d, A (&to)[4]) {
  const int64_t at = from.first + row * from.stride + d;
  const int n = row < from.rows ? min(from.D - d, 4) : 0;
  if (n == 4 && from.packs) {
    if constexpr (sizeof(A) == 8) load<4>(static_cast<const A*>(from.at) + at, to);
    else if (from.dtype == DType::float32) load<4>(static_cast<const float*>(from.at) + at, to);
    else if (from.dtype == DType::bfloat16) load<4>(static_cast<const bf16*>(from.at) + at, to);
    else load<4>(static_cast<const f16*>(from.at) + at, to);
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) to[e] = e < n ? read<A>(from.at, from.dtype, at + e) : A(0);
}
// to[d][row] for the columns [d0, d0 + 32); kKeys: row r is in column 4 (r % 16) + r / 16, so that the four
// keys of a thread lie side by side.
template <bool kKeys, class A>
__device__ __forceinline__ void load_columns(const HeadRows& from, int d0, A* to) {
  const int row = static_cast<int>(threadIdx.x) % kTile, d = static_cast<int>(threadIdx.x) / kTile * 8;
  const int column = kKeys ? row % 16 * 4 + row / 16 : row;
#pragma unroll
  for (int part = 0; part < 8; part += 4) {
    A x[4];
    fetch(from, row, d0 + d + part, x);
#pragma unroll
    for (int e = 0; e < 4; ++e) to[(d + part + e) * kLine + column] = x[e];
  }
}
// to[row][column] for the columns [c0, c0 + 64).
template <class A>
__device__ __forceinline__ void load_rows(const HeadRows& from, int c0, A* to) {
  const ThreadPlace me;
#pragma unroll
  for (int row = me.y; row < kTile; row += 16) {
    A x[4];
    fetch(from, row, c0 + 4 * me.x, x);
    store<4>(to + row * kLine + 4 * me.x, x);
  }
}

// Sums of 32 products first: a long sum in one piece would lose digits.
template <int N, class A>
__device__ __forceinline__ void multiply(const A* a, const A* b, A (&c)[4][4]) {
  const ThreadPlace me;
  a += 4 * me.y;
  b += 4 * me.x;
#pragma unroll 1
  for (int first = 0; first < N; first += kChunk) {
    A sum[4][4] = {};
#pragma unroll(sizeof(A) == 4 ? 2 : 1)  // more would not fit into the registers
    for (int n = first; n < first + kChunk; ++n) {
      A left[4], right[4];
      load<4>(a + n * kLine, left);
      load<4>(b + n * kLine, right);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = std::fma(left[i], right[j], sum[i][j]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) c[i][j] += sum[i][j];
  }
}
// The products of the rows of x and of y (keys x + 16 j) over all D columns. `buffer` may be used again after
// it.
template <class A>
__device__ __forceinline__ void multiply_heads(const HeadRows& x, const HeadRows& y, A* buffer,
                                               A (&c)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) c[i][j] = 0;
#pragma unroll 1
  for (int d = 0; d < x.D; d += kChunk) {
    load_columns<false>(x, d, buffer);
    load_columns<true>(y, d, buffer + kChunk * kLine);
    __syncthreads();
    multiply<kChunk>(buffer, buffer + kChunk * kLine, c);
    __syncthreads();
  }
}

// The scores of the queries [i, i + 64) for the keys [key, key + 64).
template <class A>
__device__ __forceinline__ void score(const AttentionCall& c, const Place& at, const Sight& sight, int i,
                                      int key, A* buffer, A (&s)[4][4]) {
  multiply_heads(rows_of(c, c.q, c.q_stride, at.s.q_row + i, at.h, at.s.T - i),
                 rows_of(c, c.k, c.k_stride, at.s.k_row + key, at.h, at.s.keys - key), buffer, s);
  const A scale = static_cast<A>(c.scale * kLog2e);
  const ThreadPlace me;
  const bool as_is = unruled(c, at, sight, i, kTile, key, kTile);
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      s[r][j] *= scale;
      if (!as_is) s[r][j] = ruled(c, at, sight, s[r][j], i + 4 * me.y + r, key + me.x + 16 * j);
    }
}

// What dropout multiplies the four weights of query i by.
template <class A>
__device__ __forceinline__ void kept_factors(const AttentionCall& c, const Place& at, int i, int key,
                                             A (&f)[4]) {
  const Kept random(c, at.lse + i, key, ThreadPlace().x);
#pragma unroll
  for (int j = 0; j < 4; ++j) f[j] = random.kept(c, j) ? static_cast<A>(c.keep) : A(0);
}

// to[key][query], or to[query][key].
template <class A>
__device__ __forceinline__ void store_by_key(const A (&x)[4][4], A* to) {
  const ThreadPlace me;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const A column[4] = {x[0][j], x[1][j], x[2][j], x[3][j]};
    store<4>(to + (me.x + 16 * j) * kLine + 4 * me.y, column);
  }
}
template <class A>
__device__ __forceinline__ void store_by_query(const A (&x)[4][4], A* to) {
  const ThreadPlace me;
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) to[(4 * me.y + r) * kLine + me.x + 16 * j] = x[r][j];
}

// Columns c0 ... c0 + 63 of rows [row, row + rows) of a result, times `factor` of the row.
template <class A>
__device__ __forceinline__ void write_rows(const AttentionCall& c, void* to, int64_t stride, int64_t row,
                                           int rows, int h, int c0, const A (&x)[4][4],
                                           const A (&factor)[4]) {
  const ThreadPlace me;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = 4 * me.y + r, column = c0 + 4 * me.x;
    if (i >= rows) continue;
    const int64_t at = (row + i) * stride + static_cast<int64_t>(h) * c.D + column;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (column + j < c.D) write<A>(to, c.dtype, at + j, factor[r] == 0 ? A(0) : x[r][j] * factor[r]);
  }
}

template <class F, class A>
__device__ __forceinline__ A reduce16(A v) {  // over the 16 threads of a row
#pragma unroll
  for (int step = 8; step > 0; step /= 2) v = F()(v, __shfl_xor_sync(kFullWarp, v, step));
  return v;
}

}  // namespace plmcore::cuda
