// y = a <= b as bool, broadcasting. NaN is unequal to everything.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor less_equal(const Tensor& a, const Tensor& b) { return dispatch(ops::less_equal, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return comparison_rule("less_equal", in); }

const OpDef ops::less_equal = {"less_equal", infer, no_grad};

}  // namespace plmcore
