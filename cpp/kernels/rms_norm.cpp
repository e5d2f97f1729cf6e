// A row is read twice, once of it from cache: traffic is one read and one write of x.
// Backward, with xh = x * rstd and d = dy * gamma:  dx = rstd * (d - xh * mean(d * xh)),  dgamma = sum(dy *
// xh)
#include "kernels/column_sums.h"
#include "kernels/norm.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(rms_norm) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const double eps = args.f("eps");
  for_float("rms_norm", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    using V = typename Lane<T>::Vec;
    const T *x = args.in[0].as<T>(), *gamma = args.in[1].as<T>();
    T* y = args.out[0].as<T>();
    A* rstd = args.out[1].as<A>();
    for_rows(rows, C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const T* row = x + r * C;
        V sum[2] = {};
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          const V v = load_at(row, i, part);
          sum[i / Lane<T>::n & 1] += v * v;
        });
        const A scale = A(1) / static_cast<A>(__builtin_sqrt(reduce_add(sum[0] + sum[1]) / static_cast<A>(C) +
                                                             static_cast<A>(eps)));
        rstd[r] = scale;
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          prefetch_at(row + C, i);
          store_at(y + r * C, i, part, load_at(row, i, part) * scale * load_at(gamma, i, part));
        });
      }
    });
  });
}

static Workspace workspace(const KernelArgs& args) { return column_sums(args, 1); }

PLM_KERNEL(rms_norm_grad, workspace) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows(), chunks = row_chunks(rows);
  for_float("rms_norm_grad", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    using V = typename Lane<T>::Vec;
    const T *x = args.in[0].as<T>(), *gamma = args.in[1].as<T>(), *dy = args.in[3].as<T>();
    const A* rstd = args.in[2].as<A>();
    T* dx = args.out[0].as<T>();
    A* part_sums = args.shared_as<A>();  // [chunks][C]
    parallel_for(chunks, [&](int64_t k, int) {
      A* dgamma = part_sums + k * C;
      for (int64_t c = 0; c < C; ++c) dgamma[c] = 0;
      for (int64_t r = chunk_begin(rows, chunks, k), e = chunk_begin(rows, chunks, k + 1); r < e; ++r) {
        const T *xr = x + r * C, *dyr = dy + r * C;
        const A scale = rstd[r];
        V sum{};
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          const V g = load_at(dyr, i, part), xh = load_at(xr, i, part) * scale;
          sum += g * load_at(gamma, i, part) * xh;
          store_at(dgamma, i, part, load_at(dgamma, i, part) + g * xh);
        });
        const A mean = reduce_add(sum) / static_cast<A>(C);
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          prefetch_at(xr + C, i);
          prefetch_at(dyr + C, i);
          const V d = load_at(dyr, i, part) * load_at(gamma, i, part);
          store_at(dx + r * C, i, part, (d - load_at(xr, i, part) * scale * mean) * scale);
        });
      }
    });
    add_chunks(part_sums, chunks, C, C, args.out[1].as<T>());
  });
}

}  // namespace plmcore::PLM_ISA
