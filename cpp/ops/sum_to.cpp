// Sums x over the axes along which `shape` would be broadcast to x: the gradient of broadcasting.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor sum_to(const Tensor& x, const Shape& shape) {
  return dispatch(ops::sum_to, {x}, {{"shape", shape}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Shape& shape = attrs.dims("shape");
  check(broadcast_shapes("sum_to", in[0].shape, shape).matches(in[0].shape), "sum_to: ", shape,
        " does not broadcast to ", in[0]);
  check<DTypeError>(is_float(in[0].dtype) || is_index(in[0].dtype),
                    "sum_to: needs a float dtype, int64 or int32, got ", in[0]);
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) { return {broadcast_to(g.dy[0], g.in[0].shape())}; }

const OpDef ops::sum_to = {"sum_to", infer, backward, saves(), saves()};

}  // namespace plmcore
