// min(1, max_norm / norm): what the gradients are multiplied by so that their global norm is at most
// max_norm. NaN stays NaN.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor clip_scale(const Tensor& norm, double max_norm) {
  return dispatch(ops::clip_scale, {norm}, {{"max_norm", max_norm}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  check(in[0].shape.rank() == 0 && in[0].dtype == DType::float32, "clip_scale: norm must be float32[], got ",
        in[0]);
  check<ValueError>(attrs.f("max_norm") > 0, "clip_scale: max_norm must be positive, got ",
                    attrs.f("max_norm"));
  return {in[0]};
}

const OpDef ops::clip_scale = {"clip_scale", infer, no_grad};

}  // namespace plmcore
