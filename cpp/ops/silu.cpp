// y = x sigmoid(x).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor silu(const Tensor& x) { return dispatch(ops::silu, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("silu", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::silu_grad, {g.in[0], g.dy[0]}); }

const OpDef ops::silu = {"silu", infer, backward, saves(0), saves()};

// x, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("silu_grad", in); }

const OpDef ops::silu_grad = {"silu_grad", infer_grad, no_grad};

}  // namespace plmcore
