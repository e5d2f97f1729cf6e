// A vector: one pass moves v and sums the squares of param and update, a second steps
// (device/square_sums.cuh). A matrix [R, C]: the mean square of each row (device/rows.cuh) and of each column
// (device/column_sums.cuh), then as a vector, with the update computed from the row's and the column's factor
// rather than kept. Four reads of the gradient.
#include <cmath>

#include "device/axes.h"
#include "device/column_sums.cuh"
#include "device/rows.cuh"
#include "device/square_sums.cuh"

namespace plmcore::cuda {

namespace {

struct Options {
  double lr, eps, decay, beta, floor, threshold;
  bool relative;

  // How long the step is, from the sums of the squares of param and update.
  __device__ __forceinline__ double rate(const double (&sums)[2], int64_t n) const {
    const double rms_p = std::sqrt(sums[0] / static_cast<double>(n)),
                 rms_u = std::sqrt(sums[1] / static_cast<double>(n));
    const double size = rms_p > floor ? rms_p : floor;
    return lr * (relative ? size : 1) / (rms_u > threshold ? rms_u / threshold : 1);
  }
};

template <class T>
struct Operands {
  using A = Acc<T>;
  T* p;
  const T* g;
  A *m, *v;
  const float* scale;
  Options o;
  int64_t n;

  __device__ __forceinline__ A grad(int64_t i) const {
    return widen(g[i]) * (scale ? static_cast<A>(*scale) : A(1));
  }
  __device__ __forceinline__ void add_squares(int64_t i, A update, double (&sums)[2]) const {
    const A vp = widen(p[i]);
    sums[0] += static_cast<double>(vp) * vp;
    sums[1] += static_cast<double>(update) * update;
  }
  __device__ __forceinline__ double rate(const double (&sums)[2]) const { return o.rate(sums, n); }
  __device__ __forceinline__ void step_by(int64_t i, A update) const {
    p[i] = narrow<T>(widen(p[i]) * static_cast<A>(1 - o.lr * o.decay) - update);
  }
};

template <class T>
struct OfVector : Operands<T> {
  using A = Acc<T>;
  __device__ __forceinline__ A update(int64_t i) const { return this->grad(i) / std::sqrt(this->v[i]); }
  __device__ __forceinline__ void add(int64_t i, double (&sums)[2]) const {
    const A g = this->grad(i), beta = static_cast<A>(this->o.beta);
    this->v[i] = this->v[i] * beta + (g * g + static_cast<A>(this->o.eps)) * static_cast<A>(1 - this->o.beta);
    this->add_squares(i, update(i), sums);
  }
  __device__ __forceinline__ void step(int64_t i, A rate) const { this->step_by(i, update(i) * rate); }
};

template <class T>
struct OfMatrix : Operands<T> {
  using A = Acc<T>;
  const double* mean;  // of m
  int64_t C;
  __device__ __forceinline__ A update(int64_t i) const {
    const int64_t r = i / C, c = i - r * C;
    const A row = static_cast<A>(std::sqrt(*mean / static_cast<double>(this->m[r]))),
            column = static_cast<A>(1 / std::sqrt(static_cast<double>(this->v[c])));
    return this->grad(i) * row * column;
  }
  __device__ __forceinline__ void add(int64_t i, double (&sums)[2]) const {
    this->add_squares(i, update(i), sums);
  }
  __device__ __forceinline__ void step(int64_t i, A rate) const { this->step_by(i, update(i) * rate); }
};

// m[r] = beta m[r] + (1 - beta) (mean of the squares of row r + eps)
template <class T>
struct RowSquares {
  const T* g;
  const float* scale;
  Acc<T>* m;
  int C;
  double beta, eps;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const T* from = g + r * C;
    const Row row(from, C);
    const A factor = scale ? static_cast<A>(*scale) : A(1);
    double sum = 0;
    row.each([&](int, int column) {
      A v[Row::V];
      row.read(from, column, v);
      row.inside(column, [&](int j) { sum += static_cast<double>(v[j] * factor) * (v[j] * factor); });
    });
    sum = Row::template reduce<Sum>(sum);
    if (Row::first())
      m[r] = static_cast<A>(beta) * m[r] + static_cast<A>((1 - beta) * (sum / static_cast<double>(C) + eps));
  }
};
// part [chunks][C]
template <class T>
__global__ void __launch_bounds__(kColumns* kRowLanes)
    adafactor_columns(const T* __restrict__ g, const float* scale, int64_t rows, int64_t C,
                      Acc<T>* __restrict__ part) {
  const Acc<T> factor = scale ? static_cast<Acc<T>>(*scale) : Acc<T>(1);
  chunk_column_sums<1>(rows, C, part, [&](int64_t r, int64_t column, Acc<T>(&values)[1]) {
    const Acc<T> v = widen(g[r * C + column]) * factor;
    values[0] = v * v;
  });
}
// v[c] = beta v[c] + (1 - beta) (mean of the squares of column c + eps); a thread a column. Block 0 also: the
// mean of m.
template <class A>
__global__ void __launch_bounds__(kThreads)
    adafactor_factors(const A* __restrict__ part, int64_t chunks, int64_t rows, int64_t C, A* __restrict__ v,
                      double beta, double eps, const A* __restrict__ m, double* mean) {
  const int64_t c = first_of_thread();
  if (c < C) {
    double sum = 0;
    for (int64_t k = 0; k < chunks; ++k) sum += static_cast<double>(part[k * C + c]);
    v[c] = static_cast<A>(beta) * v[c] + static_cast<A>((1 - beta) * (sum / static_cast<double>(rows) + eps));
  }
  if (blockIdx.x > 0) return;  // the whole block
  double sum = 0;
  for (int64_t r = threadIdx.x; r < rows; r += kThreads) sum += static_cast<double>(m[r]);
  sum = block_reduce<Sum>(sum);
  if (threadIdx.x == 0) *mean = sum / static_cast<double>(rows);
}

size_t part_bytes(const View& param) { return (column_sums_workspace(param, 1).shared + 63) / 64 * 64; }
// The parts of the columns, the mean of m, the parts of the squares.
Workspace workspace(const KernelArgs& args) {
  const View& param = args.in[0];
  const size_t squares = square_bytes(param.numel);
  return {.shared = param.rank < 2 ? squares : part_bytes(param) + 64 + squares};
}

}  // namespace

