// x repeated along axes of size 1 (and new leading axes) to `shape`.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  return dispatch(ops::broadcast_to, {x}, {{"shape", shape}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Shape& shape = attrs.dims("shape");
  check(broadcast_shapes("broadcast_to", in[0].shape, shape).matches(shape), "broadcast_to: ", in[0],
        " does not broadcast to ", shape);
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) { return {unbroadcast(g.dy[0], g.in[0])}; }

const OpDef ops::broadcast_to = {"broadcast_to", infer, backward, saves(), saves()};

}  // namespace plmcore
