// Layer norm and its kin, forward and backward, row by row (device/rows.cuh).
//   kCentre: the mean is taken off (layer_norm); without it rms_norm, which has no mean and no beta
//   kExtra:  forward s = x + residual first; backward adds the gradient ds that reached s, where there is one
//
// Backward, with xh = (x - mean) * rstd and d = dy * gamma:
//   dx = rstd * (d - mean(d) - xh * mean(d * xh)) + ds,  dgamma = sum(dy * xh),  dbeta = sum(dy)
// A block takes a range of rows and keeps its columns' sums of dgamma and dbeta in registers, so that x and
// dy are read once. The ranges depend on the number of rows alone; their sums are added in order
// (device/column_sums.cuh). Rows of more than 4096 elements (2048 of float64) are read again for the columns.
#pragma once

#include "device/column_sums.cuh"
#include "device/rows.cuh"

namespace plmcore::cuda {

template <class T, bool kCentre, bool kExtra>
struct Norm {
  const T *x, *residual, *gamma, *beta;
  T *y, *s;
  Acc<T>*mean, *rstd;
  int C;
  Acc<T> eps;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const T* from = x + r * C;
    const Row row(from, C);
    typename Row::Held v;
    A sum = 0, squares = 0, mu = 0;
    row.each([&](int n, int column) {
      row.read(from, column, v[n]);
      if constexpr (kExtra) {
        A other[Row::V];
        row.read(residual + r * C, column, other);
#pragma unroll
        for (int j = 0; j < Row::V; ++j) v[n][j] = widen(narrow<T>(v[n][j] + other[j]));
        row.write(s + r * C, column, v[n]);
      }
      row.inside(column, [&](int j) { sum += kCentre ? v[n][j] : v[n][j] * v[n][j]; });
    });
    sum = Row::template reduce<Sum>(sum) / static_cast<A>(C);
    const T* normed = kExtra ? s + r * C : from;
    if constexpr (kCentre) {
      mu = sum;
      row.each([&](int n, int column) {
        row.read_again(normed, column, v[n]);
        row.inside(column, [&](int j) { squares += (v[n][j] - mu) * (v[n][j] - mu); });
      });
      sum = Row::template reduce<Sum>(squares) / static_cast<A>(C);
    }
    const A scale = A(1) / std::sqrt(sum + eps);
    if (Row::first()) {
      if constexpr (kCentre) mean[r] = mu;
      rstd[r] = scale;
    }
    row.each([&](int n, int column) {
      A g[Row::V], b[Row::V];
      row.read_again(normed, column, v[n]);
      row.read(gamma, column, g);
      if constexpr (kCentre) row.read(beta, column, b);
#pragma unroll
      for (int j = 0; j < Row::V; ++j) v[n][j] = (v[n][j] - mu) * scale * g[j] + (kCentre ? b[j] : A(0));
      row.write(y + r * C, column, v[n]);
    });
  }
};

// The operands of a backward pass; mean is null without kCentre, ds without kExtra.
template <class T>
struct NormGrad {
  const T *x, *gamma;
  const Acc<T>*mean, *rstd;
  const T *dy, *ds;
  T* dx;
};

// The sums over a row that its dx is made of, and dx of one pack.
template <bool kCentre, class A>
struct NormRow {
  A mu, scale, mean_d, mean_dxh;

  __device__ __forceinline__ A dx(A x, A d) const {
    return (d - (kCentre ? mean_d : A(0)) - (x - mu) * scale * mean_dxh) * scale;
  }
};

// Elements of a thread in the backward pass, which keeps five numbers for each.
template <class T> inline constexpr int kNormElements = sizeof(T) == 8 ? kBlockElements / 2 : kBlockElements;

// grid (ranges of rows), block (32 .. 512); part [ranges][sums][C]
template <class T, bool kCentre, bool kExtra>
__global__ void __launch_bounds__(kRowThreads, 1)
    norm_grad_held(NormGrad<T> in, int64_t rows, int C, Acc<T>* __restrict__ part) {
  using A = Acc<T>;
  using Row = RowOf<T, kNormElements<T> / kPack<T>, false>;
  constexpr int kSums = kCentre ? 2 : 1;
  const Row row(static_cast<const T*>(nullptr), C);  // the same columns in every row
  typename Row::Held g, x, d, dgamma, dbeta;
  row.each([&](int n, int column) {
    row.read(in.gamma, column, g[n]);
#pragma unroll
    for (int j = 0; j < Row::V; ++j) dgamma[n][j] = dbeta[n][j] = 0;
  });
  const int64_t end = first_row(rows, gridDim.x, blockIdx.x + 1);
#pragma unroll 1
  for (int64_t r = first_row(rows, gridDim.x, blockIdx.x); r < end; ++r) {
    NormRow<kCentre, A> s{kCentre ? in.mean[r] : A(0), in.rstd[r], 0, 0};
    row.each([&](int n, int column) {
      row.read(in.x + r * C, column, x[n]);
      row.read(in.dy + r * C, column, d[n]);
      row.inside(column, [&](int j) {
        const A xh = (x[n][j] - s.mu) * s.scale, dy = d[n][j];
        dgamma[n][j] += dy * xh;
        if constexpr (kCentre) dbeta[n][j] += dy;
        d[n][j] *= g[n][j];
        s.mean_d += d[n][j];
        s.mean_dxh += d[n][j] * xh;
      });
    });
    if constexpr (kCentre) s.mean_d = block_reduce<Sum>(s.mean_d) / static_cast<A>(C);
    s.mean_dxh = block_reduce<Sum>(s.mean_dxh) / static_cast<A>(C);
    row.each([&](int n, int column) {
      A more[Row::V];
      if constexpr (kExtra) row.read(in.ds + r * C, column, more);
#pragma unroll
      for (int j = 0; j < Row::V; ++j) {
        d[n][j] = s.dx(x[n][j], d[n][j]);
        if constexpr (kExtra) d[n][j] += more[j];
      }
      row.write(in.dx + r * C, column, d[n]);
    });
  }
  A* own = part + static_cast<int64_t>(blockIdx.x) * kSums * C;
  row.each([&](int n, int column) {
    row.inside(column, [&](int j) {
      own[column + j] = dgamma[n][j];
      if constexpr (kCentre) own[C + column + j] = dbeta[n][j];
    });
  });
}

