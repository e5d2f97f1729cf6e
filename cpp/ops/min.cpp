// y = the smallest element of x along an axis; NaN where there is one. The gradient goes to the first of
// equals. Saved for backward: its position, int64.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor min(const Tensor& x, int axis, bool keepdims) {
  return dispatch(ops::min, {x}, {{"axis", normal_axis("min", axis, x.rank())}, {"keepdims", keepdims}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) { return extremum_rule("min", in, attrs); }

const OpDef ops::min = {"min", infer, extremum_backward, saves(), saves(1)};

}  // namespace plmcore
