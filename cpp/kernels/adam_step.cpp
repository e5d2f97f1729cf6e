#include "kernels/adam.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) { return zero_row(args, 5); }

PLM_KERNEL(adam_step, workspace) { run_adam<Decay::in_gradient>(ops::id_adam_step, args, true); }

}  // namespace plmcore::PLM_ISA
