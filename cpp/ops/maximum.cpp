// y = the larger of a and b, broadcasting; NaN where either is NaN. The gradient of equal values goes to a.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor maximum(const Tensor& a, const Tensor& b) { return dispatch(ops::maximum, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return arithmetic_rule("maximum", in); }

static Tensors backward(const Grad& g) {
  Tensors dx(2);
  const Tensor from_b = less(g.in[0], g.in[1]);
  if (g.want(0)) dx[0] = unbroadcast(masked_fill(g.dy[0], from_b, 0), g.in[0]);
  if (g.want(1)) dx[1] = unbroadcast(masked_fill(g.dy[0], logical_not(from_b), 0), g.in[1]);
  return dx;
}

const OpDef ops::maximum = {"maximum", infer, backward, saves(0, 1), saves(), {.exact_in = saves(0, 1)}};

}  // namespace plmcore
