// Adadelta (Zeiler 2012). With g = scale * grad + weight_decay * p:
//   v = rho v + (1 - rho) g^2;  d = g sqrt(m + eps) / sqrt(v + eps);  m = rho m + (1 - rho) d^2;  p -= lr * d
// In place over param, m and v: the means of the squared updates and of the squared gradients.
#include "ops/step_rules.h"

namespace plmcore {

void adadelta_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                   const StepOptions& options, const Tensor& scale) {
  step(optimisers::adadelta, param, grad, {m, v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  check<ValueError>(attrs.f("rho") >= 0 && attrs.f("rho") < 1, "adadelta_step: rho must be in [0, 1), got ",
                    attrs.f("rho"));
  check<ValueError>(attrs.f("eps") > 0, "adadelta_step: eps must be above 0, got ", attrs.f("eps"));
  return infer_step("adadelta_step", in, attrs, 2);
}
const OpDef ops::adadelta_step = {
    "adadelta_step", infer,
    no_grad,         saves(),
    saves(),         {.mutates = saves(0, 2, 3), .meets = can_meet(DataError::row, DataError::row_order)}};
const Optimiser optimisers::adadelta = {
    "adadelta",
    ops::adadelta_step,
    {{"lr", 1.0}, {"rho", 0.95}, {"eps", 1e-6}, {"weight_decay", 0.0}, {"lazy", false}}};

}  // namespace plmcore
