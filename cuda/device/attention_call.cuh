// What attention's arguments mean to its kernels: where the rows of a sequence lie in the padded, packed and
// ragged layouts, which keys a query may see, and the dropout of its weights. Scores are in base 2: scaled by
// log2(e).
#pragma once

#include "core/attention_inputs.h"
#include "device/kernel.h"
#include "device/philox.cuh"

namespace plmcore::cuda {

using namespace attention_inputs;

inline constexpr int kTile = 64;  // rows of q or k that a block owns
inline constexpr double kLog2e = 1.44269504088896340736;

// Rows [q_row, q_row + T) of q and [k_row, k_row + S) of k and v.
struct Sequence {
  int64_t q_row, k_row;
  int T, S;
  int keys;  // that may be seen at all
  int prefix;  // keys that every query sees
  int first;  // the position of query 0
};

// A mask or bias [B|1, H|1, T|1, S]: elements between its planes and rows, 0 where one serves all.
struct Plane {
  void* at = nullptr;
  int64_t b_stride = 0, h_stride = 0, row_stride = 0;
  __device__ int64_t row(int b, int h, int i) const { return b * b_stride + h * h_stride + i * row_stride; }
};

// Plain data: the argument of every kernel of attention.
struct AttentionCall {
  DType dtype;
  const void *q, *k, *v;
  int64_t q_stride, k_stride;  // between rows, in elements
  const Sequence* table;  // one for each sequence; null: all have T queries and S keys
  int B, T, S, H, D;  // ragged: T = S = the rows of all sequences
  int64_t rows;  // of the log-sums of all heads
  bool ragged, packs;  // packs: four elements of a row are one load
  bool vectors;  // rows begin at multiples of 16 bytes
  bool causal;
  int band, stride;
  Plane mask, bias, weights, dweights;
  double scale;
  Draw draw;
  uint32_t threshold;  // of the 16 random bits of a weight that is kept
  double keep;  // 1 / (1 - p), or 0: no dropout
  int64_t groups;  // of 128 keys that share random blocks, in a row
  void *out, *lse;  // out [B, T, H, D], lse [2][rows]
  void* sums;  // of the weights before they are divided by it, [rows]; null: nobody asks
  // Backward.
  const void* dout;  // null: zeros
  void* delta;  // [rows]
  void *dq, *dk, *dv;
  Plane dbias;
  int bias_units, bias_heads, bias_rows, bias_columns;  // of dbias: B|1 times H|1, H|1, T, S
};

// One head of a sequence, and the first row (query or key) of a tile of it.
struct Place {
  Sequence s;
  int b, h, row;
  int64_t lse;  // of query 0
};

__device__ __forceinline__ Sequence sequence_of(const AttentionCall& c, int b) {
  if (c.table) return c.table[b];
  return {static_cast<int64_t>(b) * c.T, static_cast<int64_t>(b) * c.S, c.T, c.S, c.S, 0, c.S - c.T};
}
__device__ __forceinline__ int64_t lse_of(const AttentionCall& c, int b, int h, const Sequence& s) {
  return c.ragged ? static_cast<int64_t>(h) * c.T + s.q_row : (static_cast<int64_t>(b) * c.H + h) * c.T;
}

// Blocks for the tiles of `length` rows of every head. Ragged: sequence b has the slots from its first row /
// 64
// + b on, more than it needs; which sequences there are is known on the device alone.
inline int64_t tile_blocks(const AttentionCall& c, int length) {
  const int64_t tiles = (length + kTile - 1) / kTile;
  return (c.ragged ? length / kTile + c.B : tiles * c.B) * c.H;
}
// The tile of this block: false where it has none. The later ones come first: with a causal pattern they see
// more keys; kEarly: the other way round.
template <bool kEarly>
__device__ __forceinline__ bool find_place(const AttentionCall& c, int length, Place& to) {
  const unsigned heads = static_cast<unsigned>(c.H), batch = static_cast<unsigned>(c.B);
  const unsigned slot = blockIdx.x / heads;
  to.h = static_cast<int>(blockIdx.x - slot * heads);
  if (c.ragged) {
    int low = 0, high = c.B - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (c.table[middle].q_row / kTile + middle <= slot) low = middle;
      else high = middle - 1;
    }
    to.b = low;
    to.s = c.table[low];
    to.row = static_cast<int>(slot - to.s.q_row / kTile - low) * kTile;
  } else {
    const unsigned tile = slot / batch;
    to.b = static_cast<int>(slot - tile * batch);
    to.s = sequence_of(c, to.b);
    to.row =
        (kEarly ? static_cast<int>(tile) : (length + kTile - 1) / kTile - 1 - static_cast<int>(tile)) * kTile;
  }
  to.lse = lse_of(c, to.b, to.h, to.s);
  return to.row < (kEarly ? to.s.S : to.s.T);
}

