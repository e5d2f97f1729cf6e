#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(rng_advance) {
  const int64_t* state = args.in[0].as<int64_t>();
  args.out[0].as<int64_t>()[0] = state[0];
  args.out[0].as<int64_t>()[1] = state[1] + args.dim("by");
}

}  // namespace plmcore::PLM_ISA
