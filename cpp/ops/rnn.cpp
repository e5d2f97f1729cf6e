// h = activation(x_t + h W^T), tanh or relu.   x [B, T, H]; weight [H, H]; h [B, H]
#include "ops/recurrent_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

namespace {
enum Input { kX, kWeight, kH, kLengths, kInputs };
enum GradInput { kGWeight, kGH, kGLengths, kY, kDy, kDh, kGradInputs };
}  // namespace

Tensors rnn(const Tensor& x, const Tensor& weight, const Tensor& h, const Tensor& lengths, bool reverse,
            Activation activation) {
  return dispatch(ops::rnn, {x, weight, h, lengths}, {{"reverse", reverse}, {"activation", activation}});
}

static Recurrence check_weight(const char* op, const Spec& weight, const Attrs& attrs) {
  const Recurrence n = recurrence_of(op, weight, 1);
  check(n.P == n.H, op, ": weight must be [H, H], got ", weight.shape);
  attrs.flag("reverse");
  const auto a = static_cast<Activation>(attrs.code("activation", kActivations));
  check<ValueError>(a == Activation::tanh || a == Activation::relu, op, ": activation must be tanh or relu");
  return n;
}
static Specs outputs_of(const Recurrence& n) { return {{{n.B, n.T, n.H}, n.dtype}, {{n.B, n.H}, n.dtype}}; }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(kInputs);
  Recurrence n = check_weight("rnn", in[kWeight], attrs);
  const Shape& x = in[kX].shape;
  check(x.rank() == 3, "rnn: x must be [B, T, H], got ", x);
  n.B = x[0];
  n.T = x[1];
  require_steps("rnn", "x", in[kX], n, n.H);
  require_state("rnn", "h", in[kH], n, n.H);
  require_lengths("rnn", in, kLengths, n);
  return outputs_of(n);
}

static Tensors backward(const Grad& g) {
  Tensors d =
      dispatch(ops::rnn_grad, {g.in[kWeight], g.in[kH], g.in[kLengths], g.out[0], g.dy[0], g.dy[1]}, g.attrs);
  d.resize(kInputs);
  return d;
}

const OpDef ops::rnn = {
    "rnn",    infer,
    backward, saves(kWeight, kH, kLengths),
    saves(0), {.exact_in = saves(kH), .exact_out = saves(0), .meets = can_meet(DataError::length)}};

// weight, h, lengths, y, dy, dh (of the state after the last step) -> dx, dweight, dh
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  constexpr const char* op = "rnn_grad";
  in.expect(kGradInputs);
  Recurrence n = check_weight(op, in[kGWeight], attrs);
  const Shape& y = in[kY].shape;
  check(y.rank() == 3, op, ": y must be [B, T, H], got ", y);
  n.B = y[0];
  n.T = y[1];
  require_state(op, "h", in[kGH], n, n.H);
  require_lengths(op, in, kGLengths, n);
  const Specs made = outputs_of(n);
  require_spec(op, "y", in[kY], made[0]);
  if (in.has(kDy)) require_spec(op, "dy", in[kDy], made[0]);
  if (in.has(kDh)) require_spec(op, "dh", in[kDh], made[1]);
  return {made[0], in[kGWeight], made[1]};
}

const OpDef ops::rnn_grad = {"rnn_grad", infer_grad, no_grad,
                             saves(),    saves(),    {.meets = can_meet(DataError::length)}};

}  // namespace plmcore
