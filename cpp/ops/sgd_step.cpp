// Stochastic gradient descent. With g = scale * grad + weight_decay * p:
//   without velocity: p -= lr * g
//   with it: velocity = momentum * velocity + g;  p -= lr * (nesterov ? g + momentum * velocity : velocity)
// In place over param and velocity.
#include "ops/step_rules.h"

namespace plmcore {

void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& velocity, const StepOptions& o) {
  AttrList attrs{{"lr", o.lr}, {"weight_decay", o.weight_decay}};
  if (velocity.defined()) {
    attrs.push_back({"momentum", o.momentum});
    attrs.push_back({"nesterov", o.nesterov});
  }
  const Tensor rows = grad.rows(), values = rows.defined() ? grad.values() : grad;
  if (rows.defined()) attrs.push_back({"lazy", o.lazy});
  dispatch(ops::sgd_step, {param, values, velocity, o.scale, rows}, attrs);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  if (in.has(2)) {
    check<ValueError>(attrs.f("momentum") >= 0, "sgd_step: momentum must not be negative, got ",
                      attrs.f("momentum"));
    attrs.flag("nesterov");
  }
  return infer_step("sgd_step", in, attrs, 1, true);
}
const OpDef ops::sgd_step = {
    "sgd_step", infer,   no_grad,
    saves(),    saves(), {.mutates = saves(0, 2), .meets = can_meet(DataError::row, DataError::row_order)}};

}  // namespace plmcore
