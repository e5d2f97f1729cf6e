#include "kernels/step.h"

namespace plmcore::PLM_ISA {

namespace {
template <class A>
struct PlainRule {
  enum : int { kMoments = 0, kScaleInput = 3 };
  A lr, decay;

  template <class V>
  PLM_INLINE void operator()(V& p, V g, V&, V&) const {
    p = p - (g + p * decay) * lr;
  }
};

template <bool kNesterov, class A>
struct MomentumRule {
  enum : int { kMoments = 1, kScaleInput = 3 };
  A lr, decay, momentum;

  template <class V>
  PLM_INLINE void operator()(V& p, V g, V& velocity, V&) const {
    g = g + p * decay;
    velocity = velocity * momentum + g;
    p = p - (kNesterov ? g + velocity * momentum : velocity) * lr;
  }
};
}  // namespace

static Workspace workspace(const KernelArgs& args) { return zero_row(args, 4); }

PLM_KERNEL(sgd_step, workspace) {
  const double lr = args.f("lr"), decay = args.f("weight_decay"), momentum = args.f("momentum");
  const bool lazy = args.i("lazy") != 0, nesterov = args.i("nesterov") != 0;
  for_float("sgd_step", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    if (args.has(2) && nesterov)
      return run_step<T>(ops::id_sgd_step, args, MomentumRule<true, A>{A(lr), A(decay), A(momentum)}, lazy);
    if (args.has(2))
      return run_step<T>(ops::id_sgd_step, args, MomentumRule<false, A>{A(lr), A(decay), A(momentum)}, lazy);
    // A zero gradient then changes nothing, unless the scale makes it NaN.
    const bool still = decay == 0 && (!args.has(3) || std::isfinite(*args.in[3].as<float>()));
    run_step<T>(ops::id_sgd_step, args, PlainRule<A>{A(lr), A(decay)}, lazy || still);
  });
}

}  // namespace plmcore::PLM_ISA
