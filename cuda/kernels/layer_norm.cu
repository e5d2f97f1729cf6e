// y = (x - mean) * rstd * gamma + beta over the last axis.   x [rows, C]; gamma, beta [C]; mean, rstd [rows]
// By warp or by block, a row each (device/rows.cuh). Variance by two passes. Traffic: one read and one write
// of x; by block the second and third pass read from cache.
//
// Backward, with xh = (x - mean) * rstd and d = dy * gamma:
//   dx = rstd * (d - mean(d) - xh * mean(d * xh)),  dgamma = sum(dy * xh),  dbeta = sum(dy)
// dx row by row as above; dgamma and dbeta by column in a second kernel (device/column_sums.cuh), which reads
// x and dy again: 32 columns x 64 chunks of rows fill a GPU where whole rows per chunk would not.
#include "device/column_sums.cuh"
#include "device/kernel.h"
#include "device/reduce.cuh"
#include "device/rows.cuh"

namespace plmcore::cuda {

namespace {

// grid (rows / 4), block (32, 4)
template <class T, int E>
__global__ void __launch_bounds__(32 * kRowWarps)
    layer_norm_by_warp(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
                       T* __restrict__ y, Acc<T>* __restrict__ mean, Acc<T>* __restrict__ rstd, int64_t rows,
                       int C, Acc<T> eps) {
  using A = Acc<T>;
  using Row = HeldRow<T, E>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
  if (row >= rows) return;  // a whole warp leaves, and no barrier follows
  Row held;
  held.load_from(x + row * C, C, A(0));
  A sum = 0, squares = 0;
  held.each(C, [&](A v, int, int) { sum += v; });
  const A mu = warp_reduce<Sum>(sum) / static_cast<A>(C);
  held.each(C, [&](A v, int, int) { squares += (v - mu) * (v - mu); });
  const A r = A(1) / std::sqrt(warp_reduce<Sum>(squares) / static_cast<A>(C) + eps);
  if (threadIdx.x == 0) {
    mean[row] = mu;
    rstd[row] = r;
  }
#pragma unroll
  for (int n = 0; n < Row::N; ++n) {
    if (Row::column(n) >= C) continue;
    A g[Row::V], b[Row::V];
    load<Row::V>(gamma + Row::column(n), g);
    load<Row::V>(beta + Row::column(n), b);
#pragma unroll
    for (int j = 0; j < Row::V; ++j) held.pack[n][j] = (held.pack[n][j] - mu) * r * g[j] + b[j];
  }
  held.store_to(y + row * C, C);
}

// grid (rows), block (32 .. 512)
template <class T, int V>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layer_norm_by_block(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
                        T* __restrict__ y, Acc<T>* __restrict__ mean, Acc<T>* __restrict__ rstd, int64_t C,
                        Acc<T> eps) {
  using A = Acc<T>;
  const int64_t row = blockIdx.x, begin = static_cast<int64_t>(threadIdx.x) * V,
                step = static_cast<int64_t>(blockDim.x) * V;
  x += row * C;
  y += row * C;
  A v[V], g[V], b[V], sum = 0, squares = 0;
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) sum += v[j];
  }
  const A mu = block_reduce<Sum>(sum) / static_cast<A>(C);
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) squares += (v[j] - mu) * (v[j] - mu);
  }
  const A r = A(1) / std::sqrt(block_reduce<Sum>(squares) / static_cast<A>(C) + eps);
  if (threadIdx.x == 0) {
    mean[row] = mu;
    rstd[row] = r;
  }
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
    load<V>(gamma + i, g);
    load<V>(beta + i, b);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = (v[j] - mu) * r * g[j] + b[j];
    store<V>(y + i, v);
  }
}

template <class T, int E>
__global__ void __launch_bounds__(32 * kRowWarps)
    layer_norm_grad_by_warp(const T* __restrict__ x, const T* __restrict__ gamma,
                            const Acc<T>* __restrict__ mean, const Acc<T>* __restrict__ rstd,
                            const T* __restrict__ dy, T* __restrict__ dx, int64_t rows, int C) {
  using A = Acc<T>;
  using Row = HeldRow<T, E>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
  if (row >= rows) return;
  const A mu = mean[row], r = rstd[row];
  Row xh, d;
  xh.load_from(x + row * C, C, mu);
  d.load_from(dy + row * C, C, A(0));
  A sum_d = 0, sum_dxh = 0;
#pragma unroll
  for (int n = 0; n < Row::N; ++n) {
    if (Row::column(n) >= C) continue;
    A g[Row::V];
    load<Row::V>(gamma + Row::column(n), g);
#pragma unroll
    for (int j = 0; j < Row::V; ++j) {
      xh.pack[n][j] = (xh.pack[n][j] - mu) * r;
      d.pack[n][j] *= g[j];
      sum_d += d.pack[n][j];
      sum_dxh += d.pack[n][j] * xh.pack[n][j];
    }
  }
  const A mean_d = warp_reduce<Sum>(sum_d) / static_cast<A>(C),
          mean_dxh = warp_reduce<Sum>(sum_dxh) / static_cast<A>(C);
  d.each(C, [&](A& v, int n, int j) { v = (v - mean_d - xh.pack[n][j] * mean_dxh) * r; });
  d.store_to(dx + row * C, C);
}

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layer_norm_grad_by_block(const T* __restrict__ x, const T* __restrict__ gamma,
                             const Acc<T>* __restrict__ mean, const Acc<T>* __restrict__ rstd,
                             const T* __restrict__ dy, T* __restrict__ dx, int64_t C) {
  using A = Acc<T>;
  const int64_t row = blockIdx.x, begin = static_cast<int64_t>(threadIdx.x) * V,
                step = static_cast<int64_t>(blockDim.x) * V;
  x += row * C;
  dy += row * C;
  dx += row * C;
  const A mu = mean[row], r = rstd[row];
  A v[V], g[V], d[V], sum_d = 0, sum_dxh = 0;
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
    load<V>(gamma + i, g);
    load<V>(dy + i, d);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      sum_d += d[j] * g[j];
      sum_dxh += d[j] * g[j] * ((v[j] - mu) * r);
    }
  }
  const A mean_d = block_reduce<Sum>(sum_d) / static_cast<A>(C),
          mean_dxh = block_reduce<Sum>(sum_dxh) / static_cast<A>(C);
