#include "device/adam.cuh"

namespace plmcore::cuda {

PLM_KERNEL(adamw_step) { return run_adam<Decay::of_param>(ops::id_adamw_step, args, true); }

}  // namespace plmcore::cuda
