// y[...] uniform in [low, high), 24 random bits each; the same numbers in every dtype.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor uniform(const Shape& shape, double low, double high, DType dtype, Device* device) {
  check<ValueError>(low <= high, "uniform: low must not exceed high, got ", low, " and ",
                    high);  // before the generator moves on
  check<DTypeError>(is_float(dtype), "uniform: needs a float dtype, got ", dtype);
  const Tensor state = next_random(shape.numel());
  return dispatch(ops::uniform, {state}, {{"shape", shape}, {"low", low}, {"high", high}, {"dtype", dtype}},
                  device)[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  require_random("uniform", in[0]);
  check<ValueError>(attrs.f("low") <= attrs.f("high"), "uniform: low must not exceed high, got ",
                    attrs.f("low"), " and ", attrs.f("high"));
  const DType dtype = attrs.dtype("dtype");
  check<DTypeError>(is_float(dtype), "uniform: needs a float dtype, got ", dtype);
  return {{attrs.dims("shape"), dtype}};
}

const OpDef ops::uniform = {"uniform", infer, no_grad, saves(), saves(), {.host_in = saves(0)}};

}  // namespace plmcore
