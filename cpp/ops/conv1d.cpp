// y[b, t] = sum over w of weight[:, :, w] x[b, t + w - padding] + bias; x is 0 outside.
//   x [B, T, C]; weight [O, C, W]; bias [O] or none -> [B, T + 2 padding - W + 1, O]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t padding) {
  return dispatch(ops::conv1d, {x, weight, bias}, {{"padding", padding}})[0];
}

// Of x and weight: the output's shape.
static Shape check_sizes(const char* op, const Spec& x, const Spec& w, const Attrs& attrs) {
  check(w.shape.rank() == 3 && w.shape.known() && w.shape[2].value() > 0, op,
        ": weight must be [O, C, W], got ", w.shape);
  check(x.shape.rank() == 3 && require_equal(x.shape[2], w.shape[1]), op, ": x must be [B, T, ", w.shape[1],
        "] (weight is ", w.shape, "), got ", x.shape);
  const int64_t padding = attrs.i("padding"), width = w.shape[2].value();
  check<ValueError>(padding >= 0 && padding < width, op, ": padding must be in [0, ", width,
                    ") for a width of ", width, ", got ", padding);
  const int64_t cut = width - 1 - 2 * padding;  // positions fewer than x has
  check(!x.shape[1].known() || x.shape[1].value() >= cut, op, ": a width of ", width, " needs at least ", cut,
        " positions of x, got ", x.shape);
  return {x.shape[0], x.shape[1] + 2 * padding - (width - 1), w.shape[0]};
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(3);
  const DType dtype = float_dtype("conv1d", in, {0, 1, 2});
  const Shape y = check_sizes("conv1d", in[0], in[1], attrs);
  if (in.has(2)) require_shape("conv1d", "bias", in[2], {in[1].shape[0]});
  return {{y, dtype}};
}

static Tensors backward(const Grad& g) {
  Tensors d = dispatch(ops::conv1d_grad, {g.in[0], g.in[1], g.dy[0]}, g.attrs);
  if (!g.in[2].defined()) d[2] = Tensor();
  return d;
}

const OpDef ops::conv1d = {"conv1d", infer, backward, saves(0, 1), saves()};

// x, weight, dy -> dx, dweight, dbias
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(3);
  const DType dtype = float_dtype("conv1d_grad", in, {0, 1, 2});
  require_shape("conv1d_grad", "dy", in[2], check_sizes("conv1d_grad", in[0], in[1], attrs));
  return {in[0], in[1], {{in[1].shape[0]}, dtype}};
}

const OpDef ops::conv1d_grad = {"conv1d_grad", infer_grad, no_grad, saves(), saves()};

}  // namespace plmcore
