// y = x * rstd * gamma over the last axis, rstd = 1 / sqrt(mean(x^2) + eps).   x [rows, C]; gamma [C]; rstd
// [rows] Traffic as layer_norm's (device/norm.cuh).
#include "device/norm.cuh"

namespace plmcore::cuda {

PLM_KERNEL(rms_norm) {
  const View& x = args.in[0];
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const Norm<T, false, false> op{.x = x.as<T>(),
                                   .gamma = args.in[1].as<T>(),
                                   .y = args.out[0].as<T>(),
                                   .rstd = args.out[1].as<A>(),
                                   .C = static_cast<int>(x.last()),
                                   .eps = static_cast<A>(args.f("eps"))};
    return launch_rows(args, op, op.x, x.rows(), x.last());
  });
}

// x, gamma, rstd, dy -> dx, dgamma
PLM_KERNEL(rms_norm_grad, norm_workspace<false>) {
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return norm_backward<T, false, false>(args, {.x = args.in[0].as<T>(),
                                                 .gamma = args.in[1].as<T>(),
                                                 .rstd = args.in[2].as<Acc<T>>(),
                                                 .dy = args.in[3].as<T>(),
                                                 .dx = args.out[0].as<T>()});
  });
}

}  // namespace plmcore::cuda
