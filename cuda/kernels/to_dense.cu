// y[rows[k]] = values[k], zeros elsewhere.
#include "device/row_sparse.cuh"

namespace plmcore::cuda {

PLM_KERNEL(to_dense) {
  const View& y = args.out[0];
  return place_rows_in_zeros(args, ops::id_to_dense, args.in[0], args.in[1], y, y.size[0], y.inner(0));
}

}  // namespace plmcore::cuda
