// AdamW (Loshchilov and Hutter 2019): Adam whose weight decay stays out of the moments.
//   g = scale * grad;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
//   p = p (1 - lr * weight_decay) - lr * m^ / (sqrt(v^) + eps)
// where m^ = m / (1 - beta1^step), v^ = v / (1 - beta2^step). In place over param, m, v.
#include "ops/step_rules.h"

namespace plmcore {

void adamw_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                const StepOptions& options, const Tensor& scale) {
  step(optimisers::adamw, param, grad, {m, v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) { return infer_adam("adamw_step", in, attrs); }
const OpDef ops::adamw_step = {
    "adamw_step", infer,
    no_grad,      saves(),
    saves(),      {.mutates = saves(0, 2, 3), .meets = can_meet(DataError::row, DataError::row_order)}};
const Optimiser optimisers::adamw = {"adamw", ops::adamw_step, adam_options(1e-3, 1e-8, 0.01)};

}  // namespace plmcore
