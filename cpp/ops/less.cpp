// y = a < b as bool, broadcasting. False where either is NaN.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor less(const Tensor& a, const Tensor& b) { return dispatch(ops::less, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return comparison_rule("less", in); }

const OpDef ops::less = {"less", infer, no_grad};

}  // namespace plmcore
