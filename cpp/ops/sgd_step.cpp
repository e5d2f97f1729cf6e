// Stochastic gradient descent. With g = scale * grad + weight_decay * p:
//   without velocity: p -= lr * g
//   with it: velocity = momentum * velocity + g;  p -= lr * (nesterov ? g + momentum * velocity : velocity)
// In place over param and velocity.
#include "ops/step_rules.h"

namespace plmcore {

void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& velocity, const StepOptions& options,
              const Tensor& scale) {
  step(optimisers::sgd, param, grad, {velocity}, options, scale);
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

static std::optional<Shape> velocity_shape(char, const Shape& param, const AttrList& options) {
  return Attrs("sgd_step", options).f("momentum") != 0 ? std::optional(param) : std::nullopt;
}
const Optimiser optimisers::sgd = {
    "sgd",
    ops::sgd_step,
    {{"lr", 1e-3}, {"weight_decay", 0.0}, {"momentum", 0.0}, {"nesterov", false}, {"lazy", false}},
    "m",
    velocity_shape};

}  // namespace plmcore
