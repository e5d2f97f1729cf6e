#include "kernels/adam.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) { return zero_row(args, 5); }

PLM_KERNEL(bert_adam_step, workspace) { run_adam<Decay::of_param>(ops::id_bert_adam_step, args, false); }

}  // namespace plmcore::PLM_ISA
