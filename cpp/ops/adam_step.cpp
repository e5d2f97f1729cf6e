// Adam (Kingma and Ba 2015). With g = scale * grad + weight_decay * p:
//   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;  p -= lr * m^ / (sqrt(v^) + eps)
// where m^ = m / (1 - beta1^step), v^ = v / (1 - beta2^step). In place over param, m, v.
#include "ops/step_rules.h"

namespace plmcore {

void adam_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
               const StepOptions& options, const Tensor& scale) {
  step(optimisers::adam, param, grad, {m, v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) { return infer_adam("adam_step", in, attrs); }
const OpDef ops::adam_step = {
    "adam_step", infer,
    no_grad,     saves(),
    saves(),     {.mutates = saves(0, 2, 3), .meets = can_meet(DataError::row, DataError::row_order)}};
const Optimiser optimisers::adam = {"adam", ops::adam_step, adam_options(1e-3, 1e-8, 0)};

}  // namespace plmcore
