// y = tanh x.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor tanh(const Tensor& x) { return dispatch(ops::tanh, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("tanh", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::tanh_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::tanh = {"tanh", infer, backward, saves(), saves(0)};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("tanh_grad", in); }

const OpDef ops::tanh_grad = {"tanh_grad", infer_grad, no_grad};

}  // namespace plmcore
