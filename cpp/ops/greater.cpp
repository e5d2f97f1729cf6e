// y = a > b as bool, broadcasting. False where either is NaN.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor greater(const Tensor& a, const Tensor& b) { return dispatch(ops::greater, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return comparison_rule("greater", in); }

const OpDef ops::greater = {"greater", infer, no_grad};

}  // namespace plmcore
