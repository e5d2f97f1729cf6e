// y = the sum of x over some axes. Integers and bool add up in int64.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor sum(const Tensor& x, const Axes& axes, bool keepdims) {
  return dispatch(ops::sum, {x}, {{"axes", axes_mask("sum", axes, x.rank())}, {"keepdims", keepdims}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const int64_t axes = stored_axes("sum", attrs, in[0].shape.rank());
  return {{reduced_shape(in[0].shape, axes, attrs.flag("keepdims")),
           is_float(in[0].dtype) ? in[0].dtype : DType::int64}};
}

static Tensors backward(const Grad& g) {
  const Shape& shape = g.in[0].shape();
  return {broadcast_to(reshape(g.dy[0], reduced_shape(shape, g.attrs.i("axes"), true)), shape)};
}

const OpDef ops::sum = {"sum", infer, backward, saves(), saves()};

}  // namespace plmcore
