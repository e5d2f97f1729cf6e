// y = x * rstd * gamma over the last axis, rstd = 1 / sqrt(mean(x^2) + eps).   x [..., C]; gamma [C]
// Saved for backward: rstd [...], float32 (float64 for float64 x).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  return dispatch(ops::rms_norm, {x, gamma}, {{"eps", eps}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  require_eps("rms_norm", attrs);
  const DType dtype = float_dtype("rms_norm", in, {0, 1});
  const Spec &x = in[0], &gamma = in[1];
  check(x.shape.rank() >= 1, "rms_norm: x must have at least one axis, got ", x);
  const Shape last = {x.shape.back()};
  check(gamma.shape.matches(last), "rms_norm: gamma must be ", last, " (last dim of x), got ", gamma.shape,
        "; x is ", x.shape);
  return {x, {x.shape.drop_last(), sum_dtype(dtype)}};
}

static Tensors backward(const Grad& g) {
  return dispatch(ops::rms_norm_grad, {g.in[0], g.in[1], g.out[1], g.dy[0]});
}

const OpDef ops::rms_norm = {"rms_norm", infer, backward, saves(0, 1), saves(1), {.exact_out = saves(1)}};

// x, gamma, rstd, dy -> dx, dgamma
static Specs infer_grad(const InSpecs& in, const Attrs&) {
  in.expect(4);
  const DType dtype = float_dtype("rms_norm_grad", in, {0, 1, 3});
  const Spec &x = in[0], &gamma = in[1];
  check(x.shape.rank() >= 1, "rms_norm_grad: x must have at least one axis, got ", x);
  require_shape("rms_norm_grad", "gamma", gamma, {x.shape.back()});
  require_spec("rms_norm_grad", "rstd", in[2], {x.shape.drop_last(), sum_dtype(dtype)});
  require_shape("rms_norm_grad", "dy", in[3], x.shape);
  return {x, gamma};
}

const OpDef ops::rms_norm_grad = {"rms_norm_grad", infer_grad, no_grad, saves(), saves()};

}  // namespace plmcore
