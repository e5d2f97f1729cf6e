// y = the position of the largest element along an axis, int64; the first of equals. NaN counts as the
// largest.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor argmax(const Tensor& x, int axis, bool keepdims) {
  return dispatch(ops::argmax, {x},
                  {{"axis", normal_axis("argmax", axis, x.rank())}, {"keepdims", keepdims}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const int axis = stored_axis("argmax", attrs, in[0].shape.rank());
  check(!in[0].shape[axis].is(0), "argmax: axis ", axis, " of ", in[0], " has no elements");
  return {{reduced_shape(in[0].shape, int64_t{1} << axis, attrs.flag("keepdims")), DType::int64}};
}

const OpDef ops::argmax = {"argmax", infer, no_grad};

}  // namespace plmcore
