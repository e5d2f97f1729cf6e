// y = x at the index along an axis: for axis 1 of three, y[i, j, k] = x[i, index[i, j, k], k].
// index has x's sizes but along the axis.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor gather(const Tensor& x, const Tensor& index, int axis) {
  return dispatch(ops::gather, {x, index}, {{"axis", normal_axis("gather", axis, x.rank())}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &x = in[0], &index = in[1];
  require_index("gather", index);
  const int axis = stored_axis("gather", attrs, x.shape.rank());
  Shape like = index.shape;
  if (axis < like.rank()) like[axis] = x.shape[axis];
  check(like.matches(x.shape), "gather: index must have the sizes of x but along axis ", axis, ", got ",
        index, "; x is ", x);
  return {{index.shape, x.dtype}};
}

static Tensors backward(const Grad& g) {
  const int axis = static_cast<int>(g.attrs.i("axis"));
  return {
      dispatch(ops::gather_grad, {g.dy[0], g.in[1]}, {{"axis", axis}, {"size", g.in[0].shape()[axis]}})[0],
      {}};
}

const OpDef ops::gather = {"gather", infer,   backward,
                           saves(1), saves(), {.meets = can_meet(DataError::index)}};

// dy, index -> dx
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  float_dtype("gather_grad", in, {0});
  require_index("gather_grad", in[1]);
  require_shape("gather_grad", "the index", in[1], in[0].shape);
  Shape shape = in[0].shape;
  shape[stored_axis("gather_grad", attrs, shape.rank())] = attrs.dim("size");
  return {{shape, in[0].dtype}};
}

const OpDef ops::gather_grad = {"gather_grad", infer_grad, no_grad,
                                saves(),       saves(),    {.meets = can_meet(DataError::index)}};

}  // namespace plmcore
