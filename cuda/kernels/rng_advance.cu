// (seed, offset) -> (seed, offset + by), where the pair is in device memory: one thread.
#include "device/kernel.h"

namespace plmcore::cuda {

__global__ void rng_advance_pair(const int64_t* state, int64_t* next, int64_t by) {
  next[0] = state[0];
  next[1] = static_cast<int64_t>(static_cast<uint64_t>(state[1]) + static_cast<uint64_t>(by));
}

PLM_KERNEL(rng_advance) {
  return problem(launch<rng_advance_pair>(dim3(1), dim3(1), 0, stream_of(args), args.in[0].as<int64_t>(),
                                          args.out[0].as<int64_t>(), args.dim("by")));
}

}  // namespace plmcore::cuda
