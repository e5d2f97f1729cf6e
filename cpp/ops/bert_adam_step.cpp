// The Adam that BERT was trained with: no bias correction, decoupled weight decay.
//   g = scale * grad;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
//   p -= lr * (m / (sqrt(v) + eps) + weight_decay * p)
// `step` is not used. In place over param, m, v.
#include "ops/step_rules.h"

namespace plmcore {

void bert_adam_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                    const StepOptions& options, const Tensor& scale) {
  step(optimisers::bert_adam, param, grad, {m, v}, options, scale);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) { return infer_adam("bert_adam_step", in, attrs); }
const OpDef ops::bert_adam_step = {
    "bert_adam_step", infer,
    no_grad,          saves(),
    saves(),          {.mutates = saves(0, 2, 3), .meets = can_meet(DataError::row, DataError::row_order)}};
const Optimiser optimisers::bert_adam = {"bert_adam", ops::bert_adam_step, adam_options(1e-4, 1e-6, 0.01)};

}  // namespace plmcore
