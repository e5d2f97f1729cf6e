// y = a / b, broadcasting; floats.
//   da = dy / b,  db = -da y
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor div(const Tensor& a, const Tensor& b) { return dispatch(ops::div, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(2);
  const DType dtype = float_dtype("div", in, {0, 1});
  return {{broadcast_shapes("div", in[0].shape, in[1].shape), dtype}};
}

static Tensors backward(const Grad& g) {
  Tensors dx(2);
  const Tensor da = div(g.dy[0], g.in[1]);
  if (g.want(0)) dx[0] = unbroadcast(da, g.in[0]);
  if (g.want(1)) dx[1] = affine(unbroadcast(mul(da, g.out[0]), g.in[1]), -1, 0);
  return dx;
}

const OpDef ops::div = {"div", infer, backward, saves(1), saves(0)};

}  // namespace plmcore
