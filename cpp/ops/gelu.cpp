// y = x P(x), P the normal distribution function; its tanh form P(x) = (1 + tanh(sqrt(2/pi) (x + 0.044715
// x^3))) / 2.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor gelu(const Tensor& x, bool tanh_form) {
  return dispatch(ops::gelu, {x}, {{"tanh_form", tanh_form}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  attrs.flag("tanh_form");
  return elementwise_rule("gelu", in);
}

static Tensors backward(const Grad& g) {
  return dispatch(ops::gelu_grad, {g.in[0], g.dy[0]}, {{"tanh_form", g.attrs.flag("tanh_form")}});
}

const OpDef ops::gelu = {"gelu", infer, backward, saves(0), saves()};

// x, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  attrs.flag("tanh_form");
  return pair_rule("gelu_grad", in);
}

const OpDef ops::gelu_grad = {"gelu_grad", infer_grad, no_grad};

}  // namespace plmcore
