#include "kernels/adam.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) { return zero_row(args, 5); }

PLM_KERNEL(adamw_step, workspace) { run_adam<Decay::of_param>(ops::id_adamw_step, args, true); }

}  // namespace plmcore::PLM_ISA
