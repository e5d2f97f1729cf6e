#include "kernels/step.h"

namespace plmcore::PLM_ISA {

namespace {
template <class A>
struct AdadeltaRule {
  enum : int { kMoments = 2, kScaleInput = 4 };
  A lr, decay, rho, one_minus_rho, eps;

  template <class V>
  PLM_INLINE void operator()(V& p, V g, V& m, V& v) const {
    g = g + p * decay;
    v = v * rho + g * g * one_minus_rho;
    const V d = g * sqrt(m + eps) / sqrt(v + eps);
    m = m * rho + d * d * one_minus_rho;
    p = p - d * lr;
  }
};
}  // namespace

static Workspace workspace(const KernelArgs& args) { return zero_row(args, 5); }

PLM_KERNEL(adadelta_step, workspace) {
  const double lr = args.f("lr"), decay = args.f("weight_decay"), rho = args.f("rho"), eps = args.f("eps");
  for_float("adadelta_step", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const AdadeltaRule<A> rule{A(lr), A(decay), A(rho), A(1 - rho), A(eps)};
    run_step<T>(ops::id_adadelta_step, args, rule, args.i("lazy") != 0);
  });
}

}  // namespace plmcore::PLM_ISA
