// y = max(x, 0). The gradient at 0 is 0.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor relu(const Tensor& x) { return dispatch(ops::relu, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("relu", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::relu_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::relu = {"relu", infer, backward, saves(), saves(0)};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("relu_grad", in); }

const OpDef ops::relu_grad = {"relu_grad", infer_grad, no_grad};

}  // namespace plmcore
