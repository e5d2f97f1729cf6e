// y[...] = value, of a given shape.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor full(const Shape& shape, double value, DType dtype, Device* device) {
  return dispatch(ops::full, {}, {{"shape", shape}, {"value", value}, {"dtype", dtype}}, device)[0];
}

Tensor Tensor::scalar(double value, DType dtype, Device& device) { return full({}, value, dtype, &device); }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(0);
  const DType dtype = attrs.dtype("dtype");
  require_element("full", "value", attrs.f("value"), dtype);
  return {{attrs.dims("shape"), dtype}};
}

const OpDef ops::full = {"full", infer, no_grad};

}  // namespace plmcore
