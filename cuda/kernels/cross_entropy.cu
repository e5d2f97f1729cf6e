// loss_r = w_target (lse - x[label]) + w_all (V lse - sum(x)); for soft targets t: w_target (sum(t) lse -
// sum(t x)) + ... logits [rows, V]; labels [rows], or soft targets [rows, V] Forward row by row
// (device/rows.cuh): maximum, sum of exponentials and the sums that smoothing and soft targets need in one
// read of the logits. Then one block adds the losses in a fixed order. Backward, with p_v = exp(x_v - lse):
//   dlogits_v = g (p_v - w_all - w_target [v = label]);   for soft targets g (p_v sum(t) - t_v)
// One read and one write, and no buffer of the size of the logits. A label that is no class is noted, and its
// row counts as ignored.
#include "device/fault.cuh"
#include "device/grid.h"
#include "device/log_sum.cuh"

namespace plmcore::cuda {

namespace {

enum Reduction : int64_t { kMean, kSum, kNone };

struct Weights {
  double target, all;
  Weights(const KernelArgs& args, int64_t V) {
    const double e = args.f("label_smoothing");
    if (!args.i("excludes_target")) target = 1 - e, all = V > 0 ? e / static_cast<double>(V) : 0;
    else all = V > 1 ? e / static_cast<double>(V - 1) : 0, target = 1 - e - all;
  }
};

// A row's label: whether it counts, after a note of a bad one.
template <class I>
struct Labels {
  const I* at;
  int64_t ignore, V;
  unsigned long long* bad_position;

  __device__ __forceinline__ bool counts(int64_t r) const { return at[r] != ignore && within(at[r], V); }
  __device__ __forceinline__ void note(int64_t r) const {
    if (at[r] != ignore && !within(at[r], V)) note_bad(bad_position, r);
  }
};

// A: the dtype of sums. Sums over a row of more than its maximum and exponentials are in float64.
template <class T, class I>
struct LabelLoss {
  const T* x;
  Labels<I> labels;
  Acc<T>*top, *log_sum, *loss;
  int V;
  double target, all;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    if (!labels.counts(r)) {  // the whole warp or block
      if (Row::first()) {
        top[r] = log_sum[r] = loss[r] = 0;
        labels.note(r);
      }
      return;
    }
    const T* from = x + r * V;
    const Row row(from, V);
    typename Row::Held v;
    double sum_x = 0;
    const bool smooth = all != 0;
    const ExpSum<A> s = exp_sum(row, from, v, [&](int n, int column) {
      if (!smooth) return;
      A part = 0;
      row.inside(column, [&](int j) { part += v[n][j]; });
      sum_x += part;
    });
    if (smooth) sum_x = Row::template reduce<Sum>(sum_x);
    if (!Row::first()) return;
    const A lse = std::log(s.sum);
    top[r] = s.top;
    log_sum[r] = lse;
    const double spread = smooth ? all * (double(V) * lse + (double(V) * s.top - sum_x)) : 0;
    loss[r] = static_cast<A>(target * (lse + (s.top - widen(from[labels.at[r]]))) + spread);
  }
};

template <class T>
struct SoftLoss {
  const T *x, *t;
  Acc<T>*top, *log_sum, *loss;
  int V;
  double target, all;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const T *from = x + r * V, *targets = t + r * V;
    const Row row(from, V);
    typename Row::Held v;
    double sum_x = 0, sum_t = 0, sum_tx = 0;
    const ExpSum<A> s = exp_sum(row, from, v, [&](int n, int column) {
      A w[Row::V], part = 0, part_t = 0, part_tx = 0;
      row.read(targets, column, w);
      row.inside(column, [&](int j) {
        part += v[n][j];
        part_t += w[j];
        part_tx += w[j] * v[n][j];
      });
      sum_x += part, sum_t += part_t, sum_tx += part_tx;
    });
    sum_x = Row::template reduce<Sum>(sum_x);
    sum_t = Row::template reduce<Sum>(sum_t);
    sum_tx = Row::template reduce<Sum>(sum_tx);
    if (!Row::first()) return;
    const A lse = std::log(s.sum);
    top[r] = s.top;
    log_sum[r] = lse;
    const double spread = all != 0 ? all * (double(V) * lse + (double(V) * s.top - sum_x)) : 0;
    loss[r] = static_cast<A>(target * (lse * sum_t + (s.top * sum_t - sum_tx)) + spread);
  }
};

