// out = softmax(scale q k^T + bias, over the keys a query may see) v, for each head.   q [B, T, H, D]
//
// Here: the launcher; the kernel for float32, float64 and heads wider than 256;
// the weights on request. attention_mma.cu has the half types, attention_decode.cu a few queries over many
// keys.
//
// A block has 64 queries of one head and up to 128 columns of its output, and walks the keys 64 at a time:
// scores in registers, from chunks of 32 columns of q and k in shared memory; the running maximum m and sum l
// of each query; the weights through shared memory, transposed, to the product with v. Traffic: k and v once
// for each 64 queries, from the second-level cache. The saved log-sums are m and log2(l), as on the CPU.
// Weights are computed again from m and l by a kernel of their own.
#include "device/attention_kernels.cuh"
#include "device/attention_tiles.cuh"

namespace plmcore::cuda {

namespace {

template <class A> constexpr int kColumnTiles =
    sizeof(A) == 4 ? 2 : 1;  // of 64 columns of out that a block has

// grid (tiles of queries and heads, parts of the columns)
template <class A>
__global__ void __launch_bounds__(kTileThreads) attention_forward(const __grid_constant__ AttentionCall c) {
  PLM_DYNAMIC_SHARED(A, buffer);
  A* weights = buffer + kTile * kLine;
  Place at;
  if (!find_place<false>(c, c.T, at)) return;
  const ThreadPlace me;
  const Sight sight(c, at.s);
  const int i = at.row, n = min(kTile, at.s.T - i), end = sight.end(i, n);
  const int c0 = static_cast<int>(blockIdx.y) * kColumnTiles<A> * kTile;
  A out[kColumnTiles<A>][4][4] = {}, m[4], l[4] = {};
#pragma unroll
  for (int r = 0; r < 4; ++r) m[r] = -static_cast<A>(INFINITY);
#pragma unroll 1
  for (int key = sight.begin(i) / kTile * kTile; key < end; key += kTile) {
    A s[4][4];
    score(c, at, sight, i, key, buffer, s);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const A here = std::fmax(std::fmax(s[r][0], s[r][1]), std::fmax(s[r][2], s[r][3]));
      const A most = std::fmax(m[r], reduce16<Max>(here));
      const A shift = most == -static_cast<A>(INFINITY) ? A(0) : most;  // nothing seen yet: all weights 0
      const A before = std::exp2(m[r] - shift);
      A sum = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) sum += s[r][j] = std::exp2(s[r][j] - shift);
      l[r] = l[r] * before + reduce16<Sum>(sum);
      m[r] = most;
#pragma unroll
      for (int t = 0; t < kColumnTiles<A>; ++t)
#pragma unroll
        for (int j = 0; j < 4; ++j) out[t][r][j] *= before;
      if (c.keep != 0) {
        A factor[4];
        kept_factors(c, at, i + 4 * me.y + r, key, factor);
#pragma unroll
        for (int j = 0; j < 4; ++j) s[r][j] *= factor[j];
      }
    }
    store_by_key(s, weights);
    const HeadRows v = rows_of(c, c.v, c.k_stride, at.s.k_row + key, at.h, at.s.keys - key);
#pragma unroll
    for (int t = 0; t < kColumnTiles<A>; ++t) {
      if (t > 0 && c0 + t * kTile >= c.D) continue;  // the first one also ends what the weights began
      load_rows(v, c0 + t * kTile, buffer);
      __syncthreads();
      multiply<kTile>(weights, buffer, out[t]);
      __syncthreads();
    }
  }
  A inverse[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) inverse[r] = l[r] == 0 ? A(0) : 1 / l[r];  // 0: it saw nothing
#pragma unroll
  for (int t = 0; t < kColumnTiles<A>; ++t)
    write_rows(c, c.out, static_cast<int64_t>(c.H) * c.D, at.s.q_row + i, n, at.h, c0 + t * kTile, out[t],
               inverse);
  if (blockIdx.y == 0 && me.x == 0)
#pragma unroll
    for (int r = 0; r < 4; ++r)
      if (4 * me.y + r < n) {
        A* lse = static_cast<A*>(c.lse) + at.lse + i + 4 * me.y + r;
        lse[0] = m[r];
        lse[c.rows] = std::log2(l[r]);
        if (c.sums) static_cast<A*>(c.sums)[at.lse + i + 4 * me.y + r] = l[r];
      }
}

