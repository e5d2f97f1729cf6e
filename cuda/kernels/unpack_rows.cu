// y[index[k] / T, index[k] % T] = rows[k], zeros elsewhere.   rows [N, ...]; index [N]; y [B, T, ...]
#include "device/row_sparse.cuh"

namespace plmcore::cuda {

PLM_KERNEL(unpack_rows) {
  const View& y = args.out[0];
  return place_rows_in_zeros(args, ops::id_unpack_rows, args.in[1], args.in[0], y, y.size[0] * y.size[1],
                             y.inner(1));
}

}  // namespace plmcore::cuda