// One block of 256: *count = the labels that count, *loss = sum(row) or its mean. Without `row` only the
// count.
template <class A, class I>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_total(const A* row, const I* labels, int64_t rows, int64_t ignore, int64_t V, bool mean,
                        A* loss, int64_t* count) {
  double total = 0;
  long long counted = 0;
  for (int64_t r = threadIdx.x; r < rows; r += kThreads) {
    if (row) total += row[r];
    counted += !labels || (labels[r] != ignore && within(labels[r], V));
  }
  counted = block_reduce<Sum>(counted);
  if (row) total = block_reduce<Sum>(total);
  if (threadIdx.x > 0) return;
  if (count) *count = counted;
  if (loss) *loss = static_cast<A>(mean ? total / static_cast<double>(counted) : total);
}

// What a row's gradient is multiplied by.
template <class A>
struct Slope {
  const A* dy;
  const int64_t* count;  // for the mean
  bool each;

  __device__ __forceinline__ A at(int64_t r) const {
    if (each) return dy[r];
    return count ? dy[0] / static_cast<A>(*count) : dy[0];
  }
};

template <class T, class I>
struct LabelGrad {
  const T* x;
  Labels<I> labels;
  const Acc<T>*top, *log_sum;
  Slope<Acc<T>> slope;
  T* dx;
  int V;
  Acc<T> target, all;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const T* from = x + r * V;
    const Row row(from, V);
    const bool counts = labels.counts(r);
    const A g = counts ? slope.at(r) : A(0), m = top[r], lse = log_sum[r], spread = all * g;
    const int64_t label = counts ? labels.at[r] : -1;
    row.each([&](int, int column) {
      A v[Row::V] = {};
      if (counts) {
        row.read(from, column, v);
#pragma unroll
        for (int j = 0; j < Row::V; ++j)
          v[j] = std::exp(v[j] - m - lse) * g - spread - (column + j == label ? target * g : A(0));
      }
      row.write(dx + r * V, column, v);
    });
    if (Row::first()) labels.note(r);
  }
};

template <class T>
struct SoftGrad {
  const T *x, *t;
  const Acc<T>*top, *log_sum;
  Slope<Acc<T>> slope;
  T *dx, *dt;
  int V;
  Acc<T> target, all;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    using A = Acc<T>;
    const Row row(t + r * V, V);
    typename Row::Held w;
    const A g = slope.at(r), m = top[r], lse = log_sum[r];
    A mass = 0;
    row.each([&](int n, int column) {
      row.read(t + r * V, column, w[n]);
      row.inside(column, [&](int j) { mass += w[n][j]; });
    });
    mass = target * Row::template reduce<Sum>(mass) + all * static_cast<A>(V);
    row.each([&](int n, int column) {
      A v[Row::V], d[Row::V];
      row.read(x + r * V, column, v);
      row.read_again(t + r * V, column, w[n]);
#pragma unroll
      for (int j = 0; j < Row::V; ++j) {
        d[j] = -(v[j] - m - lse);
        v[j] = (std::exp(-d[j]) * mass - (w[n][j] * target + all)) * g;
        d[j] *= target * g;
      }
      row.write(dx + r * V, column, v);
      if (dt) row.write(dt + r * V, column, d);
    });
  }
};

Workspace workspace(const KernelArgs& args) {
  return {.shared = static_cast<size_t>(args.in[0].rows()) * (args.in[0].dtype == DType::float64 ? 8 : 4)};
}
Workspace workspace_grad(const KernelArgs&) { return {.shared = sizeof(int64_t)}; }

}  // namespace

