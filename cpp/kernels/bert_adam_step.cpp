#include "kernels/adam.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(bert_adam_step) { run_adam<Decay::of_param>("bert_adam_step", args, false); }

}  // namespace plmcore::PLM_ISA
