// x [outer, n, inner], index [outer, m, inner]:  y[o, j, i] = x[o, index[o, j, i], i].
#include "device/indexed.cuh"

namespace plmcore::cuda {

static Indexed sizes_of(const KernelArgs& args, const View& x, const View& y) {
  const int axis = static_cast<int>(args.i("axis"));
  return {y.outer(axis), x.size[axis], y.size[axis], y.inner(axis)};
}

PLM_KERNEL(gather) {
  const View &x = args.in[0], &y = args.out[0];
  return take<IndexOf::element>(args, ops::id_gather, x, args.in[1], y, sizes_of(args, x, y));
}
PLM_KERNEL(gather_grad, float_sums) {
  const View &dy = args.in[0], &dx = args.out[0];
  return add<IndexOf::element>(args, ops::id_gather_grad, nullptr, args.in[1], dy, sizes_of(args, dx, dy));
}

}  // namespace plmcore::cuda
