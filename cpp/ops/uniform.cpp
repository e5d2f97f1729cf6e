// y[...] uniform in [low, high), 24 random bits each; the same numbers in every dtype.
#include "ops/op.h"
#include "plmcore/ops.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor uniform(const Shape& shape, double low, double high, DType dtype, Device* device) {
  check<ValueError>(low <= high, "uniform: low must not exceed high, got ", low, " and ", high);
  check<DTypeError>(is_float(dtype), "uniform: needs a float dtype, got ", dtype);
  const Tensor state = next_random(shape.numel(), device ? *device : cpu());
  return dispatch(ops::uniform, {state}, {{"shape", shape}, {"low", low}, {"high", high}, {"dtype", dtype}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  check(in[0].shape.rank() == 1 && in[0].shape[0].is(2) && in[0].dtype == DType::int64, "uniform: the random state must be int64[2], got ",
        in[0]);
  return {{attrs.dims("shape"), static_cast<DType>(attrs.i("dtype"))}};
}

const OpDef ops::uniform = {"uniform", infer, no_grad};

}  // namespace plmcore
