// y = ln x; -inf at 0, NaN below.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor log(const Tensor& x) { return dispatch(ops::log, {x})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return elementwise_rule("log", in); }

static Tensors backward(const Grad& g) { return {div(g.dy[0], g.in[0])}; }

const OpDef ops::log = {"log", infer, backward, saves(0), saves()};

}  // namespace plmcore
