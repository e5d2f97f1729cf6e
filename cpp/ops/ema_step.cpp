// Exponential moving average: average += (1 - decay) (param - average), in place over average. A float16 or
// bfloat16 param may have a float32 average.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

void ema_step(const Tensor& average, const Tensor& param, double decay) {
  dispatch(ops::ema_step, {average, param}, {{"decay", decay}});
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &average = in[0], &param = in[1];
  check<DTypeError>(is_float(param.dtype) && (average.dtype == param.dtype ||
                                              (average.dtype == DType::float32 && size_of(param.dtype) == 2)),
                    "ema_step: average must have the dtype of param, or be float32 for a half param, got ",
                    average, " and ", param);
  check(average.shape.matches(param.shape), "ema_step: average must have the shape of param ", param.shape,
        ", got ", average.shape);
  check<ValueError>(attrs.f("decay") >= 0 && attrs.f("decay") <= 1, "ema_step: decay must be in [0, 1], got ",
                    attrs.f("decay"));
  return {};
}

const OpDef ops::ema_step = {"ema_step", infer, no_grad, saves(), saves(), {.mutates = saves(0)}};

}  // namespace plmcore
