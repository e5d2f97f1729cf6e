#include "device/sums.cuh"

namespace plmcore::cuda {

static SumPlan plan_of(const KernelArgs& args) {
  return SumPlan(args.in[0], static_cast<uint32_t>(args.i("axes")));
}
static Workspace workspace(const KernelArgs& args) { return {.shared = plan_of(args).workspace()}; }

// Whole numbers are summed to int64.
PLM_KERNEL(sum, workspace) {
  return for_any(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return sum_over<T, std::conditional_t<std::is_integral_v<T>, int64_t, T>>(args, plan_of(args), 1);
  });
}

}  // namespace plmcore::cuda
