// y = 1 / (1 + e^-x).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor sigmoid(const Tensor& x) { return dispatch(ops::sigmoid, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("sigmoid", in); }

static Tensors backward(const Grad& g) { return dispatch(ops::sigmoid_grad, {g.out[0], g.dy[0]}); }

const OpDef ops::sigmoid = {"sigmoid", infer, backward, saves(), saves(0)};

// y, dy -> dx
static Specs infer_grad(const InSpecs& in, const Attrs&) { return pair_rule("sigmoid_grad", in); }

const OpDef ops::sigmoid_grad = {"sigmoid_grad", infer_grad, no_grad};

}  // namespace plmcore
