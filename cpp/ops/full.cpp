// y[...] = value, of a given shape.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor full(const Shape& shape, double value, DType dtype, Device* device) {
  return dispatch(ops::full, {}, {{"shape", shape}, {"value", value}, {"dtype", dtype}}, device)[0];
}

static Specs infer(const InSpecs&, const Attrs& attrs) { return {{attrs.dims("shape"), static_cast<DType>(attrs.i("dtype"))}}; }

const OpDef ops::full = {"full", infer, no_grad};

}  // namespace plmcore
