#include "device/adam.cuh"

namespace plmcore::cuda {

PLM_KERNEL(adam_step) { return run_adam<Decay::in_gradient>(ops::id_adam_step, args, true); }

}  // namespace plmcore::cuda
