// y = a^b, broadcasting; floats.
//   da = dy b a^(b-1), 0 where b is 0;  db = dy y ln a, 0 where a is 0
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor pow(const Tensor& a, const Tensor& b) { return dispatch(ops::pow, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(2);
  const DType dtype = float_dtype("pow", in, {0, 1});
  return {{broadcast_shapes("pow", in[0].shape, in[1].shape), dtype}};
}

static Tensors backward(const Grad& g) {
  const Tensor &a = g.in[0], &b = g.in[1], &dy = g.dy[0];
  const Tensor zero = full({}, 0, a.dtype(), &a.device());
  Tensors dx(2);
  if (g.want(0))
    dx[0] = unbroadcast(mul(masked_fill(mul(dy, pow(a, affine(b, 1, -1))), equal(b, zero), 0), b), a);
  if (g.want(1)) dx[1] = unbroadcast(mul(mul(dy, g.out[0]), masked_fill(log(a), equal(a, zero), 0)), b);
  return dx;
}

const OpDef ops::pow = {"pow", infer, backward, saves(0, 1), saves(0)};

}  // namespace plmcore
