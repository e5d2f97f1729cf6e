// s = x + residual; y = (s - mean) * rstd * gamma + beta over the last axis.   x, residual [rows, C]; gamma,
// beta [C] Traffic: one read of x and residual, one write of s and y; backward adds the gradient that reached
// s while dx is in registers (device/norm.cuh).
#include "device/norm.cuh"

namespace plmcore::cuda {

PLM_KERNEL(residual_layer_norm) {
  const View& x = args.in[0];
  return for_float(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const Norm<T, true, true> op{.x = x.as<T>(),
                                 .residual = args.in[1].as<T>(),
                                 .gamma = args.in[2].as<T>(),
                                 .beta = args.in[3].as<T>(),
                                 .y = args.out[0].as<T>(),
                                 .s = args.out[1].as<T>(),
                                 .mean = args.out[2].as<A>(),
                                 .rstd = args.out[3].as<A>(),
                                 .C = static_cast<int>(x.last()),
                                 .eps = static_cast<A>(args.f("eps"))};
    return launch_rows(args, op, op.x, x.rows(), x.last());
  });
}

// s, gamma, mean, rstd, dy, ds or none -> dx (also of the residual), dgamma, dbeta
PLM_KERNEL(residual_layer_norm_grad, norm_workspace<true>) {
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const NormGrad<T> in{.x = args.in[0].as<T>(),
                         .gamma = args.in[1].as<T>(),
                         .mean = args.in[2].as<A>(),
                         .rstd = args.in[3].as<A>(),
                         .dy = args.in[4].as<T>(),
                         .ds = args.has(5) ? args.in[5].as<T>() : nullptr,
                         .dx = args.out[0].as<T>()};
    return in.ds ? norm_backward<T, true, true>(args, in) : norm_backward<T, true, false>(args, in);
  });
}

}  // namespace plmcore::cuda
