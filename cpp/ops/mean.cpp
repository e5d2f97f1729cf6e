// y = the mean of x over some axes; NaN over nothing.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor mean(const Tensor& x, const Axes& axes, bool keepdims) {
  return dispatch(ops::mean, {x}, {{"axes", axes_mask("mean", axes, x.rank())}, {"keepdims", keepdims}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const int64_t axes = stored_axes("mean", attrs, in[0].shape.rank());
  return {{reduced_shape(in[0].shape, axes, attrs.flag("keepdims")), float_dtype("mean", in, {0})}};
}

static Tensors backward(const Grad& g) {
  const Shape& shape = g.in[0].shape();
  const Tensor dy = reshape(g.dy[0], reduced_shape(shape, g.attrs.i("axes"), true));
  return dispatch(ops::mean_grad, {dy}, {{"shape", shape}});
}

const OpDef ops::mean = {"mean", infer, backward, saves(), saves()};

// dy with axes of size 1 where the mean was taken -> dx of `shape`
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const DType dtype = float_dtype("mean_grad", in, {0});
  const Shape& shape = attrs.dims("shape");
  check(broadcast_shapes("mean_grad", in[0].shape, shape).matches(shape), "mean_grad: ", in[0],
        " does not broadcast to ", shape);
  return {{shape, dtype}};
}

const OpDef ops::mean_grad = {"mean_grad", infer_grad, no_grad};

}  // namespace plmcore
