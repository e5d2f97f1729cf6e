// y[...] normal with the given mean and standard deviation (Box-Muller); the same numbers in every dtype.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor normal(const Shape& shape, double mean, double std, DType dtype, Device* device) {
  check<ValueError>(std >= 0, "normal: std must not be negative, got ",
                    std);  // before the generator moves on
  check<DTypeError>(is_float(dtype), "normal: needs a float dtype, got ", dtype);
  const Tensor state = next_random(shape.numel());
  return dispatch(ops::normal, {state}, {{"shape", shape}, {"mean", mean}, {"std", std}, {"dtype", dtype}},
                  device)[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  require_random("normal", in[0]);
  attrs.f("mean");
  check<ValueError>(attrs.f("std") >= 0, "normal: std must not be negative, got ", attrs.f("std"));
  const DType dtype = attrs.dtype("dtype");
  check<DTypeError>(is_float(dtype), "normal: needs a float dtype, got ", dtype);
  return {{attrs.dims("shape"), dtype}};
}

const OpDef ops::normal = {"normal", infer, no_grad, saves(), saves(), {.host_in = saves(0)}};

}  // namespace plmcore
