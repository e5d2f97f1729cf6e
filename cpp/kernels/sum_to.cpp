#include "kernels/reduce.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(sum_to) {
  const View& x = args.in[0];
  const ReducePlan plan(x, summed_axes(x, args.out[0]));
  switch (x.dtype) {
    case DType::int64: return reduce_sum_whole<int64_t, int64_t>(args, plan);
    case DType::int32: return reduce_sum_whole<int32_t, int32_t>(args, plan);
    default: for_float("sum_to", x.dtype, [&](auto type) { reduce_sum<typename decltype(type)::type>(args, plan, 1); });
  }
}

}  // namespace plmcore::PLM_ISA
