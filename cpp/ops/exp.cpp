// y = e^x.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor exp(const Tensor& x) { return dispatch(ops::exp, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("exp", in); }

static Tensors backward(const Grad& g) { return {mul(g.dy[0], g.out[0])}; }

const OpDef ops::exp = {"exp", infer, backward, saves(), saves(0)};

}  // namespace plmcore
