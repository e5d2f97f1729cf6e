// y = x, then y[index[j], :] += updates[j, :] in the order of j.
#include "device/indexed.cuh"

namespace plmcore::cuda {

PLM_KERNEL(scatter_add, float_sums) {
  const View &x = args.in[0], &index = args.in[1];
  return add<IndexOf::position>(args, ops::id_scatter_add, &x, index, args.in[2],
                                {1, x.size[0], index.numel, x.inner(0)});
}

}  // namespace plmcore::cuda
