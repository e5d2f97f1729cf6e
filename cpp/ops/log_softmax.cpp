// y = x - ln sum e^x over the last axis, with the maximum taken out first.   x [..., C]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor log_softmax(const Tensor& x) { return dispatch(ops::log_softmax, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  check(in[0].shape.rank() >= 1, "log_softmax: x must have at least one axis, got ", in[0]);
  return elementwise_rule("log_softmax", in);
}

static Tensors backward(const Grad& g) { return dispatch(ops::log_softmax_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::log_softmax = {"log_softmax", infer, backward, saves(), saves(0), {.exact_out = saves(0)}};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("log_softmax_grad", in); }

const OpDef ops::log_softmax_grad = {"log_softmax_grad", infer_grad, no_grad};

}  // namespace plmcore