// grid (tiles of queries and heads, tiles of keys)
template <class A>
__global__ void __launch_bounds__(kTileThreads) attention_weights(const __grid_constant__ AttentionCall c) {
  PLM_DYNAMIC_SHARED(A, buffer);
  Place at;
  if (!find_place<false>(c, c.T, at)) return;
  const ThreadPlace me;
  const Sight sight(c, at.s);
  const int key = static_cast<int>(blockIdx.y) * kTile;
  A s[4][4];
  score(c, at, sight, at.row, key, buffer, s);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = at.row + 4 * me.y + r;
    if (i >= at.s.T) continue;
    const A m = static_cast<const A*>(c.lse)[at.lse + i], l = static_cast<const A*>(c.sums)[at.lse + i];
    A factor[4] = {1, 1, 1, 1};
    if (c.keep != 0) kept_factors(c, at, i, key, factor);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int to = key + me.x + 16 * j;
      const A w = l == 0 ? A(0) : std::exp2(s[r][j] - m) / l * factor[j];
      if (to < at.s.S) write<A>(c.weights.at, c.dtype, c.weights.row(at.b, at.h, i) + to, w);
    }
  }
}

int64_t sums_bytes(const KernelArgs& args) {
  return args.i("weights") ? args.out[1].numel / 2 * static_cast<int64_t>(size_of(args.out[1].dtype)) : 0;
}
bool decodes(const KernelArgs& args, const AttentionCall& c) {
  return !args.i("weights") && suits_decoding(c);
}
Workspace workspace(const KernelArgs& args) {
  const AttentionCall c = attention_call(args);
  const int64_t runs = decodes(args, c) ? decoding_bytes(c) : 0;
  return {.shared = static_cast<size_t>(table_bytes(args) + sums_bytes(args) + runs)};
}

template <class A>
const char* run_tiles(const AttentionCall& c, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(tile_blocks(c, c.T));
  const auto parts = static_cast<unsigned>((c.D + kColumnTiles<A> * kTile - 1) / (kColumnTiles<A> * kTile));
  return problem(
      launch<attention_forward<A>>(dim3(blocks, parts), dim3(kTileThreads), 2 * kBuffer<A>, stream, c));
}
const char* forward(const KernelArgs& args, const AttentionCall& c, cudaStream_t stream) {
  if (c.vectors && decodes(args, c)) return attention_by_decoding(c, args.shared + table_bytes(args), stream);
  if (suits_mma(c)) return attention_by_mma(c, stream);
  return c.dtype == DType::float64 ? run_tiles<double>(c, stream) : run_tiles<float>(c, stream);
}
template <class A>
const char* run_weights(const AttentionCall& c, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(tile_blocks(c, c.T)),
                  static_cast<unsigned>((c.S + kTile - 1) / kTile));
  return problem(launch<attention_weights<A>>(grid, dim3(kTileThreads), kBuffer<A>, stream, c));
}

}  // namespace

PLM_KERNEL(attention, workspace) {
  AttentionCall c = attention_call(args);
  c.packs = rows_of_whole(c, 4, c.q, c.k, c.v);
  c.vectors =
      rows_of_whole(c, 16 / static_cast<int>(size_of(c.dtype)), c.q, c.k, c.v, args.out[0].as<char>());
  c.out = args.out[0].data;
  c.lse = args.out[1].data;
  const cudaStream_t stream = stream_of(args);
  if (args.i("weights")) {
    c.weights = plane_of(args.out[2]);
    c.sums = args.shared + table_bytes(args);
  }
  if (const char* why = too_large(c)) return why;
  if (const char* why = attention_sequences(args, c)) return why;
  if (c.B == 0 || c.T == 0 || c.H == 0) return nullptr;
  const bool wide = c.dtype == DType::float64;
  if (const char* why = forward(args, c, stream)) return why;
  if (!c.weights.at || c.S == 0) return nullptr;
  return wide ? run_weights<double>(c, stream) : run_weights<float>(c, stream);
}

}  // namespace plmcore::cuda
