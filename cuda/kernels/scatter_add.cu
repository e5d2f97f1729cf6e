// y = x, then y[index[j], :] += updates[j, :]; equal indices by pieces of fixed length
// (device/sorted_sums.cuh).
#include "device/sorted_sums.cuh"

namespace plmcore::cuda {

static Workspace workspace(const KernelArgs& args) {
  return add_sorted_workspace(args.in[1].numel, args.in[0].inner(0), args.in[0].dtype);
}

PLM_KERNEL(scatter_add, workspace) {
  const View& x = args.in[0];
  const auto go = [&](auto type) {
    using T = typename decltype(type)::type;
    return add_sorted<T>(args, ops::id_scatter_add, &x, args.in[1], args.in[2], args.out[0], x.inner(0));
  };
  return is_index(x.dtype) ? for_index(x.dtype, go) : for_float(x.dtype, go);
}

}  // namespace plmcore::cuda
