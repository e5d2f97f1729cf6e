// x [outer, n, inner], index [m]:  y[o, j, :] = x[o, index[j], :].
// Backward along the first axis: sums by sorted index (device/sorted_sums.cuh); along another one a thread
// owns a column.
#include "device/indexed.cuh"
#include "device/sorted_sums.cuh"

namespace plmcore::cuda {

static Indexed sizes_of(const KernelArgs& args, const View& x) {
  const int axis = static_cast<int>(args.i("axis"));
  return {x.outer(axis), x.size[axis], args.in[1].numel, x.inner(axis)};
}
static bool sorts(const KernelArgs& args) { return args.i("axis") == 0; }

PLM_KERNEL(index_select) {
  const View& x = args.in[0];
  return take<IndexOf::position>(args, ops::id_index_select, x, args.in[1], args.out[0], sizes_of(args, x));
}

static Workspace workspace(const KernelArgs& args) {
  if (!sorts(args)) return float_sums(args);
  return add_sorted_workspace(args.in[1].numel, args.out[0].inner(0), args.out[0].dtype);
}

// dy, index -> dx
PLM_KERNEL(index_select_grad, workspace) {
  const View &dy = args.in[0], &index = args.in[1], &dx = args.out[0];
  if (!sorts(args))
    return add<IndexOf::position>(args, ops::id_index_select_grad, nullptr, index, dy, sizes_of(args, dx));
  return for_float(dx.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return add_sorted<T>(args, ops::id_index_select_grad, nullptr, index, dy, dx, dx.inner(0));
  });
}

}  // namespace plmcore::cuda
