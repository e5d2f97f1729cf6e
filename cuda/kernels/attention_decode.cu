// Attention of a few queries over many keys (decoding with a cache): bound by reading k and v once.
//
// A block has a run of 128 keys of one head and up to four queries, so that several queries of a prompt share
// the reads. Lanes take 16 bytes of a row each, a power of two of them a key; the dots of a key are added by
// shuffles. Then a warp softens the scores of one query, and the lanes go over v as they did over k. Each run
// leaves its maximum, sum and weighted values; a second kernel joins the runs in order. float64 and rows that
// are not aligned go by tiles.
#include "device/attention_kernels.cuh"
#include "device/reduce.cuh"

namespace plmcore::cuda {

namespace {

constexpr int kDecodeThreads = 128, kWarps = 4, kRunKeys = 128;
constexpr int kRunQueries = kWarps;  // a warp has one query when scores are softened
constexpr int kMostColumns = 256, kMostQueries = 8;

struct Runs {
  int count, lanes;  // runs of keys; lanes of a key
  float* sums;  // [B, H, T, runs, D]
  float* stats;  // [B, H, T, runs, 2]: maximum and sum
};
__device__ __forceinline__ float finite(float m) { return m == -INFINITY ? 0.f : m; }

// f(slot, key) for the keys of a run that this thread's lanes have, from `first` up to `end`, four under way.
template <class F>
__device__ __forceinline__ void for_keys(int slot, int slots, int first, int end, F f) {
#pragma unroll 4
  for (int j = slot; j < kRunKeys; j += slots) f(j, first + j < end);
}

// grid (runs, heads and sequences, queries / 4)
template <class T>
__global__ void __launch_bounds__(kDecodeThreads)
    attention_decode(const __grid_constant__ AttentionCall c, Runs runs) {
  constexpr int V = kPack<T>;
  PLM_SHARED(float, scores, [kRunQueries][kRunKeys]);
  PLM_SHARED(float, parts, [kWarps][kRunQueries][kMostColumns]);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const unsigned heads = static_cast<unsigned>(c.H), batch = blockIdx.y / heads;
  Place at{sequence_of(c, static_cast<int>(batch)), static_cast<int>(batch),
           static_cast<int>(blockIdx.y - batch * heads), static_cast<int>(blockIdx.z) * kRunQueries, 0};
  at.lse = lse_of(c, at.b, at.h, at.s);
  const Sight sight(c, at.s);
  const int first = static_cast<int>(blockIdx.x) * kRunKeys, queries = min(c.T - at.row, kRunQueries),
            end = sight.end(at.row, queries);
  const int slots = kDecodeThreads / runs.lanes, slot = thread / runs.lanes, d = thread % runs.lanes * V;
  const bool mine = d < c.D;
  const int64_t column = static_cast<int64_t>(at.h) * c.D + (mine ? d : 0);
  const T *k = static_cast<const T*>(c.k) + (at.s.k_row + first) * c.k_stride + column,
          *v = static_cast<const T*>(c.v) + (at.s.k_row + first) * c.k_stride + column;

  {
    float q[kRunQueries][V] = {};
    const float scale = static_cast<float>(c.scale * kLog2e);
    for (int r = 0; r < queries; ++r)
      if (mine) {
        float x[V];
        load<V>(static_cast<const T*>(c.q) + (at.s.q_row + at.row + r) * c.q_stride + column, x);
#pragma unroll
        for (int e = 0; e < V; ++e)
#pragma unroll
          for (int row = 0; row < kRunQueries; ++row) q[row][e] = row == r ? x[e] * scale : q[row][e];
      }
    for_keys(slot, slots, first, end, [&](int j, bool there) {
      float x[V] = {};
      if (there && mine) load<V>(k + j * c.k_stride, x);
#pragma unroll
      for (int r = 0; r < kRunQueries; ++r) {
        float dot = 0;
#pragma unroll
        for (int e = 0; e < V; ++e) dot = fmaf(q[r][e], x[e], dot);
        for (int step = runs.lanes / 2; step > 0; step /= 2) dot += __shfl_xor_sync(kFullWarp, dot, step);
        if (d == 0) scores[r][j] = dot;
      }
    });
  }
  __syncthreads();
  const int64_t head = static_cast<int64_t>(blockIdx.y) * c.T + at.row;
  if (warp < queries) {
    float s[kRunKeys / 32], most = -INFINITY, sum = 0;
#pragma unroll
    for (int n = 0; n < kRunKeys / 32; ++n) {
      const int j = 32 * n + lane;
      s[n] = ruled(c, at, sight, scores[warp][j], at.row + warp, first + j);
      most = fmaxf(most, s[n]);
    }
    most = warp_reduce<Max>(most);
#pragma unroll
    for (int n = 0; n < kRunKeys / 32; ++n) sum += scores[warp][32 * n + lane] = exp2f(s[n] - finite(most));
    sum = warp_reduce<Sum>(sum);
    if (lane == 0) {
      float* stats = runs.stats + ((head + warp) * runs.count + blockIdx.x) * 2;
      stats[0] = most;
      stats[1] = sum;
    }
  } else {
#pragma unroll
    for (int n = 0; n < kRunKeys / 32; ++n) scores[warp][32 * n + lane] = 0;
  }
  __syncthreads();

  float sum[kRunQueries][V] = {};
  for_keys(slot, slots, first, end, [&](int j, bool there) {
    float x[V] = {};
    if (there && mine) load<V>(v + j * c.k_stride, x);
#pragma unroll
    for (int r = 0; r < kRunQueries; ++r)
#pragma unroll
      for (int e = 0; e < V; ++e) sum[r][e] = fmaf(scores[r][j], x[e], sum[r][e]);
  });
#pragma unroll
  for (int r = 0; r < kRunQueries; ++r)
#pragma unroll
    for (int e = 0; e < V; ++e) {
      for (int step = 16; step >= runs.lanes; step /= 2)
        sum[r][e] += __shfl_xor_sync(kFullWarp, sum[r][e], step);
      if (lane < runs.lanes && mine) parts[warp][r][d + e] = sum[r][e];
    }
  __syncthreads();
  for (int r = 0; r < queries; ++r)
    for (int e = thread; e < c.D; e += kDecodeThreads)
      runs.sums[((head + r) * runs.count + blockIdx.x) * c.D + e] =
          (parts[0][r][e] + parts[1][r][e]) + (parts[2][r][e] + parts[3][r][e]);
}

// grid (queries of all heads), a query of one head each
__global__ void __launch_bounds__(kDecodeThreads)
    attention_decode_join(const __grid_constant__ AttentionCall c, Runs runs) {
  const int64_t row = blockIdx.x;
  const float *stats = runs.stats + row * runs.count * 2, *sums = runs.sums + row * runs.count * c.D;
  const unsigned head = blockIdx.x / static_cast<unsigned>(c.T),
                 i = blockIdx.x - head * static_cast<unsigned>(c.T), b = head / static_cast<unsigned>(c.H),
                 h = head - b * static_cast<unsigned>(c.H);
  float m = -INFINITY, l = 0;
  for (int n = 0; n < runs.count; ++n) m = fmaxf(m, stats[2 * n]);
  for (int n = 0; n < runs.count; ++n) l += stats[2 * n + 1] * exp2f(stats[2 * n] - finite(m));
  const float inverse = l == 0 ? 0.f : 1 / l;  // 0: it saw nothing
  const int64_t to = ((static_cast<int64_t>(b) * c.T + i) * c.H + h) * c.D;
  for (int d = static_cast<int>(threadIdx.x); d < c.D; d += kDecodeThreads) {
    float sum = 0;
    for (int n = 0; n < runs.count; ++n)
      sum = fmaf(sums[static_cast<int64_t>(n) * c.D + d], exp2f(stats[2 * n] - finite(m)), sum);
    write<float>(c.out, c.dtype, to + d, inverse == 0 ? 0.f : sum * inverse);
  }
  if (threadIdx.x == 0) {
    static_cast<float*>(c.lse)[row] = m;
    static_cast<float*>(c.lse)[c.rows + row] = log2f(l);
  }
}

template <class T>
const char* run(const AttentionCall& c, Runs runs, cudaStream_t stream) {
  runs.lanes = 1;
  while (runs.lanes * kPack<T> < c.D) runs.lanes *= 2;
  const dim3 grid(static_cast<unsigned>(runs.count), static_cast<unsigned>(c.B * c.H),
                  static_cast<unsigned>((c.T + kRunQueries - 1) / kRunQueries));
  return problem(launch<attention_decode<T>>(grid, dim3(kDecodeThreads), 0, stream, c, runs));
}
int runs_of(const AttentionCall& c) { return c.S > 0 ? (c.S + kRunKeys - 1) / kRunKeys : 1; }

}  // namespace

bool suits_decoding(const AttentionCall& c) {
  const int most =
      c.dtype == DType::float32 ? kMostColumns / 2 : kMostColumns;  // 16 bytes for each lane of a warp
  return c.T <= kMostQueries && !c.ragged && c.keep == 0 && c.dtype != DType::float64 && c.D <= most &&
         static_cast<int64_t>(c.B) * c.H < 65536;
}
int64_t decoding_bytes(const AttentionCall& c) {
  return c.rows * runs_of(c) * (c.D + 2) * static_cast<int64_t>(sizeof(float));
}

const char* attention_by_decoding(const AttentionCall& c, void* space, cudaStream_t stream) {
  Runs runs{runs_of(c), 0, static_cast<float*>(space), nullptr};
  runs.stats = runs.sums + c.rows * runs.count * c.D;
  const char* why = nullptr;
  if (c.dtype == DType::float32) why = run<float>(c, runs, stream);
  else if (c.dtype == DType::bfloat16) why = run<bf16>(c, runs, stream);
  else why = run<f16>(c, runs, stream);
  if (why) return why;
  return problem(launch<attention_decode_join>(dim3(static_cast<unsigned>(c.rows)), dim3(kDecodeThreads), 0,
                                               stream, c, runs));
}

}  // namespace plmcore::cuda
