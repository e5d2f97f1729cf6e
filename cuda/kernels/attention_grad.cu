// The gradient of attention. With P the weights, M the dropout factors, W = P M, dO the output's gradient:
//   dV = W^T dO,  dP = (dO V^T + dW) M,  dS = P (dP - delta),  delta = rowsum(dO O + dW W)
//   dQ = scale dS K,  dK = scale dS^T Q,  dbias = dS
// P is computed again from the saved log-sums, tile by tile: nothing of size [T, S] is kept. A block owns
// what it writes and walks the rest in order, so results have the same bits on every run: 64 queries (dQ), 64
// keys (dK, dV), or a tile of dbias, which walks the sequences and heads that share it. All recompute the
// scores: 7 products instead of 5, 9 with dbias.
//
// Here: the launcher, delta, and the kernels for float32, float64, dbias, and heads wider than 256; a block
// has 64 columns of a gradient. attention_grad_mma.cu has the half types.
#include "device/attention_kernels.cuh"
#include "device/attention_tiles.cuh"

namespace plmcore::cuda {

namespace {

constexpr int kDeltaRows = 4;

// A warp has one query of one head. grid (queries / 4, H), block (32, 4)
template <class A>
__global__ void __launch_bounds__(32 * kDeltaRows)
    attention_delta(const __grid_constant__ AttentionCall c, int64_t queries) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kDeltaRows + threadIdx.y;
  if (row >= queries) return;  // a whole warp leaves, and no barrier follows
  const int h = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x);
  const int b = c.ragged ? 0 : static_cast<int>(static_cast<unsigned>(row) / static_cast<unsigned>(c.T));
  const int i = c.ragged ? 0 : static_cast<int>(row - static_cast<int64_t>(b) * c.T);
  const int64_t at = (row * c.H + h) * c.D;
  A sum = 0;
  if (c.dout)
    for (int d = lane; d < c.D; d += 32)
      sum += read<A>(c.out, c.dtype, at + d) * read<A>(c.dout, c.dtype, at + d);
  if (c.dweights.at)
    for (int j = lane; j < c.S; j += 32)
      sum += read<A>(c.dweights.at, c.dtype, c.dweights.row(b, h, i) + j) *
             read<A>(c.weights.at, c.dtype, c.weights.row(b, h, i) + j);
  sum = warp_reduce<Sum>(sum);
  const int64_t to =
      c.ragged ? static_cast<int64_t>(h) * c.T + row : (static_cast<int64_t>(b) * c.H + h) * c.T + i;
  if (lane == 0) static_cast<A*>(c.delta)[to] = sum;
}

// W and dS of the queries [i, i + 64) and the keys [key, key + 64).
template <class A>
__device__ __forceinline__ void differentiate(const AttentionCall& c, const Place& at, const Sight& sight,
                                              int i, int key, A* buffer, A (&w)[4][4], A (&ds)[4][4]) {
  const ThreadPlace me;
  score(c, at, sight, i, key, buffer, w);
  multiply_heads(rows_of(c, c.dout, static_cast<int64_t>(c.H) * c.D, at.s.q_row + i, at.h, at.s.T - i),
                 rows_of(c, c.v, c.k_stride, at.s.k_row + key, at.h, at.s.keys - key), buffer, ds);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int query = i + 4 * me.y + r;
    const bool there = query < at.s.T;
    const int64_t row = at.lse + query;
    const A m = there ? static_cast<const A*>(c.lse)[row] : -static_cast<A>(INFINITY);
    const bool none = m == -static_cast<A>(INFINITY);  // a query without keys
    const A l = none ? A(0) : static_cast<const A*>(c.lse)[c.rows + row];
    const A delta = none ? A(0) : static_cast<const A*>(c.delta)[row];
    A factor[4] = {1, 1, 1, 1};
    if (c.keep != 0) kept_factors(c, at, query, key, factor);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int k = key + me.x + 16 * j;
      if (c.dweights.at && there && k < at.s.S)
        ds[r][j] += read<A>(c.dweights.at, c.dtype, c.dweights.row(at.b, at.h, query) + k);
      const A p = none ? A(0) : std::exp2(w[r][j] - m - l);
      ds[r][j] = p * (ds[r][j] * factor[j] - delta);
      w[r][j] = p * factor[j];
    }
  }
}

