// y = a - b, broadcasting.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor sub(const Tensor& a, const Tensor& b) { return dispatch(ops::sub, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return arithmetic_rule("sub", in); }

static Tensors backward(const Grad& g) {
  Tensors dx(2);
  if (g.want(0)) dx[0] = unbroadcast(g.dy[0], g.in[0]);
  if (g.want(1)) dx[1] = affine(unbroadcast(g.dy[0], g.in[1]), -1, 0);
  return dx;
}

const OpDef ops::sub = {"sub", infer, backward, saves(), saves()};

}  // namespace plmcore
