// The sum and its norm in one sweep: x and residual are read once, s and y written once; the statistics read
// s from cache. Backward adds the gradient that reached s to layer_norm's dx while it is in registers.
#include "kernels/norm.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(residual_layer_norm) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const double eps = args.f("eps");
  for_float("residual_layer_norm", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const T *x = args.in[0].as<T>(), *residual = args.in[1].as<T>(), *gamma = args.in[2].as<T>(),
            *beta = args.in[3].as<T>();
    T *y = args.out[0].as<T>(), *s = args.out[1].as<T>();
    A *mean = args.out[2].as<A>(), *rstd = args.out[3].as<A>();
    for_rows(rows, C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        T* sum = s + r * C;
        over_row<T>(C, [&](int64_t i, int part) __attribute__((always_inline)) {
          store_at(sum, i, part, load_at(x + r * C, i, part) + load_at(residual + r * C, i, part));
        });
        const RowStats<A> stats = row_stats(sum, C, static_cast<A>(eps));
        mean[r] = stats.mean;
        rstd[r] = stats.rstd;
        normalise_row(sum, gamma, beta, y + r * C, C, stats, x + (r + 1) * C, residual + (r + 1) * C);
      }
    });
  });
}

static Workspace workspace(const KernelArgs& args) { return column_sums(args, 2); }

PLM_KERNEL(residual_layer_norm_grad, workspace) {
  for_float("residual_layer_norm_grad", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.has(5)) layer_norm_backward<T, true>(args);
    else layer_norm_backward<T, false>(args);
  });
}

}  // namespace plmcore::PLM_ISA
