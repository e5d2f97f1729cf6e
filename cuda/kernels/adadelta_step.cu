#include "device/step.cuh"

namespace plmcore::cuda {

namespace {
template <class A>
struct AdadeltaRule {
  enum : int { kMoments = 2, kScaleInput = 4 };
  A lr, decay, rho, one_minus_rho, eps;

  __device__ __forceinline__ void operator()(A& p, A g, A& m, A& v) const {
    g = g + p * decay;
    v = v * rho + g * g * one_minus_rho;
    const A d = g * std::sqrt(m + eps) / std::sqrt(v + eps);
    m = m * rho + d * d * one_minus_rho;
    p = p - d * lr;
  }
};
}  // namespace

PLM_KERNEL(adadelta_step) {
  const double lr = args.f("lr"), decay = args.f("weight_decay"), rho = args.f("rho"), eps = args.f("eps");
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    return run_step<T>(ops::id_adadelta_step, args,
                       AdadeltaRule<A>{A(lr), A(decay), A(rho), A(1 - rho), A(eps)});
  });
}

}  // namespace plmcore::cuda
