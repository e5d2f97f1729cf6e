// The gradient of attention for bfloat16 and float16 by tensor cores, heads of up to 256 columns;
// attention_grad.cu has the formulas. Two kernels, each computes the weights again from the log-sums.
// attention_grad_queries_mma: a block owns 64 queries and walks the keys.
//   S = Q K^T, dP = dO V^T, dQ += dS K
// attention_grad_keys_mma: a block owns 64 keys and walks the queries.
//   S^T = K Q^T, dP^T = V dO^T, dV += W^T dO, dK += dS^T Q
//
// What is walked comes by cp.async into one of two buffers, 64, 32 or 16 rows at a time, so that all of it
// fits into 99 KB. Weights and dS stay in registers and are rounded to the half type on their way into the
// next product. For more than 128 columns two warps share 16 keys: each has half of the columns of dK and dV.
#include "device/attention_kernels.cuh"
#include "device/attention_mma.cuh"

namespace plmcore::cuda {

namespace {

// Rows that are walked at a time. Owners of keys have two results in registers, so they take fewer.
constexpr int steps(int W, bool owns_keys) {
  if (W <= 96) return 64;
  return W <= 128 && !owns_keys ? 32 : 16;
}
template <int W, bool kOwnsKeys> constexpr int kSteps = steps(W, kOwnsKeys);
template <int W, bool kOwnsKeys>
constexpr size_t kGradBytes = sizeof(uint16_t) * kRow<W> * (2 * kTile + 4 * kSteps<W, kOwnsKeys>);
constexpr int kQueryThreads = 128;
template <int W> constexpr int kColumnWarps = W > 128 ? 2 : 1;
template <int W> constexpr int kKeyThreads = 128 * kColumnWarps<W>;

// What is saved of a query. One without keys, or none at all, has weights of 0.
struct alignas(16) QueryStats {
  float m = INFINITY, l = 0, delta = 0;
  __device__ QueryStats(const AttentionCall& c, const Place& at, int i) {
    const auto* lse = static_cast<const float*>(c.lse) + at.lse + i;
    if (i >= at.s.T || lse[0] == -INFINITY) return;
    m = lse[0];
    l = lse[c.rows];
    delta = static_cast<const float*>(c.delta)[at.lse + i];
  }
};
// s: a product or score to W; dp: dO V^T to dS. `kept`: what dropout multiplies the weight by.
__device__ __forceinline__ void differentiate(const QueryStats& q, float factor, float kept, float& s,
                                              float& dp) {
  const float p = ex2(fmaf(s, factor, -q.m) - q.l);
  dp = p * (dp * kept - q.delta);
  s = p * kept;
}
template <int N, bool kByKey>
__device__ __forceinline__ void add_dweights(const AttentionCall& c, const Place& at, int row, int column,
                                             float (&dp)[N / 8][4]) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Spot<kByKey> spot(row, column, n, e);
      if (spot.i < at.s.T && spot.j < at.s.S)
        dp[n][e] += read<float>(c.dweights.at, c.dtype, c.dweights.row(at.b, at.h, spot.i) + spot.j);
    }
}

// The rows of dO of one head; of any other tensor, of which nothing is read, where there is none.
template <class T>
struct OutputGradient {
  const T* at;
  int64_t stride;
  int rows;
  __device__ OutputGradient(const AttentionCall& c, const Place& place)
      : at(head_rows<T>(c.dout ? c.dout : c.out, place.s.q_row, static_cast<int64_t>(c.H) * c.D, place.h,
                        c.D)),
        stride(static_cast<int64_t>(c.H) * c.D),
        rows(c.dout ? place.s.T : 0) {}
  template <int N, int W, int kThreads>
  __device__ void copy(const AttentionCall& c, int i, T* to) const {
    copy_rows<N, W, kThreads>(c, at + i * stride, stride, rows - i, to);
  }
};

