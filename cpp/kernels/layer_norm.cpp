// A row is read three times (mean, variance, output), twice of them from cache: traffic is one read and one
// write of x. Backward: norm.h.
#include "kernels/norm.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(layer_norm) {
  const int64_t C = args.in[0].last(), rows = args.in[0].rows();
  const double eps = args.f("eps");
  for_float("layer_norm", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const T *x = args.in[0].as<T>(), *gamma = args.in[1].as<T>(), *beta = args.in[2].as<T>();
    T* y = args.out[0].as<T>();
    A *mean = args.out[1].as<A>(), *rstd = args.out[2].as<A>();
    for_rows(rows, C, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const RowStats<A> s = row_stats(x + r * C, C, static_cast<A>(eps));
        mean[r] = s.mean;
        rstd[r] = s.rstd;
        normalise_row(x + r * C, gamma, beta, y + r * C, C, s, x + (r + 1) * C);
      }
    });
  });
}

static Workspace workspace(const KernelArgs& args) { return column_sums(args, 2); }

PLM_KERNEL(layer_norm_grad, workspace) {
  for_float("layer_norm_grad", args.in[0].dtype,
            [&](auto type) { layer_norm_backward<typename decltype(type)::type, false>(args); });
}

}  // namespace plmcore::PLM_ISA
