#include "kernels/reduce.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) {
  return {.shared = ReducePlan(args.in[0], summed_axes(args.in[0], args.out[0])).workspace(args.in[0].dtype)};
}

PLM_KERNEL(sum_to, workspace) {
  const View& x = args.in[0];
  const ReducePlan plan(x, summed_axes(x, args.out[0]));
  switch (x.dtype) {
    case DType::int64: return reduce_sum_whole<int64_t, int64_t>(args, plan);
    case DType::int32: return reduce_sum_whole<int32_t, int32_t>(args, plan);
    default:
      for_float("sum_to", x.dtype,
                [&](auto type) { reduce_sum<typename decltype(type)::type>(args, plan, 1); });
  }
}

}  // namespace plmcore::PLM_ISA
