// y = a where the condition holds, else b; the three broadcast.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return dispatch(ops::where, {condition, a, b})[0];
}

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(3);
  check<DTypeError>(in[0].dtype == DType::boolean, "where: the condition must be bool, got ", in[0]);
  check<DTypeError>(in[1].dtype == in[2].dtype, "where: a and b must have one dtype, got ", in[1], " and ",
                    in[2]);
  return {{broadcast_shapes("where", in[0].shape, broadcast_shapes("where", in[1].shape, in[2].shape)),
           in[1].dtype}};
}

static Tensors backward(const Grad& g) {
  const Tensor zero = full({}, 0, g.dy[0].dtype(), &g.dy[0].device());
  Tensors dx(3);
  if (g.want(1)) dx[1] = unbroadcast(where(g.in[0], g.dy[0], zero), g.in[1]);
  if (g.want(2)) dx[2] = unbroadcast(where(g.in[0], zero, g.dy[0]), g.in[2]);
  return dx;
}

const OpDef ops::where = {"where", infer, backward, saves(0), saves()};

}  // namespace plmcore
