// LAMB (You et al. 2020): AdamW whose step of a whole tensor is as long as the tensor. With g = scale * grad:
//   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;  u = m^ / (sqrt(v^) + eps) + weight_decay * p
//   p -= lr * |p| / |u| * u
// where m^ = m / (1 - beta1^step), v^ = v / (1 - beta2^step); step 0 stands for m^ = m, v^ = v, as ALBERT was
// trained. The ratio |p| / |u| is 1 where a norm is 0, and without `adapt` (biases, norms). A program of
// version 0.1 has no such attribute: it adapts what it decays. In place over param, m, v.
#include "ops/step_rules.h"

namespace plmcore {

void lamb_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
               const StepOptions& options, const Tensor& scale) {
  step(optimisers::lamb, param, grad, {m, v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  if (attrs.has("adapt")) attrs.flag("adapt");
  require_dense("lamb_step", in, 5);
  return infer_adam("lamb_step", in, attrs, 0);
}

const OpDef ops::lamb_step = {"lamb_step", infer, no_grad, saves(), saves(), {.mutates = saves(0, 2, 3)}};
const Optimiser optimisers::lamb = {"lamb", ops::lamb_step,
                                    adam_options(1.76e-3, 1e-6, 0.01, {"adapt", true})};

}  // namespace plmcore
