#include "device/step.cuh"

namespace plmcore::cuda {

namespace {
template <class A>
struct AdagradRule {
  enum : int { kMoments = 1, kScaleInput = 3 };
  A lr, decay, eps;

  __device__ __forceinline__ void operator()(A& p, A g, A& v, A&) const {
    g = g + p * decay;
    v = v + g * g;
    p = p - g * lr / (std::sqrt(v) + eps);
  }
};
}  // namespace

PLM_KERNEL(adagrad_step) {
  const double lr = args.f("lr"), decay = args.f("weight_decay"), eps = args.f("eps");
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    return run_step<T>(ops::id_adagrad_step, args, AdagradRule<A>{A(lr), A(decay), A(eps)});
  });
}

}  // namespace plmcore::cuda