// grid (tiles of queries and heads, parts of 64 columns)
template <class A>
__global__ void __launch_bounds__(kTileThreads)
    attention_grad_queries(const __grid_constant__ AttentionCall c) {
  PLM_DYNAMIC_SHARED(A, buffer);
  A* scores = buffer + kTile * kLine;
  Place at;
  if (!find_place<false>(c, c.T, at)) return;
  const Sight sight(c, at.s);
  const int i = at.row, n = min(kTile, at.s.T - i), end = sight.end(i, n);
  const int c0 = static_cast<int>(blockIdx.y) * kTile;
  A dq[4][4] = {};
#pragma unroll 1
  for (int key = sight.begin(i) / kTile * kTile; key < end; key += kTile) {
    A w[4][4], ds[4][4];
    differentiate(c, at, sight, i, key, buffer, w, ds);
    store_by_key(ds, scores);
    load_rows(rows_of(c, c.k, c.k_stride, at.s.k_row + key, at.h, at.s.keys - key), c0, buffer);
    __syncthreads();
    multiply<kTile>(scores, buffer, dq);
    __syncthreads();
  }
  const A scale = static_cast<A>(c.scale), factor[4] = {scale, scale, scale, scale};
  write_rows(c, c.dq, c.q_stride, at.s.q_row + i, n, at.h, c0, dq, factor);
}

// grid (tiles of keys and heads, parts of 64 columns)
template <class A>
__global__ void __launch_bounds__(kTileThreads) attention_grad_keys(const __grid_constant__ AttentionCall c) {
  PLM_DYNAMIC_SHARED(A, buffer);
  A* scores = buffer + kTile * kLine;
  Place at;
  if (!find_place<true>(c, c.S, at)) return;
  const Sight sight(c, at.s);
  const int key = at.row, n = min(kTile, at.s.S - key);
  const int end = key < at.s.keys ? sight.end_query(key, n, at.s.T) : 0;
  const int c0 = static_cast<int>(blockIdx.y) * kTile;
  A dk[4][4] = {}, dv[4][4] = {};
#pragma unroll 1
  for (int i = sight.first_query(key) / kTile * kTile; i < end; i += kTile) {
    A w[4][4], ds[4][4];
    differentiate(c, at, sight, i, key, buffer, w, ds);
    store_by_query(w, scores);
    load_rows(rows_of(c, c.dout, static_cast<int64_t>(c.H) * c.D, at.s.q_row + i, at.h, at.s.T - i), c0,
              buffer);
    __syncthreads();
    multiply<kTile>(scores, buffer, dv);
    __syncthreads();
    store_by_query(ds, scores);
    load_rows(rows_of(c, c.q, c.q_stride, at.s.q_row + i, at.h, at.s.T - i), c0, buffer);
    __syncthreads();
    multiply<kTile>(scores, buffer, dk);
    __syncthreads();
  }
  const A scale = static_cast<A>(c.scale), scales[4] = {scale, scale, scale, scale}, ones[4] = {1, 1, 1, 1};
  write_rows(c, c.dk, c.k_stride, at.s.k_row + key, n, at.h, c0, dk, scales);
  write_rows(c, c.dv, c.k_stride, at.s.k_row + key, n, at.h, c0, dv, ones);
}

// grid (tiles of the bias's columns, tiles of its rows, its planes)
template <class A>
__global__ void __launch_bounds__(kTileThreads) attention_grad_bias(const __grid_constant__ AttentionCall c) {
  PLM_DYNAMIC_SHARED(A, buffer);
  const ThreadPlace me;
  const int i = static_cast<int>(blockIdx.y) * kTile, key = static_cast<int>(blockIdx.x) * kTile;
  const unsigned heads = static_cast<unsigned>(c.bias_heads), unit = blockIdx.z / heads;
  const int b0 = static_cast<int>(unit), h0 = static_cast<int>(blockIdx.z - unit * heads);
  const int b1 = c.dbias.b_stride ? b0 + 1 : c.B, h1 = c.dbias.h_stride ? h0 + 1 : c.H;
  A sum[4][4] = {};
#pragma unroll 1
  for (int b = b0; b < b1; ++b)
#pragma unroll 1
    for (int h = h0; h < h1; ++h) {
      Place at{sequence_of(c, b), b, h, i, 0};
      at.lse = lse_of(c, b, h, at.s);
      if (i >= at.s.T || key >= at.s.keys) continue;
      A w[4][4], ds[4][4];
      differentiate(c, at, Sight(c, at.s), i, key, buffer, w, ds);
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[r][j] += ds[r][j];
    }
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = i + 4 * me.y + r, column = key + me.x + 16 * j;
      if (row < c.bias_rows && column < c.bias_columns)
        write<A>(c.dbias.at, c.dtype, c.dbias.row(b0, h0, row) + column, sum[r][j]);
    }
}

