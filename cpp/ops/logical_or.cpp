// y = a or b, bool, broadcasting.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor logical_or(const Tensor& a, const Tensor& b) { return dispatch(ops::logical_or, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  check<DTypeError>(in[0].dtype == DType::boolean && in[1].dtype == DType::boolean,
                    "logical_or: inputs must be bool, got ", in[0], " and ", in[1]);
  return comparison_rule("logical_or", in);
}

const OpDef ops::logical_or = {"logical_or", infer, no_grad};

}  // namespace plmcore
