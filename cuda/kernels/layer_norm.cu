// y = (x - mean) * rstd * gamma + beta over the last axis.   x [rows, C]; gamma, beta [C]; mean, rstd [rows]
// Variance by two passes. Traffic: one read of x and one write of y; backward one read of x and dy and one
// write of dx (device/norm.cuh).
#include "device/norm.cuh"

namespace plmcore::cuda {

PLM_KERNEL(layer_norm) {
  const View& x = args.in[0];
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const Norm<T, true, false> op{.x = x.as<T>(),
                                  .gamma = args.in[1].as<T>(),
                                  .beta = args.in[2].as<T>(),
                                  .y = args.out[0].as<T>(),
                                  .mean = args.out[1].as<A>(),
                                  .rstd = args.out[2].as<A>(),
                                  .C = static_cast<int>(x.last()),
                                  .eps = static_cast<A>(args.f("eps"))};
    return launch_rows(args, op, op.x, x.rows(), x.last());
  });
}

// x, gamma, mean, rstd, dy -> dx, dgamma, dbeta
PLM_KERNEL(layer_norm_grad, norm_workspace<true>) {
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    return norm_backward<T, true, false>(args, {.x = args.in[0].as<T>(),
                                                .gamma = args.in[1].as<T>(),
                                                .mean = args.in[2].as<A>(),
                                                .rstd = args.in[3].as<A>(),
                                                .dy = args.in[4].as<T>(),
                                                .dx = args.out[0].as<T>()});
  });
}

}  // namespace plmcore::cuda
