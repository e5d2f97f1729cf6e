#include "kernels/kernel.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(rng_advance) {
  const int64_t* state = args.in[0].as<int64_t>();
  args.out[0].as<int64_t>()[0] = state[0];
  args.out[0].as<int64_t>()[1] = static_cast<int64_t>(unsigned_of(state[1]) + unsigned_of(args.dim("by")));
}

}  // namespace plmcore::PLM_ISA