int64_t delta_bytes(const KernelArgs& args) {
  return args.in[kLse].numel / 2 * static_cast<int64_t>(size_of(args.in[kLse].dtype));
}
Workspace workspace(const KernelArgs& args) {
  return {.shared = static_cast<size_t>(table_bytes(args) + delta_bytes(args))};
}

template <class A>
const char* run_delta(const AttentionCall& c, cudaStream_t stream) {
  const int64_t queries = static_cast<int64_t>(c.T) * (c.ragged ? 1 : c.B);
  const dim3 grid(static_cast<unsigned>((queries + kDeltaRows - 1) / kDeltaRows), static_cast<unsigned>(c.H));
  return problem(launch<attention_delta<A>>(grid, dim3(32, kDeltaRows), 0, stream, c, queries));
}
template <class A>
const char* run_tiles(const AttentionCall& c, cudaStream_t stream) {
  const auto parts = static_cast<unsigned>((c.D + kTile - 1) / kTile);
  if (c.T > 0) {
    const dim3 grid(static_cast<unsigned>(tile_blocks(c, c.T)), parts);
    if (const char* why =
            problem(launch<attention_grad_queries<A>>(grid, dim3(kTileThreads), 2 * kBuffer<A>, stream, c)))
      return why;
  }
  if (c.S == 0) return nullptr;
  const dim3 grid(static_cast<unsigned>(tile_blocks(c, c.S)), parts);
  return problem(launch<attention_grad_keys<A>>(grid, dim3(kTileThreads), 2 * kBuffer<A>, stream, c));
}
const char* backward(const AttentionCall& c, cudaStream_t stream) {
  if (suits_mma(c)) return attention_grad_by_mma(c, stream);
  return c.dtype == DType::float64 ? run_tiles<double>(c, stream) : run_tiles<float>(c, stream);
}
template <class A>
const char* run_bias(const AttentionCall& c, cudaStream_t stream) {
  const auto tiles = [](int n) { return static_cast<unsigned>((n + kTile - 1) / kTile); };
  const dim3 grid(tiles(c.bias_columns), tiles(c.bias_rows), static_cast<unsigned>(c.bias_units));
  if (grid.y > 65535 || grid.z > 65535) return "a bias of so many rows or planes is not on this device yet";
  return problem(launch<attention_grad_bias<A>>(grid, dim3(kTileThreads), kBuffer<A>, stream, c));
}

}  // namespace

PLM_KERNEL(attention_grad, workspace) {
  AttentionCall c = attention_call(args);
  c.out = args.in[kOut].data;
  c.lse = args.in[kLse].data;
  c.dout = args.in[kDout].data;
  c.weights = plane_of(args.in[kWeights]);
  c.dweights = plane_of(args.in[kDweights]);
  c.delta = args.shared + table_bytes(args);
  c.packs = rows_of_whole(c, 4, c.q, c.k, c.v, c.dout);
  c.vectors = rows_of_whole(c, 8, c.q, c.k, c.v, c.dout);
  const bool packed_qkv = !args.has(kK), packed_kv = !packed_qkv && !args.has(kV);
  const HeadsOf heads = heads_of(c, args.out, packed_qkv, packed_kv);
  c.dq = heads.q;
  c.dk = heads.k;
  c.dv = heads.v;
  const cudaStream_t stream = stream_of(args);
  const bool wide = c.dtype == DType::float64;
  if (const char* why = too_large(c)) return why;
  if (const char* why = attention_sequences(args, c)) return why;
  if (c.rows > 0)
    if (const char* why = wide ? run_delta<double>(c, stream) : run_delta<float>(c, stream)) return why;
  if (c.B > 0 && c.H > 0)
    if (const char* why = backward(c, stream)) return why;
  if (!args.i("bias_grad")) return nullptr;
  const View& dbias = args.out[args.n_out - 1];
  if (dbias.numel == 0) return nullptr;
  c.dbias = plane_of(dbias);
  c.dbias.row_stride = dbias.size[3];
  c.bias_units = static_cast<int>(dbias.size[0] * dbias.size[1]);
  c.bias_heads = static_cast<int>(dbias.size[1]);
  c.bias_rows = static_cast<int>(dbias.size[2]);
  c.bias_columns = static_cast<int>(dbias.size[3]);
  return wide ? run_bias<double>(c, stream) : run_bias<float>(c, stream);
}

}  // namespace plmcore::cuda
