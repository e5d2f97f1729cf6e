// s = x + residual; y = (s - mean) * rstd * gamma + beta over the last axis.   x, residual [..., C]; gamma,
// beta [C] Returns y and s; both have a gradient. Saved for backward: s, mean, rstd.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensors residual_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma, const Tensor& beta,
                            double eps) {
  Tensors out = dispatch(ops::residual_layer_norm, {x, residual, gamma, beta}, {{"eps", eps}});
  out.resize(2);
  return out;
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(4);
  require_eps("residual_layer_norm", attrs);
  const DType dtype = float_dtype("residual_layer_norm", in, {0, 1, 2, 3});
  const Spec &x = in[0], &residual = in[1], &gamma = in[2], &beta = in[3];
  check(x.shape.rank() >= 1, "residual_layer_norm: x must have at least one axis, got ", x);
  check(residual.shape.matches(x.shape), "residual_layer_norm: residual must have the shape of x ", x.shape,
        ", got ", residual.shape);
  const Shape last = {x.shape.back()};
  check(gamma.shape.matches(last) && beta.shape.matches(last), "residual_layer_norm: gamma and beta must be ",
        last, " (last dim of x), got ", gamma.shape, " and ", beta.shape, "; x is ", x.shape);
  const Spec stats = {x.shape.drop_last(), sum_dtype(dtype)};
  return {x, x, stats, stats};
}

static Tensors backward(const Grad& g) {
  if (!g.dy[0].defined()) return {g.dy[1], g.dy[1], {}, {}};
  const Tensors d =
      dispatch(ops::residual_layer_norm_grad, {g.out[1], g.in[2], g.out[2], g.out[3], g.dy[0], g.dy[1]});
  return {d[0], d[0], d[1], d[2]};
}

const OpDef ops::residual_layer_norm = {"residual_layer_norm",     infer, backward, saves(2), saves(1, 2, 3),
                                        {.exact_out = saves(2, 3)}};

// s, gamma, mean, rstd, dy, ds (may be undefined) -> dx (= dresidual), dgamma, dbeta
static Specs infer_grad(const InSpecs& in, const Attrs&) {
  in.expect(6);
  if (in.has(5)) require_spec("residual_layer_norm_grad", "ds", in[5], in[0]);
  return layer_norm_grad_rule("residual_layer_norm_grad", in);
}

const OpDef ops::residual_layer_norm_grad = {"residual_layer_norm_grad", infer_grad, no_grad, saves(),
                                             saves()};

}  // namespace plmcore