#pragma unroll 1
  for (int64_t i = begin; i < C; i += step) {
    load<V>(x + i, v);
    load<V>(gamma + i, g);
    load<V>(dy + i, d);
#pragma unroll
    for (int j = 0; j < V; ++j) d[j] = (d[j] * g[j] - mean_d - (v[j] - mu) * r * mean_dxh) * r;
    store<V>(dx + i, d);
  }
}

// part [chunks][2][C]: dgamma, dbeta
template <class T>
__global__ void layer_norm_grad_columns(const T* __restrict__ x, const Acc<T>* __restrict__ mean,
                                        const Acc<T>* __restrict__ rstd, const T* __restrict__ dy,
                                        int64_t rows, int64_t C, Acc<T>* __restrict__ part) {
  chunk_column_sums<2>(rows, C, part, [&](int64_t row, int64_t column, Acc<T>(&values)[2]) {
    const Acc<T> g = widen(dy[row * C + column]);
    values[0] = g * (widen(x[row * C + column]) - mean[row]) * rstd[row];
    values[1] = g;
  });
}

}  // namespace

PLM_KERNEL(layer_norm) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const double eps = args.f("eps");
  const cudaStream_t stream = stream_of(args);
  if (rows == 0) return nullptr;
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *x = args.in[0].as<T>(), *gamma = args.in[1].as<T>(), *beta = args.in[2].as<T>();
    T* y = args.out[0].as<T>();
    Acc<T>*mean = args.out[1].as<Acc<T>>(), *rstd = args.out[2].as<Acc<T>>();
    return problem(for_row_width<T>(
        C, aligned(x, gamma, beta, y),
        [&](auto E) {
          return launch<layer_norm_by_warp<T, decltype(E)::value>>(
              warp_grid(rows), warp_block(), 0, stream, x, gamma, beta, y, mean, rstd, rows, C, eps);
        },
        [&](auto V) {
          constexpr int kV = decltype(V)::value;
          return launch<layer_norm_by_block<T, kV>>(dim3(static_cast<unsigned>(rows)), row_block(C / kV), 0,
                                                    stream, x, gamma, beta, y, mean, rstd, C, eps);
        }));
  });
}

static Workspace workspace(const KernelArgs& args) { return column_sums_workspace(args.in[0], 2); }

PLM_KERNEL(layer_norm_grad, workspace) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows(), chunks = row_chunks(rows);
  const cudaStream_t stream = stream_of(args);
  if (C == 0) return nullptr;
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *x = args.in[0].as<T>(), *gamma = args.in[1].as<T>(), *dy = args.in[4].as<T>();
    const Acc<T>*mean = args.in[2].as<Acc<T>>(), *rstd = args.in[3].as<Acc<T>>();
    T* dx = args.out[0].as<T>();
    auto* part = args.shared_as<Acc<T>>();
    cudaError_t error = cudaSuccess;
    if (rows)
      error = for_row_width<T>(
          C, aligned(x, gamma, dy, dx),
          [&](auto E) {
            return launch<layer_norm_grad_by_warp<T, decltype(E)::value>>(
                warp_grid(rows), warp_block(), 0, stream, x, gamma, mean, rstd, dy, dx, rows, C);
          },
          [&](auto V) {
            constexpr int kV = decltype(V)::value;
            return launch<layer_norm_grad_by_block<T, kV>>(dim3(static_cast<unsigned>(rows)),
                                                           row_block(C / kV), 0, stream, x, gamma, mean, rstd,
                                                           dy, dx, C);
          });
    if (!error)
      error = launch<layer_norm_grad_columns<T>>(column_grid(C, chunks), column_block(), 0, stream, x, mean,
                                                 rstd, dy, rows, C, part);
    if (!error) error = launch_add_chunks(part, chunks, 2 * C, C, args.out[1].as<T>(), stream);
    if (!error) error = launch_add_chunks(part + C, chunks, 2 * C, C, args.out[2].as<T>(), stream);
    return problem(error);
  });
}

}  // namespace plmcore::cuda
