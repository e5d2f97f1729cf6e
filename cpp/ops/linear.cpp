// y = activation(x W^T + bias).   x [..., K]; weight [N, K]; bias [N] or none -> [..., N]
// With gradients on and an activation whose slope needs it, the sum before the activation is a second output.
//   dz = dy * activation'(z);  dx = dz W;  dweight = dz^T x;  dbias = sum of dz over the rows
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

static bool needs_sum(Activation a) {
  return a == Activation::gelu || a == Activation::gelu_tanh || a == Activation::silu;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  const bool grads = grad_enabled() && (x.requires_grad() || weight.requires_grad() ||
                                        (bias.defined() && bias.requires_grad()));
  return dispatch(ops::linear, {x, weight, bias},
                  {{"activation", activation}, {"keep_sum", grads && needs_sum(activation)}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(3);
  attrs.code("activation", kActivations);
  const DType dtype = float_dtype("linear", in, {0, 1, 2});
  const Spec &x = in[0], &w = in[1];
  check(w.shape.rank() == 2, "linear: weight must be [N, K], got ", w);
  check(x.shape.rank() >= 1 && require_equal(x.shape.back(), w.shape[1]),
        "linear: the last axis of x must be ", w.shape[1], " (weight is ", w.shape, "), got ", x.shape);
  if (in.has(2))
    check(in[2].shape.matches({w.shape[0]}), "linear: bias must be [", w.shape[0], "] (weight is ", w.shape,
          "), got ", in[2].shape);
  const Spec y = {x.shape.with_last(w.shape[0]), dtype};
  if (attrs.flag("keep_sum")) return {y, y};
  return {y};
}

// The activation's slope comes from the sum where it was kept, from y otherwise; without one neither is read.
static Tensors backward(const Grad& g) {
  const auto activation = static_cast<Activation>(g.attrs.i("activation"));
  const Tensor none;
  const Tensor& kept = needs_sum(activation) ? g.out[1] : g.out[0];
  const Tensor& at = activation == Activation::none ? none : kept;
  const int64_t want = (g.want(0) ? 1 : 0) | (g.want(1) ? 2 : 0) | (g.want(2) ? 4 : 0);
  const Tensors grads = dispatch(ops::linear_grad, {g.in[0], g.in[1], g.dy[0], at},
                                 {{"activation", activation}, {"want", want}});
  Tensors dx(3);
  size_t next = 0;
  for (size_t i = 0; i < 3; ++i)
    if (g.want(i)) dx[i] = grads[next++];
  return dx;
}

static uint64_t reads_out(const Attrs& attrs) {
  const auto activation = static_cast<Activation>(attrs.i("activation"));
  if (activation == Activation::none) return saves();
  return needs_sum(activation) ? saves(1) : saves(0);
}

const OpDef ops::linear = {"linear", infer, backward, saves(0, 1), saves(0, 1), {.reads_out = reads_out}};

// x, weight, dy, sum or y -> those of dx, dweight, dbias that `want` names
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(4);
  const DType dtype = float_dtype("linear_grad", in, {0, 1, 2, 3});
  const Spec &x = in[0], &w = in[1];
  check(w.shape.rank() == 2, "linear_grad: weight must be [N, K], got ", w);
  check(x.shape.rank() >= 1 && require_equal(x.shape.back(), w.shape[1]),
        "linear_grad: the last axis of x must be ", w.shape[1], " (weight is ", w.shape, "), got ", x.shape);
  const Shape y = x.shape.with_last(w.shape[0]);
  require_shape("linear_grad", "dy", in[2], y);
  if (attrs.code("activation", kActivations)) require_shape("linear_grad", "the sum or y", in[3], y);
  const int64_t want = attrs.code("want", 8);
  Specs out;
  if (want & 1) out.push_back(x);
  if (want & 2) out.push_back(w);
  if (want & 4) out.push_back({{w.shape[0]}, dtype});
  return out;
}

const OpDef ops::linear_grad = {"linear_grad", infer_grad, no_grad, saves(), saves()};

}  // namespace plmcore
