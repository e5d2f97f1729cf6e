// y = a and b, bool, broadcasting.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor logical_and(const Tensor& a, const Tensor& b) { return dispatch(ops::logical_and, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  check<DTypeError>(in[0].dtype == DType::boolean && in[1].dtype == DType::boolean,
                    "logical_and: inputs must be bool, got ", in[0], " and ", in[1]);
  return comparison_rule("logical_and", in);
}

const OpDef ops::logical_and = {"logical_and", infer, no_grad};

}  // namespace plmcore
