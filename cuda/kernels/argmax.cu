#include "device/extremum.cuh"

namespace plmcore::cuda {

PLM_KERNEL(argmax) { return extremum<Larger>(args, nullptr, args.out[0].as<int64_t>()); }

}  // namespace plmcore::cuda
