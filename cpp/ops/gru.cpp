// r, z = sigmoid of x_t + h W^T;  n = tanh(x_t + r q), q = h W_n^T + bias;  h = n + z (h - n).
//   x [B, T, 3 H]; weight [3 H, H]; bias [H] or none; h [B, H]
// Saved for backward: r, z, n and q [B, T, 4 H], float32 (float64 for float64 x), as the device lays them
// out.
#include "ops/recurrent_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

namespace {
enum Input { kX, kWeight, kBias, kH, kLengths, kInputs };
enum GradInput { kGWeight, kGH, kGLengths, kY, kGates, kDy, kDh, kGradInputs };
}  // namespace

Tensors gru(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& h, const Tensor& lengths,
            bool reverse) {
  Tensors out = dispatch(ops::gru, {x, weight, bias, h, lengths}, {{"reverse", reverse}});
  out.resize(2);
  return out;
}

static Recurrence check_weight(const char* op, const Spec& weight, const Attrs& attrs) {
  const Recurrence n = recurrence_of(op, weight, 3);
  check(n.P == n.H, op, ": weight must be [3 H, H], got ", weight.shape);
  attrs.flag("reverse");
  return n;
}
static Specs outputs_of(const Recurrence& n) {
  return {{{n.B, n.T, n.H}, n.dtype}, {{n.B, n.H}, n.dtype}, {{n.B, n.T, 4 * n.H}, sum_dtype(n.dtype)}};
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(kInputs);
  Recurrence n = check_weight("gru", in[kWeight], attrs);
  const Shape& x = in[kX].shape;
  check(x.rank() == 3, "gru: x must be [B, T, 3 H], got ", x);
  n.B = x[0];
  n.T = x[1];
  require_steps("gru", "x", in[kX], n, 3 * n.H);
  if (in.has(kBias)) require_spec("gru", "bias", in[kBias], {{n.H}, n.dtype});
  require_state("gru", "h", in[kH], n, n.H);
  require_lengths("gru", in, kLengths, n);
  return outputs_of(n);
}

static Tensors backward(const Grad& g) {
  const Tensors d =
      dispatch(ops::gru_grad, {g.in[kWeight], g.in[kH], g.in[kLengths], g.out[0], g.out[2], g.dy[0], g.dy[1]},
               g.attrs);
  Tensors dx(kInputs);
  dx[kX] = d[0];
  dx[kWeight] = d[1];
  dx[kH] = d[2];
  if (g.in[kBias].defined()) dx[kBias] = d[3];
  return dx;
}

const OpDef ops::gru = {
    "gru",       infer,
    backward,    saves(kWeight, kH, kLengths),
    saves(0, 2), {.exact_in = saves(kH), .exact_out = saves(0, 2), .meets = can_meet(DataError::length)}};

// weight, h, lengths, y, r z n q, dy, dh (of the state after the last step) -> dx, dweight, dh, dbias
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  constexpr const char* op = "gru_grad";
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
  require_spec(op, "the gates", in[kGates], made[2]);
  if (in.has(kDy)) require_spec(op, "dy", in[kDy], made[0]);
  if (in.has(kDh)) require_spec(op, "dh", in[kDh], made[1]);
  return {{{n.B, n.T, 3 * n.H}, n.dtype}, in[kGWeight], made[1], {{n.H}, n.dtype}};
}

const OpDef ops::gru_grad = {"gru_grad", infer_grad, no_grad,
                             saves(),    saves(),    {.meets = can_meet(DataError::length)}};

}  // namespace plmcore
