// Whole slices of x by number along an axis.   x [..., n, ...], index int of any shape S -> [..., S, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor index_select(const Tensor& x, const Tensor& index, int axis) {
  return dispatch(ops::index_select, {x, index}, {{"axis", normal_axis("index_select", axis, x.rank())}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  const Spec &x = in[0], &index = in[1];
  require_index("index_select", index);
  const int axis = normal_axis("index_select", attrs.i("axis"), x.shape.rank());
  Shape shape;
  for (int a = 0; a < axis; ++a) shape.push_back(x.shape[a]);
  for (Dim d : index.shape) shape.push_back(d);
  for (int a = axis + 1; a < x.shape.rank(); ++a) shape.push_back(x.shape[a]);
  return {{shape, x.dtype}};
}

static Tensors backward(const Grad& g) {
  const int axis = static_cast<int>(g.attrs.i("axis"));
  return {dispatch(ops::index_select_grad, {g.dy[0], g.in[1]}, {{"axis", axis}, {"size", g.in[0].shape()[axis]}})[0], {}};
}

const OpDef ops::index_select = {"index_select", infer, backward, saves(1), saves()};

// dy, index -> dx; repeated indices add up
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  const int axis = static_cast<int>(attrs.i("axis"));
  Shape shape;
  for (int a = 0; a < axis; ++a) shape.push_back(in[0].shape[a]);
  shape.push_back(attrs.dim("size"));
  for (int a = axis + in[1].shape.rank(); a < in[0].shape.rank(); ++a) shape.push_back(in[0].shape[a]);
  return {{shape, in[0].dtype}};
}

const OpDef ops::index_select_grad = {"index_select_grad", infer_grad, no_grad, saves(), saves(), {.workspace = float_sums}};

}  // namespace plmcore
