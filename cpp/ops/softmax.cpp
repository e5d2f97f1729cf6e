// y = e^x / sum e^x over the last axis, with the maximum taken out first.   x [..., C]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor softmax(const Tensor& x) { return dispatch(ops::softmax, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  check(in[0].shape.rank() >= 1, "softmax: x must have at least one axis, got ", in[0]);
  return elementwise_rule("softmax", in);
}

static Tensors backward(const Grad& g) { return dispatch(ops::softmax_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::softmax = {"softmax", infer, backward, saves(), saves(0)};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("softmax_grad", in); }

const OpDef ops::softmax_grad = {"softmax_grad", infer_grad, no_grad};

}  // namespace plmcore