PLM_KERNEL(adafactor_step, workspace) {
  const View& param = args.in[0];
  if (param.numel == 0) return nullptr;
  const Options o{args.f("lr"),           args.f("eps"),
                  args.f("weight_decay"), 1 - std::pow(static_cast<double>(args.i("step")), -args.f("power")),
                  args.f("floor"),        args.f("threshold"),
                  args.i("relative") != 0};
  const cudaStream_t stream = stream_of(args);
  return for_float(param.dtype, [&](auto type) -> const char* {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const Operands<T> in{param.as<T>(),
                         args.in[1].as<T>(),
                         args.in[2].as<A>(),
                         args.in[3].as<A>(),
                         args.has(4) ? args.in[4].as<float>() : nullptr,
                         o,
                         param.numel};
    if (param.rank < 2) return step_by_size<A>(args, OfVector<T>{in}, in.n, args.shared);
    const int64_t C = param.last(), R = param.rows(), chunks = row_chunks(R);
    auto* part = args.shared_as<A>();
    auto* mean = reinterpret_cast<double*>(args.shared + part_bytes(param));
    const RowSquares<T> rows{in.g, in.scale, in.m, static_cast<int>(C), o.beta, o.eps};
    if (const char* why = launch_rows(args, rows, in.g, R, C)) return why;
    cudaError_t error = launch<adafactor_columns<T>>(column_grid(C, chunks), column_block(), 0, stream, in.g,
                                                     in.scale, R, C, part);
    if (!error)
      error = launch<adafactor_factors<A>>(dim3(static_cast<unsigned>((C + kThreads - 1) / kThreads)),
                                           dim3(kThreads), 0, stream, part, chunks, R, C, in.v, o.beta, o.eps,
                                           in.m, mean);
    if (error) return problem(error);
    return step_by_size<A>(args, OfMatrix<T>{in, mean, C}, in.n, args.shared + part_bytes(param) + 64);
  });
}

}  // namespace plmcore::cuda
