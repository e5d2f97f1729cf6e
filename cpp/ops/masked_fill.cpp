// y = value where the mask holds, else x.   mask: bool, broadcasts to x
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  return dispatch(ops::masked_fill, {x, mask}, {{"value", value}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  require_element("masked_fill", "value", attrs.f("value"), in[0].dtype);
  check<DTypeError>(in[1].dtype == DType::boolean, "masked_fill: the mask must be bool, got ", in[1]);
  check(broadcast_shapes("masked_fill", in[0].shape, in[1].shape).matches(in[0].shape),
        "masked_fill: the mask ", in[1], " does not broadcast to x, ", in[0]);
  return {in[0]};
}

static Tensors backward(const Grad& g) { return {masked_fill(g.dy[0], g.in[1], 0), {}}; }

const OpDef ops::masked_fill = {"masked_fill", infer, backward, saves(1), saves()};

}  // namespace plmcore
