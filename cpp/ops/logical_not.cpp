// y = not a, bool.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor logical_not(const Tensor& a) { return dispatch(ops::logical_not, {a})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(1);
  check<DTypeError>(in[0].dtype == DType::boolean, "logical_not: the input must be bool, got ", in[0]);
  return {in[0]};
}

const OpDef ops::logical_not = {"logical_not", infer, no_grad};

}  // namespace plmcore
