// y = a != b as bool, broadcasting. NaN is unequal to everything.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor not_equal(const Tensor& a, const Tensor& b) { return dispatch(ops::not_equal, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return comparison_rule("not_equal", in); }

const OpDef ops::not_equal = {"not_equal", infer, no_grad};

}  // namespace plmcore
