// y = the square root of x.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor sqrt(const Tensor& x) { return dispatch(ops::sqrt, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("sqrt", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::sqrt_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::sqrt = {"sqrt", infer, backward, saves(), saves(0)};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("sqrt_grad", in); }

const OpDef ops::sqrt_grad = {"sqrt_grad", infer_grad, no_grad};

}  // namespace plmcore
