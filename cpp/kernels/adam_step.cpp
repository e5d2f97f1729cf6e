#include "kernels/adam.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(adam_step) { run_adam<Decay::in_gradient>("adam_step", args, true); }

}  // namespace plmcore::PLM_ISA
