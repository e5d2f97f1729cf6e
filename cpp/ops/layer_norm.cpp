// y = (x - mean) * rstd * gamma + beta over the last axis.   x [..., C]; gamma, beta [C]
// Saved for backward: mean, rstd [...], float32 (float64 for float64 x).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  return dispatch(ops::layer_norm, {x, gamma, beta}, {{"eps", eps}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(3);
  require_eps("layer_norm", attrs);
  const DType dtype = float_dtype("layer_norm", in, {0, 1, 2});
  const Spec &x = in[0], &gamma = in[1], &beta = in[2];
  check(x.shape.rank() >= 1, "layer_norm: x must have at least one axis, got ", x);
  const Shape last = {x.shape.back()};
  check(gamma.shape.matches(last) && beta.shape.matches(last), "layer_norm: gamma and beta must be ", last,
        " (last dim of x), got ", gamma.shape, " and ", beta.shape, "; x is ", x.shape);
  const Spec stats = {x.shape.drop_last(), sum_dtype(dtype)};
  return {x, stats, stats};
}

static Tensors backward(const Grad& g) {
  return dispatch(ops::layer_norm_grad, {g.in[0], g.in[1], g.out[1], g.out[2], g.dy[0]});
}

const OpDef ops::layer_norm = {"layer_norm", infer,       backward,
                               saves(0, 1),  saves(1, 2), {.exact_out = saves(1, 2)}};

// x, gamma, mean, rstd, dy -> dx, dgamma, dbeta
static Specs infer_grad(const InSpecs& in, const Attrs&) {
  in.expect(5);
  return layer_norm_grad_rule("layer_norm_grad", in);
}

// Each chunk of rows leaves its sums for dgamma and dbeta; they are added in order.
const OpDef ops::layer_norm_grad = {"layer_norm_grad", infer_grad, no_grad, saves(), saves()};

}  // namespace plmcore
