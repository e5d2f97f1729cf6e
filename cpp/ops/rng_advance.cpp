// (seed, offset) -> (seed, offset + by). In a trace it stands for the generator moving on.
#include "ops/op.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor rng_advance(const Tensor& state, Dim by) { return dispatch(ops::rng_advance, {state}, {{"by", by}})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) {
  check(in[0].shape.rank() == 1 && in[0].shape[0].is(2) && in[0].dtype == DType::int64, "rng_advance: the state must be int64[2], got ",
        in[0]);
  return {in[0]};
}

const OpDef ops::rng_advance = {"rng_advance", infer, no_grad};

}  // namespace plmcore