// grid (tiles of queries and heads)
template <class T, int W>
__global__ void __launch_bounds__(kQueryThreads, 2)
    attention_grad_queries_mma(const __grid_constant__ AttentionCall c) {
  constexpr int N = kSteps<W, false>, kSize = N * kRow<W>;
  PLM_DYNAMIC_SHARED(T, q);
  T *dout = q + kTile * kRow<W>, *k = dout + kTile * kRow<W>, *v = k + 2 * kSize;
  Place at;
  if (!find_place<false>(c, c.T, at)) return;
  const Lane me;
  const Sight sight(c, at.s);
  const int i = at.row, end = sight.end(i, min(kTile, at.s.T - i)), own = i + 16 * me.warp;
  const T *keys = head_rows<T>(c.k, at.s.k_row, c.k_stride, at.h, c.D),
          *values = head_rows<T>(c.v, at.s.k_row, c.k_stride, at.h, c.D);
  const auto copy = [&](int key, int buffer) {
    copy_rows<N, W, kQueryThreads>(c, keys + key * c.k_stride, c.k_stride, at.s.keys - key,
                                   k + buffer * kSize);
    copy_rows<N, W, kQueryThreads>(c, values + key * c.k_stride, c.k_stride, at.s.keys - key,
                                   v + buffer * kSize);
    cp_commit();
  };
  int key = sight.begin(i) / kTile * kTile, buffer = 0;
  copy_rows<kTile, W, kQueryThreads>(c, head_rows<T>(c.q, at.s.q_row + i, c.q_stride, at.h, c.D), c.q_stride,
                                     at.s.T - i, q);
  OutputGradient<T>(c, at).template copy<kTile, W, kQueryThreads>(c, i, dout);
  copy(key, 0);
  const QueryStats stats[2] = {{c, at, own + me.g}, {c, at, own + me.g + 8}};
  float dq[W / 8][4] = {};
  const float scale = static_cast<float>(c.scale * kLog2e), keep = static_cast<float>(c.keep);
#pragma unroll 1
  for (; key < end; key += N, buffer ^= 1) {
    if (key + N < end) {
      copy(key + N, buffer ^ 1);
      cp_wait<1>();
    } else {
      cp_wait<0>();
    }
    __syncthreads();
    float s[N / 8][4], ds[N / 8][4];
    multiply_rows<W, N>(q, 16 * me.warp, k + buffer * kSize, s);
    const bool as_is = unruled(c, at, sight, i, kTile, key, N);
    if (!as_is) rule<T, N, false>(c, at, sight, scale, own, key, s);
    multiply_rows<W, N>(dout, 16 * me.warp, v + buffer * kSize, ds);
    if (c.dweights.at) add_dweights<N, false>(c, at, own, key, ds);
    const uint32_t kept = c.keep != 0 ? kept_bits<N>(c, at.lse + own, key) : 0;
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float dropped = kept >> (4 * n + e) & 1 ? keep : 0.f;
        differentiate(stats[e / 2], as_is ? scale : 1.f, c.keep != 0 ? dropped : 1.f, s[n][e], ds[n][e]);
      }
    multiply_product<W, W, N>(ds, k + buffer * kSize, 0, dq);
    __syncthreads();
  }
  cp_wait<0>();  // a tile without keys has waited for nothing
  T* to = static_cast<T*>(c.dq) + at.s.q_row * c.q_stride + static_cast<int64_t>(at.h) * c.D;
  const float factor[2] = {static_cast<float>(c.scale), static_cast<float>(c.scale)};
  write_product<W>(c, to, c.q_stride, own, at.s.T, 0, dq, factor);
}

