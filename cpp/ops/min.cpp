// y = the smallest element of x along an axis; NaN where there is one. The gradient goes to the first of
// equals. Saved for backward: its position, int64.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor min(const Tensor& x, int axis, bool keepdims) {
  return dispatch(ops::min, {x}, {{"axis", normal_axis("min", axis, x.rank())}, {"keepdims", keepdims}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const int axis = stored_axis("min", attrs, in[0].shape.rank());
  check(!in[0].shape[axis].is(0), "min: axis ", axis, " of ", in[0], " has no elements");
  const int64_t mask = int64_t{1} << axis;
  return {{reduced_shape(in[0].shape, mask, attrs.flag("keepdims")), in[0].dtype},
          {reduced_shape(in[0].shape, mask, true), DType::int64}};
}

static Tensors backward(const Grad& g) {
  const int64_t axis = g.attrs.i("axis");
  const Tensor dy = reshape(g.dy[0], g.out[1].shape());
  return dispatch(ops::gather_grad, {dy, g.out[1]},
                  {{"axis", axis}, {"size", g.in[0].shape()[static_cast<int>(axis)]}});
}

const OpDef ops::min = {"min", infer, backward, saves(), saves(1)};

}  // namespace plmcore
