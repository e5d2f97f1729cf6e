// Backward: dx = dy / n, repeated over the axes of the mean.
#include "kernels/elementwise.h"
#include "kernels/reduce.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) {
  return {.shared =
              ReducePlan(args.in[0], static_cast<uint32_t>(args.i("axes"))).workspace(args.in[0].dtype)};
}

PLM_KERNEL(mean, workspace) {
  const View& x = args.in[0];
  const ReducePlan plan(x, static_cast<uint32_t>(args.i("axes")));
  const double n =
      static_cast<double>(x.numel) / static_cast<double>(args.out[0].numel ? args.out[0].numel : 1);
  for_float("mean", x.dtype,
            [&](auto type) { reduce_sum<typename decltype(type)::type>(args, plan, 1 / n); });
}

PLM_KERNEL(mean_grad) {
  const View &dy = args.in[0], &dx = args.out[0];
  if (dx.numel == 0) return;
  const Broadcast<1> bc(dx, args.in);
  const double factor = static_cast<double>(dy.numel) / static_cast<double>(dx.numel);
  for_float("mean_grad", dx.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using S = typename Lane<T>::Scalar;
    const T* from = dy.as<T>();
    T* to = dx.as<T>();
    const S scale = static_cast<S>(factor);
    const bool repeats = bc.stride[0][0] == 0;
    over_segments(bc, [&](const int64_t* at, int64_t i, int64_t n) {
      const T value = from_float<T>(to_float(from[at[0]]) * scale);
      if (repeats)
        for (int64_t k = 0; k < n; ++k) to[i + k] = value;
      else
        map_range([&](auto v) __attribute__((always_inline)) { return v * scale; }, n, to + i, from + at[0]);
    });
  });
}

}  // namespace plmcore::PLM_ISA
