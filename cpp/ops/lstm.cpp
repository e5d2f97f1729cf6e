// i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x_t + h W^T;  c = clip(f c + i g);  h = o tanh c, or with a
// projection clip((o tanh c) W_p^T).   x [B, T, 4 H]; weight [4 H, P]; h [B, P]; c [B, H]; projection [P, H]
// Saved for backward: the gates [B, T, 4 H] and cells [B, T, H], float32 (float64 for float64 x), which the
// device lays out as its gradient reads them.
#include "ops/recurrent_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

namespace {
enum Input { kX, kWeight, kH, kC, kProjection, kLengths, kInputs };
enum GradInput { kGY = 5, kGates, kCells, kDy, kDh, kDc, kGradInputs };
}  // namespace

Tensors lstm(const Tensor& x, const Tensor& weight, const Tensor& h, const Tensor& c, const LstmOptions& o) {
  Tensors out =
      dispatch(ops::lstm, {x, weight, h, c, o.projection, o.lengths},
               {{"reverse", o.reverse}, {"cell_clip", o.cell_clip}, {"projection_clip", o.projection_clip}});
  out.resize(3);
  return out;
}

// What lstm and its gradient share, `first` inputs before the weight: the sizes without B and T.
static Recurrence check_weights(const char* op, const InSpecs& in, size_t first, const Attrs& attrs) {
  Recurrence n = recurrence_of(op, in[first], 4);
  const size_t projection = first + 3;
  if (in.has(projection)) require_spec(op, "projection", in[projection], {{n.P, n.H}, n.dtype});
  else check(n.P == n.H, op, ": without a projection weight must be [4 H, H], got ", in[first].shape);
  attrs.flag("reverse");
  for (const char* clip : {"cell_clip", "projection_clip"})
    check<ValueError>(attrs.f(clip) >= 0, op, ": ", clip, " must not be negative, got ", attrs.f(clip));
  check<ValueError>(in.has(projection) || attrs.f("projection_clip") == 0, op,
                    ": projection_clip needs a projection");
  return n;
}
static void check_states(const char* op, const InSpecs& in, size_t first, const Recurrence& n) {
  require_state(op, "h", in[first], n, n.P);
  require_state(op, "c", in[first + 1], n, n.H);
  require_lengths(op, in, first + 3, n);
}

static Specs outputs_of(const Recurrence& n) {
  const DType kept = sum_dtype(n.dtype);
  return {{{n.B, n.T, n.P}, n.dtype},
          {{n.B, n.P}, n.dtype},
          {{n.B, n.H}, n.dtype},
          {{n.B, n.T, 4 * n.H}, kept},
          {{n.B, n.T, n.H}, kept}};
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(kInputs);
  Recurrence n = check_weights("lstm", in, kWeight, attrs);
  const Shape& x = in[kX].shape;
  check(x.rank() == 3, "lstm: x must be [B, T, 4 H], got ", x);
  n.B = x[0];
  n.T = x[1];
  require_steps("lstm", "x", in[kX], n, 4 * n.H);
  check_states("lstm", in, kH, n);
  return outputs_of(n);
}

static Tensors backward(const Grad& g) {
  Tensors d = dispatch(ops::lstm_grad,
                       {g.in[kWeight], g.in[kH], g.in[kC], g.in[kProjection], g.in[kLengths], g.out[0],
                        g.out[3], g.out[4], g.dy[0], g.dy[1], g.dy[2]},
                       g.attrs);
  d.resize(kInputs);
  return d;
}

const OpDef ops::lstm = {
    "lstm",
    infer,
    backward,
    saves(kWeight, kH, kC, kProjection, kLengths),
    saves(0, 3, 4),
    {.exact_in = saves(kH, kC), .exact_out = saves(0, 3, 4), .meets = can_meet(DataError::length)}};

// weight, h, c, projection, lengths, y, gates, cells, dy, dh, dc (of the states after the last step)
// -> dx, dweight, dh, dc, dprojection if there is one
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  constexpr const char* op = "lstm_grad";
  in.expect(kGradInputs);
  Recurrence n = check_weights(op, in, 0, attrs);
  const Shape& y = in[kGY].shape;
  check(y.rank() == 3, op, ": y must be [B, T, P], got ", y);
  n.B = y[0];
  n.T = y[1];
  check_states(op, in, 1, n);
  const Specs made = outputs_of(n);
  require_spec(op, "y", in[kGY], made[0]);
  require_spec(op, "the gates", in[kGates], made[3]);
  require_spec(op, "the cells", in[kCells], made[4]);
  if (in.has(kDy)) require_spec(op, "dy", in[kDy], made[0]);
  if (in.has(kDh)) require_spec(op, "dh", in[kDh], made[1]);
  if (in.has(kDc)) require_spec(op, "dc", in[kDc], made[2]);
  Specs out = {{{n.B, n.T, 4 * n.H}, n.dtype}, in[0], made[1], made[2]};
  if (in.has(3)) out.push_back(in[3]);
  return out;
}

const OpDef ops::lstm_grad = {"lstm_grad", infer_grad, no_grad,
                              saves(),     saves(),    {.meets = can_meet(DataError::length)}};

}  // namespace plmcore
