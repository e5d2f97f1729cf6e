#include "device/sums.cuh"

namespace plmcore::cuda {

static SumPlan plan_of(const KernelArgs& args) {
  return SumPlan(args.in[0], summed_axes(args.in[0], args.out[0]));
}
static Workspace workspace(const KernelArgs& args) { return {.shared = plan_of(args).workspace()}; }

PLM_KERNEL(sum_to, workspace) {
  const auto go = [&](auto type) {
    using T = typename decltype(type)::type;
    return sum_over<T, T>(args, plan_of(args), 1);
  };
  return is_index(args.in[0].dtype) ? for_index(args.in[0].dtype, go) : for_float(args.in[0].dtype, go);
}

}  // namespace plmcore::cuda
