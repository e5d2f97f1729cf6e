// Forward reads the logits once: blocks of a row stay in the first cache between their maximum and their sum
// of exponentials, which is rescaled when a later block has a larger maximum. Backward reads them once more
// and writes, with p_v = exp(x_v - lse),
//   dlogits_v = g (p_v - w_all - w_target [v = label]);   for soft targets t: g (p_v sum(t) - t_v)
#include "kernels/indices.h"
#include "kernels/row_sums.h"

namespace plmcore::PLM_ISA {

struct Weights {
  double target, all;  // loss = target * (lse - x[label]) + all * (V lse - sum(x)); target + V * all = 1
  Weights(const KernelArgs& args, int64_t V) {
    const double e = args.f("label_smoothing");
    if (!args.i("excludes_target")) target = 1 - e, all = V > 0 ? e / static_cast<double>(V) : 0;
    else all = V > 1 ? e / static_cast<double>(V - 1) : 0, target = 1 - e - all;
  }
};

// The part of the loss that smoothing spreads over all classes.
template <class A>
PLM_INLINE double spread(const Weights& w, int64_t V, const RowSums<A>& s) {
  const double n = static_cast<double>(V);
  return w.all != 0 ? w.all * (n * s.log_sum + (n * s.top - s.x)) : 0;
}

// IndexError for the first label that is neither a class nor ignored. Returns how many count.
template <class I>
static int64_t check_labels(ops::Id op, const View& labels, int64_t V, int64_t ignore) {
  int64_t count = 0;
  for (int64_t r = 0; r < labels.numel; ++r) {
    const int64_t l = labels.as<I>()[r];
    if (l == ignore) continue;
    if (static_cast<uint64_t>(l) >= static_cast<uint64_t>(V)) {
      Fault fault = fault_in(op, labels);
      fault.error = DataError::label;
      fault.value = l;
      fault.limit = V;
      fault.at = r;
      raise(fault);
    }
    ++count;
  }
  return count;
}

enum Reduction : int64_t { kMean, kSum, kNone };

template <class A>
static void reduce(const KernelArgs& args, const A* row, int64_t rows, int64_t count) {
  A* loss = args.out[0].as<A>();
  if (args.i("reduction") == kNone) return;
  double total = 0;
  for (int64_t r = 0; r < rows; ++r) total += row[r];
  *loss = static_cast<A>(args.i("reduction") == kMean ? total / static_cast<double>(count) : total);
}

static Workspace workspace(const KernelArgs& args) {
  return {.shared = static_cast<size_t>(args.in[0].rows()) * (args.in[0].dtype == DType::float64 ? 8 : 4)};
}

PLM_KERNEL(cross_entropy, workspace) {
  const int64_t V = args.in[0].last(), rows = args.in[0].rows(), ignore = args.i("ignore_index");
  const Weights w(args, V);
  for_float("cross_entropy", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const T* x = args.in[0].as<T>();
    A *top = args.out[1].as<A>(), *log_sum = args.out[2].as<A>(),
      *loss = args.i("reduction") == kNone ? args.out[0].as<A>() : args.shared_as<A>();
    if (is_float(args.in[1].dtype)) {
      const T* t = args.in[1].as<T>();
      for_rows(rows, V, [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) {
          const RowSums<A> s = row_sums<true>(x + r * V, t + r * V, V);
          top[r] = s.top;
          log_sum[r] = s.log_sum;
          loss[r] = static_cast<A>(w.target * (s.log_sum * s.t + (s.top * s.t - s.tx)) + spread(w, V, s));
        }
      });
      return reduce(args, loss, rows, rows);
    }
    for_index("cross_entropy", args.in[1].dtype, [&](auto index) {
      using I = typename decltype(index)::type;
      const I* labels = args.in[1].as<I>();
      const int64_t count = check_labels<I>(ops::id_cross_entropy, args.in[1], V, ignore);
      for_rows(rows, V, [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) {
          top[r] = log_sum[r] = loss[r] = 0;
          if (labels[r] == ignore) continue;
          const RowSums<A> s = w.all != 0 ? row_sums<true>(x + r * V, static_cast<const T*>(nullptr), V)
                                          : row_sums<false>(x + r * V, static_cast<const T*>(nullptr), V);
          top[r] = s.top;
          log_sum[r] = s.log_sum;
          loss[r] = static_cast<A>(w.target * (s.log_sum + (s.top - to_float(x[r * V + labels[r]]))) +
                                   spread(w, V, s));
        }
      });
      reduce(args, loss, rows, count);
    });
  });
}

PLM_KERNEL(cross_entropy_grad) {
  const int64_t V = args.in[0].last(), rows = args.in[0].rows(), ignore = args.i("ignore_index"),
                reduction = args.i("reduction");
  const Weights w(args, V);
  for_float("cross_entropy_grad", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    using Vec = typename Lane<T>::Vec;
    const T* x = args.in[0].as<T>();
    const A *top = args.in[2].as<A>(), *log_sum = args.in[3].as<A>(), *dy = args.in[4].as<A>();
    T* dx = args.out[0].as<T>();
    const auto slope = [&](int64_t r, int64_t count) {
      if (reduction == kNone) return dy[r];
      return reduction == kSum ? dy[0] : dy[0] / static_cast<A>(count);
    };
    if (is_float(args.in[1].dtype)) {
      const T* t = args.in[1].as<T>();
      T* dt = args.i("targets") ? args.out[1].as<T>() : nullptr;
      for_rows(rows, V, [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) {
          const T *xr = x + r * V, *tr = t + r * V;
          const A g = slope(r, rows), target = static_cast<A>(w.target), all = static_cast<A>(w.all);
          Vec sum{};
          over_row<T>(
              V, [&](int64_t i, int part) __attribute__((always_inline)) { sum += load_at(tr, i, part); });
          const A mass = target * reduce_add(sum) + all * static_cast<A>(V);
          over_row<T>(V, [&](int64_t i, int part) __attribute__((always_inline)) {
            const Vec d = load_at(xr, i, part) - top[r] - log_sum[r];
            store_at(dx + r * V, i, part,
                     (exp_nonpositive(d) * mass - (load_at(tr, i, part) * target + all)) * g);
            if (dt) store_at(dt + r * V, i, part, -d * (target * g));
          });
        }
      });
      return;
    }
    for_index("cross_entropy_grad", args.in[1].dtype, [&](auto index) {
      using I = typename decltype(index)::type;
      const I* labels = args.in[1].as<I>();
      const int64_t count = check_labels<I>(ops::id_cross_entropy_grad, args.in[1], V, ignore);
      for_rows(rows, V, [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) {
          T* to = dx + r * V;
          if (labels[r] == ignore) {
            std::memset(static_cast<void*>(to), 0, static_cast<size_t>(V) * sizeof(T));
            continue;
          }
          const A g = slope(r, count), all = static_cast<A>(w.all) * g;
          over_row<T>(V, [&](int64_t i, int part) __attribute__((always_inline)) {
            store_at(to, i, part,
                     exp_nonpositive(load_at(x + r * V, i, part) - top[r] - log_sum[r]) * g - all);
          });
          const int64_t l = labels[r];
          const A p = std::exp(to_float(x[r * V + l]) - top[r] - log_sum[r]);
          to[l] = from_float<T>(p * g - all - static_cast<A>(w.target) * g);
        }
      });
    });
  });
}

}  // namespace plmcore::PLM_ISA
