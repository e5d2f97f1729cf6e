// y = exp(x - max) / sum(exp(x - max)) over the last axis.   x [rows, C]
// Row by row (device/rows.cuh). Traffic: one read of x and one write of y; a row of more than 4096 elements
// is read twice, the second time from cache.
//
// Backward: dx = y * (dy - sum(dy * y)).
#include "device/log_sum.cuh"

namespace plmcore::cuda {

namespace {

template <class T>
struct Softmax {
  const T* x;
  T* y;
  int C;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const T* from = x + r * C;
    const Row row(from, C);
    typename Row::Held v;
    const ExpSum<A> s = exp_sum(row, from, v);
    const A scale = A(1) / s.sum;
    row.each([&](int n, int column) {
      row.read_again(from, column, v[n]);
      row.inside(column, [&](int j) { v[n][j] = std::exp(v[n][j] - s.top) * scale; });
      row.write(y + r * C, column, v[n]);
    });
  }
};

template <class T>
struct SoftmaxGrad {
  const T *y, *dy;
  T* dx;
  int C;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const Row row(y + r * C, C);
    typename Row::Held p, d;
    A sum = 0;
    row.each([&](int n, int column) {
      row.read(y + r * C, column, p[n]);
      row.read(dy + r * C, column, d[n]);
      row.inside(column, [&](int j) { sum += p[n][j] * d[n][j]; });
    });
    sum = Row::template reduce<Sum>(sum);
    row.each([&](int n, int column) {
      row.read_again(y + r * C, column, p[n]);
      row.read_again(dy + r * C, column, d[n]);
      row.inside(column, [&](int j) { d[n][j] = p[n][j] * (d[n][j] - sum); });
      row.write(dx + r * C, column, d[n]);
    });
  }
};

}  // namespace

PLM_KERNEL(softmax) {
  const View& x = args.in[0];
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Softmax<T> op{x.as<T>(), args.out[0].as<T>(), static_cast<int>(x.last())};
    return launch_rows(args, op, op.x, x.rows(), x.last());
  });
}

// y, dy -> dx
PLM_KERNEL(softmax_grad) {
  const View& y = args.in[0];
  return for_float(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const SoftmaxGrad<T> op{y.as<T>(), args.in[1].as<T>(), args.out[0].as<T>(), static_cast<int>(y.last())};
    return launch_rows(args, op, op.y, y.rows(), y.last());
  });
}

}  // namespace plmcore::cuda
