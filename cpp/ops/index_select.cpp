// Whole slices of x by number along an axis.   x [..., n, ...], index int of any shape S -> [..., S, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor index_select(const Tensor& x, const Tensor& index, int axis) {
  return dispatch(ops::index_select, {x, index}, {{"axis", normal_axis("index_select", axis, x.rank())}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &x = in[0], &index = in[1];
  require_index("index_select", index);
  const int axis = stored_axis("index_select", attrs, x.shape.rank());
  Shape shape;
  for (int a = 0; a < axis; ++a) shape.push_back(x.shape[a]);
  for (Dim d : index.shape) shape.push_back(d);
  for (int a = axis + 1; a < x.shape.rank(); ++a) shape.push_back(x.shape[a]);
  return {{shape, x.dtype}};
}

static Tensors backward(const Grad& g) {
  const int axis = static_cast<int>(g.attrs.i("axis"));
  return {dispatch(ops::index_select_grad, {g.dy[0], g.in[1]},
                   {{"axis", axis}, {"size", g.in[0].shape()[axis]}})[0],
          {}};
}

const OpDef ops::index_select = {"index_select", infer,   backward,
                                 saves(1),       saves(), {.meets = can_meet(DataError::index)}};

// dy, index -> dx; repeated indices add up
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Shape &dy = in[0].shape, &index = in[1].shape;
  float_dtype("index_select_grad", in, {0});
  require_index("index_select_grad", in[1]);
  const int axis = stored_axis("index_select_grad", attrs, dy.rank() - index.rank() + 1);
  Shape shape, taken;
  for (int a = 0; a < dy.rank(); ++a) {
    if (a == axis) shape.push_back(attrs.dim("size"));
    (a < axis || a >= axis + index.rank() ? shape : taken).push_back(dy[a]);
  }
  if (axis == dy.rank()) shape.push_back(attrs.dim("size"));
  check(taken.matches(index), "index_select_grad: dy must have the sizes of the index from axis ", axis,
        " on, got ", in[0], " and ", in[1]);
  return {{shape, in[0].dtype}};
}

const OpDef ops::index_select_grad = {
    "index_select_grad", infer_grad, no_grad, saves(), saves(), {.meets = can_meet(DataError::index)}};

}  // namespace plmcore
