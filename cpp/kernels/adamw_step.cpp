#include "kernels/adam.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(adamw_step) { run_adam<Decay::of_param>("adamw_step", args, true); }

}  // namespace plmcore::PLM_ISA
