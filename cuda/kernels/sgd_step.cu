#include "device/step.cuh"

namespace plmcore::cuda {

namespace {
template <class A>
struct PlainRule {
  enum : int { kMoments = 0, kScaleInput = 3 };
  A lr, decay;

  __device__ __forceinline__ void operator()(A& p, A g, A&, A&) const { p = p - (g + p * decay) * lr; }
};

template <class A>
struct MomentumRule {
  enum : int { kMoments = 1, kScaleInput = 3 };
  A lr, decay, momentum;
  bool nesterov;

  __device__ __forceinline__ void operator()(A& p, A g, A& velocity, A&) const {
    g = g + p * decay;
    velocity = velocity * momentum + g;
    p = p - (nesterov ? g + velocity * momentum : velocity) * lr;
  }
};
}  // namespace

PLM_KERNEL(sgd_step) {
  const double lr = args.f("lr"), decay = args.f("weight_decay"), momentum = args.f("momentum");
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    if (!args.has(2)) return run_step<T>(ops::id_sgd_step, args, PlainRule<A>{A(lr), A(decay)});
    const MomentumRule<A> rule{A(lr), A(decay), A(momentum), args.i("nesterov") != 0};
    return run_step<T>(ops::id_sgd_step, args, rule);
  });
}

}  // namespace plmcore::cuda
