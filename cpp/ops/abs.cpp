// y = |x|. The gradient at 0 is 0.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor abs(const Tensor& x) { return dispatch(ops::abs, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("abs", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::abs_grad, {g.in[0], g.dy[0]}); }

const OpDef ops::abs = {"abs", infer, backward, saves(0), saves()};

// x, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("abs_grad", in); }

const OpDef ops::abs_grad = {"abs_grad", infer_grad, no_grad};

}  // namespace plmcore
