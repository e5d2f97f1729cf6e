// Attention of bfloat16 and float16 by tensor cores, for heads of up to 256 columns.
//
// A block has 64 queries of one head, a warp 16 of them. It walks the keys 64 at a time (32 from 192 columns
// on): k and v come by cp.async into one of two buffers while the other is used. Scores, weights and the
// output stay in registers; the weights, rounded to the half type, are the left operand of the product with
// v. m and l are kept as in attention.cu, the scale is part of the exponent. Traffic: k and v once for each
// 64 queries. Shared memory: 25 to 99 KB.
#include "device/attention_kernels.cuh"
#include "device/attention_mma.cuh"

namespace plmcore::cuda {

namespace {

constexpr int kMmaThreads = 128;
template <int W> constexpr int kKeys = W >= 192 ? 32 : 64;
// Blocks that a processor must hold, by registers: 128 a thread, 168, 255.
constexpr int blocks(int W) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (W == 64) return 3;  // there the compiler needs a few more than 128
#endif
  if (W <= 64) return 4;
  return W <= 96 ? 3 : 2;
}
template <int W> constexpr int kForwardBlocks = blocks(W);
template <int W> constexpr size_t kForwardBytes = sizeof(uint16_t) * kRow<W> * (kTile + 4 * kKeys<W>);

// Scores to weights, x [16, N] in place, for the keys [key, key + N); `factor` makes scores of the products.
// before[r]: what earlier sums of row r are multiplied by.
template <int N>
__device__ __forceinline__ void soften(float (&x)[N / 8][4], float factor, float (&m)[2], float (&l)[2],
                                       float (&before)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float most = -INFINITY;
#pragma unroll
    for (int n = 0; n < N / 8; ++n) most = fmaxf(most, fmaxf(x[n][2 * r], x[n][2 * r + 1]));
    most = fmaxf(most, __shfl_xor_sync(kFullWarp, most, 1));
    most = fmaxf(most, __shfl_xor_sync(kFullWarp, most, 2));
    most = fmaxf(m[r], most * factor);
    const float shift = most == -INFINITY ? 0.f : most;  // nothing seen yet: all weights 0
    before[r] = ex2(m[r] - shift);
    m[r] = most;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) sum += x[n][2 * r + e] = ex2(fmaf(x[n][2 * r + e], factor, -shift));
    l[r] = l[r] * before[r] + sum;  // of this thread's columns: the four of a row are added at the end
  }
}

// grid (tiles of queries and heads)
template <class T, int W>
__global__ void __launch_bounds__(kMmaThreads, kForwardBlocks<W>)
    attention_mma(const __grid_constant__ AttentionCall c) {
  constexpr int N = kKeys<W>;
  PLM_DYNAMIC_SHARED(T, q);
  T *k = q + kTile * kRow<W>, *v = k + 2 * N * kRow<W>;
  Place at;
  if (!find_place<false>(c, c.T, at)) return;
  const Lane me;
  const Sight sight(c, at.s);
  const int i = at.row, end = sight.end(i, min(kTile, at.s.T - i)), own = i + 16 * me.warp + me.g;
  const T *keys = head_rows<T>(c.k, at.s.k_row, c.k_stride, at.h, c.D),
          *values = head_rows<T>(c.v, at.s.k_row, c.k_stride, at.h, c.D);
  const auto copy = [&](int key, int buffer) {
    copy_rows<N, W, kMmaThreads>(c, keys + key * c.k_stride, c.k_stride, at.s.keys - key,
                                 k + buffer * N * kRow<W>);
    copy_rows<N, W, kMmaThreads>(c, values + key * c.k_stride, c.k_stride, at.s.keys - key,
                                 v + buffer * N * kRow<W>);
    cp_commit();
  };
  int key = sight.begin(i) / kTile * kTile, buffer = 0;
  copy_rows<kTile, W, kMmaThreads>(c, head_rows<T>(c.q, at.s.q_row + i, c.q_stride, at.h, c.D), c.q_stride,
                                   at.s.T - i, q);
  copy(key, 0);
  float out[W / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
  const float scale = static_cast<float>(c.scale * kLog2e);
#pragma unroll 1
  for (; key < end; key += N, buffer ^= 1) {
    if (key + N < end) {
      copy(key + N, buffer ^ 1);
      cp_wait<1>();
    } else {
      cp_wait<0>();
    }
    __syncthreads();
    float s[N / 8][4], before[2];
    multiply_rows<W, N>(q, 16 * me.warp, k + buffer * N * kRow<W>, s);
    const bool as_is = unruled(c, at, sight, i, kTile, key, N);
    if (!as_is) rule<T, N, false>(c, at, sight, scale, i + 16 * me.warp, key, s);
    soften<N>(s, as_is ? scale : 1.f, m, l, before);
#pragma unroll
    for (int n = 0; n < W / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) out[n][e] *= before[e / 2];
    if (c.keep != 0) {
      const uint32_t kept = kept_bits<N>(c, at.lse + i + 16 * me.warp, key);
      const auto keep = static_cast<float>(c.keep);
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[n][e] = kept >> (4 * n + e) & 1 ? s[n][e] * keep : 0.f;
    }
    multiply_product<W, W, N>(s, v + buffer * N * kRow<W>, 0, out);
    __syncthreads();
  }
  cp_wait<0>();  // a tile without keys has waited for nothing

  float inverse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    l[r] += __shfl_xor_sync(kFullWarp, l[r], 1);
    l[r] += __shfl_xor_sync(kFullWarp, l[r], 2);
    inverse[r] = l[r] == 0 ? 0.f : 1 / l[r];  // 0: it saw nothing
    const int query = own + 8 * r;
    if (me.t == 0 && query < at.s.T) {
      float* lse = static_cast<float*>(c.lse) + at.lse + query;
      lse[0] = m[r];
      lse[c.rows] = log2f(l[r]);
      if (c.sums) static_cast<float*>(c.sums)[at.lse + query] = l[r];
    }
  }
  const int64_t stride = static_cast<int64_t>(c.H) * c.D;
  T* to = static_cast<T*>(c.out) + at.s.q_row * stride + static_cast<int64_t>(at.h) * c.D;
  write_product<W>(c, to, stride, i + 16 * me.warp, at.s.T, 0, out, inverse);
}

template <class T>
const char* run(const AttentionCall& c, cudaStream_t stream) {
  return for_width(c.D, [&](auto width) {
    constexpr int W = decltype(width)::value;
    return problem(launch<attention_mma<T, W>>(dim3(static_cast<unsigned>(tile_blocks(c, c.T))),
                                               dim3(kMmaThreads), kForwardBytes<W>, stream, c));
  });
}

}  // namespace

const char* attention_by_mma(const AttentionCall& c, cudaStream_t stream) {
  return c.dtype == DType::bfloat16 ? run<bf16>(c, stream) : run<f16>(c, stream);
}

}  // namespace plmcore::cuda
