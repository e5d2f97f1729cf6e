// (seed, offset) -> (seed, offset + by). In a trace it stands for the generator moving on.
#include "ops/shape_rules.h"
#include "plmcore/random.h"

namespace plmcore {

Tensor rng_advance(const Tensor& state, Dim by) {
  return dispatch(ops::rng_advance, {state}, {{"by", by}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  require_random("rng_advance", in[0]);
  attrs.dim("by");
  return {in[0]};
}

const OpDef ops::rng_advance = {"rng_advance", infer, no_grad};

}  // namespace plmcore
