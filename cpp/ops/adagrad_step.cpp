// Adagrad (Duchi et al. 2011). With g = scale * grad + weight_decay * p:
//   v += g^2;  p -= lr * g / (sqrt(v) + eps)
// In place over param and v.
#include "ops/shape_rules.h"
#include "ops/step_rules.h"

namespace plmcore {

void adagrad_step(const Tensor& param, const Tensor& grad, const Tensor& v, const StepOptions& options,
                  const Tensor& scale) {
  step(optimisers::adagrad, param, grad, {v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  require_eps("adagrad_step", attrs);
  return infer_step("adagrad_step", in, attrs, 1);
}
const OpDef ops::adagrad_step = {
    "adagrad_step", infer,
    no_grad,        saves(),
    saves(),        {.mutates = saves(0, 2), .meets = can_meet(DataError::row, DataError::row_order)}};
const Optimiser optimisers::adagrad = {"adagrad",
                                       ops::adagrad_step,
                                       {{"lr", 1e-2}, {"eps", 1e-10}, {"weight_decay", 0.0}, {"lazy", false}},
                                       "v"};

}  // namespace plmcore
