// y = x - max - ln sum(exp(x - max)) over the last axis.   x [rows, C]
// Row by row, as softmax. Backward: dx = dy - exp(y) sum(dy).
#include "device/log_sum.cuh"

namespace plmcore::cuda {

namespace {

template <class T>
struct LogSoftmax {
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
    const A log_sum = std::log(s.sum);
    row.each([&](int n, int column) {
      row.read_again(from, column, v[n]);
      row.inside(column, [&](int j) { v[n][j] = v[n][j] - s.top - log_sum; });
      row.write(y + r * C, column, v[n]);
    });
  }
};

template <class T>
struct LogSoftmaxGrad {
  const T *y, *dy;
  T* dx;
  int C;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const Row row(dy + r * C, C);
    typename Row::Held d;
    A sum = 0;
    row.each([&](int n, int column) {
      row.read(dy + r * C, column, d[n]);
      row.inside(column, [&](int j) { sum += d[n][j]; });
    });
    sum = Row::template reduce<Sum>(sum);
    row.each([&](int n, int column) {
      A p[Row::V];
      row.read(y + r * C, column, p);
      row.read_again(dy + r * C, column, d[n]);
      row.inside(column, [&](int j) { d[n][j] -= std::exp(p[j]) * sum; });
      row.write(dx + r * C, column, d[n]);
    });
  }
};

}  // namespace

PLM_KERNEL(log_softmax) {
  const View& x = args.in[0];
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const LogSoftmax<T> op{x.as<T>(), args.out[0].as<T>(), static_cast<int>(x.last())};
    return launch_rows(args, op, op.x, x.rows(), x.last());
  });
}

// y, dy -> dx
PLM_KERNEL(log_softmax_grad) {
  const View& y = args.in[0];
  return for_float(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const LogSoftmaxGrad<T> op{y.as<T>(), args.in[1].as<T>(), args.out[0].as<T>(),
                               static_cast<int>(y.last())};
    return launch_rows(args, op, op.dy, y.rows(), y.last());
  });
}

}  // namespace plmcore::cuda
