// Adam and its kin. With c1 = 1 - beta1^step and c2 = 1 - beta2^step (1 without bias correction):
//   m += (1 - beta1) (g - m),  v = beta2 v + (1 - beta2) g^2,  p = keep * p - lr / c1 * m / (sqrt(v) /
//   sqrt(c2) + eps)
// Weight decay enters the gradient (Adam: g += decay * p, keep = 1) or the parameter (AdamW: keep = 1 - lr *
// weight_decay).
#pragma once

#include <cmath>

#include "device/step.cuh"

namespace plmcore::cuda {

enum class Decay { in_gradient, of_param };

template <Decay kDecay, class A>
struct AdamRule {
  enum : int { kMoments = 2, kScaleInput = 4 };
  A decay, keep, one_minus_beta1, beta2, one_minus_beta2, lr, root_scale, eps;

  __device__ __forceinline__ void operator()(A& p, A g, A& m, A& v) const {
    if constexpr (kDecay == Decay::in_gradient) g = g + p * decay;
    m = m + (g - m) * one_minus_beta1;
    v = v * beta2 + g * g * one_minus_beta2;
    const A update = m * lr / (std::sqrt(v) * root_scale + eps);
    if constexpr (kDecay == Decay::in_gradient) p = p - update;
    else p = p * keep - update;
  }
};

template <Decay kDecay>
const char* run_adam(ops::Id op, const KernelArgs& args, bool correct_bias) {
  const double lr = args.f("lr"), beta1 = args.f("beta1"), beta2 = args.f("beta2"),
               decay = args.f("weight_decay");
  const auto step = static_cast<double>(args.i("step"));
  const double c1 = correct_bias ? 1 - std::pow(beta1, step) : 1,
               c2 = correct_bias ? 1 - std::pow(beta2, step) : 1;
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const AdamRule<kDecay, A> rule{A(decay),     A(1 - lr * decay), A(1 - beta1),         A(beta2),
                                   A(1 - beta2), A(lr / c1),        A(1 / std::sqrt(c2)), A(args.f("eps"))};
    return run_step<T>(op, args, rule);
  });
}

}  // namespace plmcore::cuda
