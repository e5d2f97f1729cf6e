// y = 1 / sqrt(x).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor rsqrt(const Tensor& x) { return dispatch(ops::rsqrt, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("rsqrt", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::rsqrt_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::rsqrt = {"rsqrt", infer, backward, saves(), saves(0)};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("rsqrt_grad", in); }

const OpDef ops::rsqrt_grad = {"rsqrt_grad", infer_grad, no_grad};

}  // namespace plmcore
