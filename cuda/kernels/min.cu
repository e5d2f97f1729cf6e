#include "device/extremum.cuh"

namespace plmcore::cuda {

PLM_KERNEL(min) { return extremum<Smaller>(args, args.out[0].data, args.out[1].as<int64_t>()); }

}  // namespace plmcore::cuda
