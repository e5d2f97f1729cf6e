#include "device/adam.cuh"

namespace plmcore::cuda {

PLM_KERNEL(bert_adam_step) { return run_adam<Decay::of_param>(ops::id_bert_adam_step, args, false); }

}  // namespace plmcore::cuda
