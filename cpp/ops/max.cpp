// y = the largest element of x along an axis; NaN where there is one. The gradient goes to the first of
// equals. Saved for backward: its position, int64.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor max(const Tensor& x, int axis, bool keepdims) {
  return dispatch(ops::max, {x}, {{"axis", normal_axis("max", axis, x.rank())}, {"keepdims", keepdims}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) { return extremum_rule("max", in, attrs); }

const OpDef ops::max = {"max", infer, extremum_backward, saves(), saves(1)};

}  // namespace plmcore
