// The tensors of a list one after the other along an axis; their other sizes are equal.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor concat(const Tensors& list, int axis) {
  check<ValueError>(!list.empty(), "concat: the list of tensors is empty");
  return dispatch(ops::concat, Inputs(list), {{"axis", normal_axis("concat", axis, list[0].rank())}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  const Spec& first = in[0];
  const int axis = stored_axis("concat", attrs, first.shape.rank());
  Shape shape = first.shape;
  for (size_t k = 1; k < in.size(); ++k) {
    const Spec& x = in[k];
    check<DTypeError>(x.dtype == first.dtype, "concat: tensors must have one dtype, got ", first, " and, at ",
                      k, ", ", x);
    Shape like = x.shape;
    if (axis < like.rank()) like[axis] = first.shape[axis];
    check(like.matches(first.shape), "concat: sizes must be equal but along axis ", axis, ", got ",
          first.shape, " and, at ", k, ", ", x.shape);
    shape[axis] = shape[axis] + x.shape[axis];
  }
  return {{shape, first.dtype}};
}

static Tensors backward(const Grad& g) {
  const int axis = static_cast<int>(g.attrs.i("axis"));
  Dims sizes;
  for (const Tensor& x : g.in) sizes.push_back(x.shape()[axis]);
  return split(g.dy[0], sizes, axis);
}

const OpDef ops::concat = {"concat", infer, backward, saves(), saves()};

}  // namespace plmcore
