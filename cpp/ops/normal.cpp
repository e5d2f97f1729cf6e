// y[...] normal with the given mean and standard deviation (Box-Muller); the same numbers in every dtype.
#include "ops/op.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor normal(const Shape& shape, double mean, double std, DType dtype, Device* device) {
  check<ValueError>(std >= 0, "normal: std must not be negative, got ", std);
  check<DTypeError>(is_float(dtype), "normal: needs a float dtype, got ", dtype);
  const Tensor state = next_random(shape.numel(), device ? *device : cpu());
  return dispatch(ops::normal, {state}, {{"shape", shape}, {"mean", mean}, {"std", std}, {"dtype", dtype}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  check(in[0].shape.rank() == 1 && in[0].shape[0].is(2) && in[0].dtype == DType::int64, "normal: the random state must be int64[2], got ",
        in[0]);
  return {{attrs.dims("shape"), static_cast<DType>(attrs.i("dtype"))}};
}

const OpDef ops::normal = {"normal", infer, no_grad};

}  // namespace plmcore