// dx of a long row, in two passes.
template <class T, bool kCentre, bool kExtra>
struct LongNormGrad {
  NormGrad<T> in;
  int C;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const T *x = in.x + r * C, *dy = in.dy + r * C;
    const Row row(x, C);
    A v[Row::V], d[Row::V], g[Row::V];
    NormRow<kCentre, A> s{kCentre ? in.mean[r] : A(0), in.rstd[r], 0, 0};
    row.each([&](int, int column) {
      row.read(x, column, v);
      row.read(dy, column, d);
      row.read(in.gamma, column, g);
      row.inside(column, [&](int j) {
        s.mean_d += d[j] * g[j];
        s.mean_dxh += d[j] * g[j] * ((v[j] - s.mu) * s.scale);
      });
    });
    if constexpr (kCentre) s.mean_d = Row::template reduce<Sum>(s.mean_d) / static_cast<A>(C);
    s.mean_dxh = Row::template reduce<Sum>(s.mean_dxh) / static_cast<A>(C);
    row.each([&](int, int column) {
      row.read(x, column, v);
      row.read(dy, column, d);
      row.read(in.gamma, column, g);
#pragma unroll
      for (int j = 0; j < Row::V; ++j) d[j] = s.dx(v[j], d[j] * g[j]);
      if constexpr (kExtra) {
        row.read(in.ds + r * C, column, v);
#pragma unroll
        for (int j = 0; j < Row::V; ++j) d[j] += v[j];
      }
      row.write(in.dx + r * C, column, d);
    });
  }
};
template <class T, bool kCentre>
__global__ void __launch_bounds__(kColumns* kRowLanes)
    norm_grad_columns(NormGrad<T> in, int64_t rows, int64_t C, Acc<T>* __restrict__ part) {
  constexpr int kSums = kCentre ? 2 : 1;
  chunk_column_sums<kSums>(rows, C, part, [&](int64_t r, int64_t column, Acc<T>(&values)[kSums]) {
    const Acc<T> g = widen(in.dy[r * C + column]), mu = kCentre ? in.mean[r] : Acc<T>(0);
    values[0] = g * (widen(in.x[r * C + column]) - mu) * in.rstd[r];
    if constexpr (kCentre) values[1] = g;
  });
}

template <class T> inline constexpr int64_t kLongestHeldNorm = kRowThreads * kNormElements<T>;

// Ranges of rows, by their number alone: blocks enough for a GPU, and not more partial sums than rows.
inline int64_t norm_ranges(int64_t rows, bool held) {
  if (!held) return row_chunks(rows);
  const int64_t wish = (rows + 3) / 4;
  return wish < 1 ? 1 : wish < 512 ? wish : 512;
}
template <bool kCentre>
Workspace norm_workspace(const KernelArgs& args) {
  const View& x = args.in[0];
  const bool wide = x.dtype == DType::float64,
             held = x.last() <= (wide ? kLongestHeldNorm<double> : kLongestHeldNorm<float>);
  return {.shared = static_cast<size_t>(norm_ranges(x.rows(), held) * (kCentre ? 2 : 1) * x.last()) *
                    (wide ? 8 : 4)};
}

// dgamma goes to output 1, dbeta to output 2.
template <class T, bool kCentre, bool kExtra>
const char* norm_backward(const KernelArgs& args, const NormGrad<T>& in) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const bool held = C <= kLongestHeldNorm<T>;
  const int64_t ranges = norm_ranges(rows, held);
  constexpr int kSums = kCentre ? 2 : 1;
  const cudaStream_t stream = stream_of(args);
  auto* part = args.shared_as<Acc<T>>();
  if (C == 0) return nullptr;
  cudaError_t error = cudaSuccess;
  if (held)
    error = launch<norm_grad_held<T, kCentre, kExtra>>(
        dim3(static_cast<unsigned>(ranges)), row_block((C + kNormElements<T> - 1) / kNormElements<T>), 0,
        stream, in, rows, C, part);
  else {
    using Op = LongNormGrad<T, kCentre, kExtra>;
    if (rows >> 31 || C >> 30) return "2^31 rows, or 2^30 columns, and more are not on this device yet";
    if (rows)
      error = launch<rows_by_block<T, 0, Op>>(dim3(static_cast<unsigned>(rows)), row_block(C / kPack<T>), 0,
                                              stream, Op{in, static_cast<int>(C)});
    if (error) return problem(error);
    error = launch<norm_grad_columns<T, kCentre>>(column_grid(C, ranges), column_block(), 0, stream, in, rows,
                                                  C, part);
  }
  for (int k = 0; k < kSums && !error; ++k)
    error = launch_add_chunks(part + k * C, ranges, kSums * C, C, args.out[1 + k].as<T>(), stream);
  return problem(error);
}

}  // namespace plmcore::cuda
