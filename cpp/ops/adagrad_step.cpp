// Adagrad (Duchi et al. 2011). With g = scale * grad + weight_decay * p:
//   v += g^2;  p -= lr * g / (sqrt(v) + eps)
// In place over param and v.
#include "ops/shape_rules.h"
#include "ops/step_rules.h"

namespace plmcore {

void adagrad_step(const Tensor& param, const Tensor& grad, const Tensor& v, const StepOptions& o) {
  AttrList attrs{{"lr", o.lr}, {"eps", o.eps}, {"weight_decay", o.weight_decay}};
  const Tensor rows = grad.rows(), values = rows.defined() ? grad.values() : grad;
  if (rows.defined()) attrs.push_back({"lazy", o.lazy});
  dispatch(ops::adagrad_step, {param, values, v, o.scale, rows}, attrs);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  require_eps("adagrad_step", attrs);
  return infer_step("adagrad_step", in, attrs, 1);
}
const OpDef ops::adagrad_step = {
    "adagrad_step", infer,
    no_grad,        saves(),
    saves(),        {.mutates = saves(0, 2), .meets = can_meet(DataError::row, DataError::row_order)}};

}  // namespace plmcore
