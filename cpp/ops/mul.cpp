// y = a * b, broadcasting.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor mul(const Tensor& a, const Tensor& b) { return dispatch(ops::mul, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return arithmetic_rule("mul", in); }

static Tensors backward(const Grad& g) {
  Tensors dx(2);
  if (g.want(0)) dx[0] = unbroadcast(mul(g.dy[0], g.in[1]), g.in[0]);
  if (g.want(1)) dx[1] = unbroadcast(mul(g.dy[0], g.in[0]), g.in[1]);
  return dx;
}

const OpDef ops::mul = {"mul", infer, backward, saves(0, 1), saves()};

}  // namespace plmcore
