#include "kernels/step.h"

namespace plmcore::PLM_ISA {

namespace {
template <class A>
struct AdagradRule {
  enum : int { kMoments = 1, kScaleInput = 3 };
  A lr, decay, eps;

  template <class V>
  PLM_INLINE void operator()(V& p, V g, V& v, V&) const {
    g = g + p * decay;
    v = v + g * g;
    p = p - g * lr / (sqrt(v) + eps);
  }
};
}  // namespace

static Workspace workspace(const KernelArgs& args) { return zero_row(args, 4); }

PLM_KERNEL(adagrad_step, workspace) {
  const double lr = args.f("lr"), decay = args.f("weight_decay"), eps = args.f("eps");
  for_float("adagrad_step", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    run_step<T>(ops::id_adagrad_step, args, AdagradRule<A>{A(lr), A(decay), A(eps)}, args.i("lazy") != 0);
  });
}

}  // namespace plmcore::PLM_ISA
