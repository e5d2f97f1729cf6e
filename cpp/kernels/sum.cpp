#include "kernels/reduce.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) {
  return {.shared =
              ReducePlan(args.in[0], static_cast<uint32_t>(args.i("axes"))).workspace(args.in[0].dtype)};
}

PLM_KERNEL(sum, workspace) {
  const View& x = args.in[0];
  const ReducePlan plan(x, static_cast<uint32_t>(args.i("axes")));
  switch (x.dtype) {
    case DType::int64: return reduce_sum_whole<int64_t, int64_t>(args, plan);
    case DType::int32: return reduce_sum_whole<int32_t, int64_t>(args, plan);
    case DType::int8: return reduce_sum_whole<int8_t, int64_t>(args, plan);
    case DType::uint8:
    case DType::boolean: return reduce_sum_whole<uint8_t, int64_t>(args, plan);
    default:
      for_float("sum", x.dtype, [&](auto type) { reduce_sum<typename decltype(type)::type>(args, plan, 1); });
  }
}

}  // namespace plmcore::PLM_ISA