// grid (tiles of keys and heads)
template <class T, int W>
__global__ void __launch_bounds__(kKeyThreads<W>, 256 / kKeyThreads<W>)
    attention_grad_keys_mma(const __grid_constant__ AttentionCall c) {
  constexpr int N = kSteps<W, true>, kSize = N * kRow<W>, kThreads = kKeyThreads<W>, C = W / kColumnWarps<W>;
  PLM_DYNAMIC_SHARED(T, k);
  T *v = k + kTile * kRow<W>, *q = v + kTile * kRow<W>, *dout = q + 2 * kSize;
  Place at;
  if (!find_place<true>(c, c.S, at)) return;
  const Lane me;
  const Sight sight(c, at.s);
  const int key = at.row, n_keys = min(kTile, at.s.S - key);
  const int group = me.warp % 4, own = key + 16 * group, column = me.warp / 4 * C;
  const int end = key < at.s.keys ? sight.end_query(key, n_keys, at.s.T) : 0;
  const T* queries = head_rows<T>(c.q, at.s.q_row, c.q_stride, at.h, c.D);
  const OutputGradient<T> gradient(c, at);
  const auto copy = [&](int i, int buffer) {
    copy_rows<N, W, kThreads>(c, queries + i * c.q_stride, c.q_stride, at.s.T - i, q + buffer * kSize);
    gradient.template copy<N, W, kThreads>(c, i, dout + buffer * kSize);
    cp_commit();
  };
  int i = min(sight.first_query(key), at.s.T) / N * N, buffer = 0;
  copy_rows<kTile, W, kThreads>(c, head_rows<T>(c.k, at.s.k_row + key, c.k_stride, at.h, c.D), c.k_stride,
                                at.s.keys - key, k);
  copy_rows<kTile, W, kThreads>(c, head_rows<T>(c.v, at.s.k_row + key, c.k_stride, at.h, c.D), c.k_stride,
                                at.s.keys - key, v);
  copy(i, 0);
  float dk[C / 8][4] = {}, dv[C / 8][4] = {};
  const float scale = static_cast<float>(c.scale * kLog2e), keep = static_cast<float>(c.keep);
#pragma unroll 1
  for (; i < end; i += N, buffer ^= 1) {
    const T* q_now = q + buffer * kSize;
    // What is known of a query lies in the 16 bytes behind its rows. Behind that of dO its stats; behind that
    // of q a byte for each random block, of the keys that are equal mod 16: a bit for each of the four groups
    // of keys.
    for (int p = static_cast<int>(threadIdx.x); p < N; p += kThreads)
      *reinterpret_cast<QueryStats*>(dout + buffer * kSize + place<W>(p, W)) = QueryStats(c, at, i + p);
    if (c.keep != 0) {
#pragma unroll 1
      for (int p = static_cast<int>(threadIdx.x); p < 16 * N; p += kThreads) {
        const Kept random(c, at.lse + i + p / 16, key, p % 16);
        unsigned bits = 0;
#pragma unroll
        for (int w = 0; w < 4; ++w) bits |= static_cast<unsigned>(random.kept(c, w)) << w;
        reinterpret_cast<uint8_t*>(q + buffer * kSize + place<W>(p / 16, W))[p % 16] =
            static_cast<uint8_t>(bits);
      }
    }
    if (i + N < end) {
      copy(i + N, buffer ^ 1);
      cp_wait<1>();
    } else {
      cp_wait<0>();
    }
    __syncthreads();
    float s[N / 8][4], ds[N / 8][4];
    multiply_rows<W, N>(k, 16 * group, q_now, s);
    const bool as_is = unruled(c, at, sight, i, N, key, kTile);
    if (!as_is) rule<T, N, true>(c, at, sight, scale, own, i, s);
    multiply_rows<W, N>(v, 16 * group, dout + buffer * kSize, ds);
    if (c.dweights.at) add_dweights<N, true>(c, at, own, i, ds);
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int query = 8 * n + 2 * me.t + e;
        const auto& stats = *reinterpret_cast<const QueryStats*>(dout + buffer * kSize + place<W>(query, W));
        const auto* kept = reinterpret_cast<const uint8_t*>(q_now + place<W>(query, W)) + me.g;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float factor = 1;
          if (c.keep != 0) factor = kept[8 * r] >> group & 1 ? keep : 0.f;
          differentiate(stats, as_is ? scale : 1.f, factor, s[n][2 * r + e], ds[n][2 * r + e]);
        }
      }
    multiply_product<W, C, N>(s, dout + buffer * kSize, column, dv);
    multiply_product<W, C, N>(ds, q_now, column, dk);
    __syncthreads();
  }
  cp_wait<0>();  // keys that nobody sees have waited for nothing
  const int64_t first = at.s.k_row * c.k_stride + static_cast<int64_t>(at.h) * c.D;
  const float factor[2] = {static_cast<float>(c.scale), static_cast<float>(c.scale)}, one[2] = {1, 1};
  write_product<C>(c, static_cast<T*>(c.dk) + first, c.k_stride, own, at.s.S, column, dk, factor);
  write_product<C>(c, static_cast<T*>(c.dv) + first, c.k_stride, own, at.s.S, column, dv, one);
}

template <class T>
const char* run(const AttentionCall& c, cudaStream_t stream) {
  return for_width(c.D, [&](auto width) -> const char* {
    constexpr int W = decltype(width)::value;
    if (c.T > 0) {
      const dim3 grid(static_cast<unsigned>(tile_blocks(c, c.T)));
      if (const char* why = problem(launch<attention_grad_queries_mma<T, W>>(
              grid, dim3(kQueryThreads), kGradBytes<W, false>, stream, c)))
        return why;
    }
    if (c.S == 0) return nullptr;
    const dim3 grid(static_cast<unsigned>(tile_blocks(c, c.S)));
    return problem(
        launch<attention_grad_keys_mma<T, W>>(grid, dim3(kKeyThreads<W>), kGradBytes<W, true>, stream, c));
  });
}

}  // namespace

const char* attention_grad_by_mma(const AttentionCall& c, cudaStream_t stream) {
  return c.dtype == DType::bfloat16 ? run<bf16>(c, stream) : run<f16>(c, stream);
}

}  // namespace plmcore::cuda