PLM_KERNEL(cross_entropy, workspace) {
  const View &x = args.in[0], &labels = args.in[1];
  const int64_t V = x.last(), rows = x.rows(), ignore = args.i("ignore_index"),
                reduction = args.i("reduction");
  const Weights w(args, V);
  const cudaStream_t stream = stream_of(args);
  return for_float(x.dtype, [&](auto type) -> const char* {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    A *top = args.out[1].as<A>(), *log_sum = args.out[2].as<A>(), *total = args.out[0].as<A>(),
      *loss = reduction == kNone ? total : args.shared_as<A>();
    const int width = static_cast<int>(V);
    const auto add_up = [&]<class I>(const I* from) {
      if (reduction == kNone) return static_cast<const char*>(nullptr);
      return problem(launch<cross_entropy_total<A, I>>(dim3(1), dim3(kThreads), 0, stream, loss, from, rows,
                                                       ignore, V, reduction == kMean, total, nullptr));
    };
    if (is_float(labels.dtype)) {
      const SoftLoss<T> op{x.as<T>(), labels.as<T>(), top, log_sum, loss, width, w.target, w.all};
      const char* why = launch_rows<16>(args, op, op.x, rows, V);
      return why ? why : add_up(static_cast<const int64_t*>(nullptr));
    }
    return for_index(labels.dtype, [&](auto index) {
      using I = typename decltype(index)::type;
      const Labels<I> given{labels.as<I>(), ignore, V, gpu_of(args).bad_position};
      const LabelLoss<T, I> op{x.as<T>(), given, top, log_sum, loss, width, w.target, w.all};
      const char* why = launch_rows<16>(args, op, op.x, rows, V);
      if (!why) why = add_up(given.at);
      return why || !rows ? why : report_faults<I>(args, ops::id_cross_entropy, DataError::label, labels, V);
    });
  });
}

// logits, labels, top, log_sum, dy -> dlogits, and dlabels of soft targets that want one
PLM_KERNEL(cross_entropy_grad, workspace_grad) {
  const View &x = args.in[0], &labels = args.in[1];
  const int64_t V = x.last(), rows = x.rows(), ignore = args.i("ignore_index"),
                reduction = args.i("reduction");
  const Weights w(args, V);
  const cudaStream_t stream = stream_of(args);
  if (x.numel == 0) return nullptr;
  return for_float(x.dtype, [&](auto type) -> const char* {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const A *top = args.in[2].as<A>(), *log_sum = args.in[3].as<A>();
    const bool mean = reduction == kMean;
    const Slope<A> slope{args.in[4].as<A>(), mean ? args.shared_as<int64_t>() : nullptr, reduction == kNone};
    const int width = static_cast<int>(V);
    const auto count = [&]<class I>(const I* from) {
      if (!mean) return static_cast<const char*>(nullptr);
      return problem(launch<cross_entropy_total<A, I>>(dim3(1), dim3(kThreads), 0, stream, nullptr, from,
                                                       rows, ignore, V, false, nullptr,
                                                       args.shared_as<int64_t>()));
    };
    if (is_float(labels.dtype)) {
      const SoftGrad<T> op{x.as<T>(),
                           labels.as<T>(),
                           top,
                           log_sum,
                           slope,
                           args.out[0].as<T>(),
                           args.i("targets") ? args.out[1].as<T>() : nullptr,
                           width,
                           static_cast<A>(w.target),
                           static_cast<A>(w.all)};
      const char* why = count(static_cast<const int64_t*>(nullptr));
      return why ? why : launch_rows<16>(args, op, op.t, rows, V);
    }
    return for_index(labels.dtype, [&](auto index) {
      using I = typename decltype(index)::type;
      const Labels<I> given{labels.as<I>(), ignore, V, gpu_of(args).bad_position};
      const LabelGrad<T, I> op{x.as<T>(),
                               given,
                               top,
                               log_sum,
                               slope,
                               args.out[0].as<T>(),
                               width,
                               static_cast<A>(w.target),
                               static_cast<A>(w.all)};
      const char* why = count(given.at);
      if (!why) why = launch_rows<16>(args, op, op.x, rows, V);
      return why ? why : report_faults<I>(args, ops::id_cross_entropy_grad, DataError::label, labels, V);
    });
  });
}

}  // namespace plmcore::cuda
