// x [outer, n, inner], index [m]:  y[o, j, :] = x[o, index[j], :].
#include "device/indexed.cuh"

namespace plmcore::cuda {

static Indexed sizes_of(const KernelArgs& args, const View& x) {
  const int axis = static_cast<int>(args.i("axis"));
  return {x.outer(axis), x.size[axis], args.in[1].numel, x.inner(axis)};
}

PLM_KERNEL(index_select) {
  const View& x = args.in[0];
  return take<IndexOf::position>(args, ops::id_index_select, x, args.in[1], args.out[0], sizes_of(args, x));
}
PLM_KERNEL(index_select_grad, float_sums) {
  return add<IndexOf::position>(args, ops::id_index_select_grad, nullptr, args.in[1], args.in[0],
                                sizes_of(args, args.out[0]));
}

}  // namespace plmcore::cuda