// Which keys the queries of a sequence see.
struct Sight {
  bool causal;
  int band, stride, keys, prefix, first;
  __device__ Sight(const AttentionCall& c, const Sequence& s)
      : causal(c.causal), band(c.band), stride(c.stride), keys(s.keys), prefix(s.prefix), first(s.first) {}

  __device__ bool sees(int i, int j) const {
    if (j >= keys) return false;
    if (!causal || j < prefix) return true;
    const int back = first + i - j;
    if (back < 0) return false;
    if (band == 0 && stride == 0) return true;
    return back < band || (stride > 0 && back % stride == 0);
  }
  // The keys that any of the queries [i, i + n) sees lie in [begin, end).
  __device__ int begin(int i) const {
    return causal && band > 0 && stride == 0 && prefix == 0 ? max(first + i + 1 - band, 0) : 0;
  }
  __device__ int end(int i, int n) const { return causal ? min(max(first + i + n, prefix), keys) : keys; }
  // The queries that see any of the keys [j, j + n) lie in [first_query, end_query).
  __device__ int first_query(int j) const { return causal && j >= prefix ? max(j - first, 0) : 0; }
  __device__ int end_query(int j, int n, int T) const {
    return causal && band > 0 && stride == 0 && j >= prefix ? min(j + n - 1 + band - first, T) : T;
  }
  // Whether all queries [i, i + n) see all keys [j, j + m).
  __device__ bool all(int i, int n, int j, int m) const {
    if (j + m > keys) return false;
    if (!causal || j + m <= prefix) return true;
    if (j + m - 1 > first + i) return false;
    return (band == 0 && stride == 0) || (band > 0 && first + i + n - 1 - j < band);
  }
};

template <class A>
__device__ __forceinline__ A read(const void* p, DType dtype, int64_t at) {
  if constexpr (sizeof(A) == 8) return static_cast<const A*>(p)[at];
  else if (dtype == DType::float32) return static_cast<const float*>(p)[at];
  else if (dtype == DType::bfloat16) return widen(static_cast<const bf16*>(p)[at]);
  else return widen(static_cast<const f16*>(p)[at]);
}
template <class A>
__device__ __forceinline__ void write(void* p, DType dtype, int64_t at, A x) {
  if constexpr (sizeof(A) == 8) static_cast<A*>(p)[at] = x;
  else if (dtype == DType::float32) static_cast<float*>(p)[at] = x;
  else if (dtype == DType::bfloat16) static_cast<bf16*>(p)[at] = narrow<bf16>(x);
  else static_cast<f16*>(p)[at] = narrow<f16>(x);
}

// The score of query i for key j: with the bias, and -inf where it may not look. Not where i or j is outside
// of the sequence: nothing is read there.
template <class A>
__device__ __forceinline__ A ruled(const AttentionCall& c, const Place& at, const Sight& sight, A score,
                                   int i, int j) {
  if (i >= at.s.T || !sight.sees(i, j)) return -static_cast<A>(INFINITY);
  if (c.mask.at && !static_cast<const uint8_t*>(c.mask.at)[c.mask.row(at.b, at.h, i) + j])
    return -static_cast<A>(INFINITY);
  if (c.bias.at) score += read<A>(c.bias.at, c.dtype, c.bias.row(at.b, at.h, i) + j) * static_cast<A>(kLog2e);
  return score;
}
// Whether the scores of a tile are as they come from the product.
__device__ __forceinline__ bool unruled(const AttentionCall& c, const Place& at, const Sight& sight, int i,
                                        int n, int j, int m) {
  return !c.mask.at && !c.bias.at && i + n <= at.s.T && sight.all(i, n, j, m);
}

// The random words of a row's keys key + lane + 16 w, w = 0 ... 3; key is a multiple of 64.
struct Kept {
  Random4 words;
  int shift;
  __device__ Kept(const AttentionCall& c, int64_t row, int key, int lane)
      : words(philox(c.draw.seed,
                     c.draw.offset + static_cast<uint64_t>((row * c.groups + key / 128) * 16 + lane))),
        shift(key / 64 % 2 * 16) {}
  __device__ bool kept(const AttentionCall& c, int w) const {
    return (words.x[w] >> shift & 0xffffu) >= c.threshold;
  }
};

}  // namespace plmcore::cuda
