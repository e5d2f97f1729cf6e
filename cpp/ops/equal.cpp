// y = a == b as bool, broadcasting. NaN is unequal to everything.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor equal(const Tensor& a, const Tensor& b) { return dispatch(ops::equal, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return comparison_rule("equal", in); }

const OpDef ops::equal = {"equal", infer, no_grad};

}  // namespace plmcore
